"""Pages next to the API for monitoring the service: health and metrics."""
