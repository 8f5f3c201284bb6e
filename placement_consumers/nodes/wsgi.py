"""The service for servers that import it: ``placement_consumers.nodes.wsgi``."""

from placement_consumers.nodes import app

application = app.start_from_environment()
