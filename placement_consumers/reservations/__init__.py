"""Leases of hosts' room, kept through Placement: the instance reservation service."""
