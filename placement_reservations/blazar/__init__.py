"""Taking over from Blazar: its hosts and leases, read from its database."""
