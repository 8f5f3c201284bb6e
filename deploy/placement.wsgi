"""The service for servers that want a file, and give it processes of its own."""

from placement.wsgi.api import application
from placement_foundation import garbage

garbage.settle()

__all__ = ["application"]
