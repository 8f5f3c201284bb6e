"""The former name of ``placement_reservations.wsgi``."""

from placement_reservations.wsgi import application as application
