"""The service for servers that import it: ``placement_nodes.wsgi``."""

from placement_nodes import app

application = app.start_from_environment()
