"""What stands beside the API for those who watch the service: health and metrics."""
