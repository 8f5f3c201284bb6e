"""The former name of ``placement_foundation.serving.interpreter``; files import it."""

from placement_foundation.serving.interpreter import *  # noqa: F403
