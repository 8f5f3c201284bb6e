"""What every service here stands on: versions, steps of a request, transactions."""
