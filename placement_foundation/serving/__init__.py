"""Programs that serve: commands, web server, workers."""
