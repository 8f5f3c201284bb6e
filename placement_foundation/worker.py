"""The former name of ``placement_foundation.serving.worker``; files import it."""

from placement_foundation.serving.worker import Worker as Worker
