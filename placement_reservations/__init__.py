"""The instance reservation service: leases of host capacity, kept in Placement."""
