"""The cloud in memory: how it is read, indexed, kept and brought up to date."""
