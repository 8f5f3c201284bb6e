"""The former name of ``placement_foundation.serving.garbage``, for configuration files."""

from placement_foundation.serving.garbage import *  # noqa: F403
