"""Commands: ``placement-reservations``."""
