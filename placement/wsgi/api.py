"""The service for servers that import it: ``placement.wsgi.api:application``."""

from placement import app

application = app.start_from_environment()
