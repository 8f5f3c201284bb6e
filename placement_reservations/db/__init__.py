"""The database of the service: its tables and their migrations."""
