"""The former name of ``placement_foundation.observing.metrics``, for configuration files."""

from placement_foundation.observing.metrics import *  # noqa: F403
