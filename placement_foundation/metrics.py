"""The former name of ``placement_foundation.observing.metrics``; files import it."""

from placement_foundation.observing.metrics import *  # noqa: F403
