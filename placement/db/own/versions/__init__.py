"""The revisions of the tables that this service adds to the shared schema."""
