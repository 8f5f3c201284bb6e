"""Why a request finds few candidates or none, and how often it could be claimed."""
