"""Why a request finds few candidates or none, and how many it could have."""
