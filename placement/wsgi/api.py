"""The service for servers that import it: ``placement.wsgi.api:application``."""

from placement.wsgi import init_application

application = init_application()
