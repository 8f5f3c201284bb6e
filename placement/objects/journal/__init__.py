"""The journal: entries are recorded by writes, filed and read later, and expire."""
