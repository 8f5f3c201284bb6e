"""The former name of ``placement_foundation.serving.garbage``; files import it."""

from placement_foundation.serving.garbage import *  # noqa: F403
