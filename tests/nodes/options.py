"""Configurations of the node service for tests: made in the process, without a file."""

from typing import Any

from oslo_config import cfg

from placement_nodes import conf
from tests.settings import DEFAULTS as PLACEMENT_DEFAULTS

DEFAULTS = {
    (group, name): value
    for (group, name), value in PLACEMENT_DEFAULTS.items()
    if group in ("api", "oslo_policy")
}


def make_config(overrides: dict[tuple[str, str], Any] | None = None) -> cfg.ConfigOpts:
    """Return a configuration with some options set, keyed by group and name."""
    config = conf.read([], "sqlite://")
    for (group, name), value in {**DEFAULTS, **(overrides or {})}.items():
        config.set_override(name, value, group)
    return config
