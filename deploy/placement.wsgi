"""The service for mod_wsgi, which wants a file."""

from placement.wsgi.api import application

__all__ = ["application"]
