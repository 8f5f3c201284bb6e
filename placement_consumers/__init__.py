"""The former name of ``placement_clients`` and of the services that use it."""
