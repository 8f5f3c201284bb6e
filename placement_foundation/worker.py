"""The former name of ``placement_foundation.serving.worker``, for configuration files."""

from placement_foundation.serving.worker import Worker as Worker
