"""What a service reports about itself: log, metrics, traces."""
