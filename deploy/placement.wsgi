"""The service for servers that need a file, and run it in its own processes."""

from placement.wsgi.api import application
from placement_foundation.serving import interpreter

interpreter.settle()

__all__ = ["application"]
