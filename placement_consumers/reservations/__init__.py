"""The former name of ``placement_reservations``."""
