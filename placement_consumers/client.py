"""The former name of ``placement_clients.client``."""

from placement_clients.client import *  # noqa: F403
