"""The former name of ``placement_nodes.wsgi``."""

from placement_nodes.wsgi import application as application
