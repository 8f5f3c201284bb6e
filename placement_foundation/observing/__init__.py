"""Reports of a service about itself: log, metrics, traces."""
