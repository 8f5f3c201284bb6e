"""Configurations of the reservation service for tests, without any file."""

from typing import Any

from oslo_config import cfg

from placement_reservations import conf

DEFAULTS = {
    ("database", "connection"): "sqlite://",
    ("api", "auth_strategy"): "noauth2",
    ("oslo_policy", "policy_file"): "a file that does not exist.yaml",
    ("oslo_policy", "policy_dirs"): ["a directory that does not exist"],
}


def make_config(overrides: dict[tuple[str, str], Any] | None = None) -> cfg.ConfigOpts:
    """Return a configuration with some options set, keyed by group and name."""
    config = cfg.ConfigOpts()
    conf.register(config)
    for (group, name), value in {**DEFAULTS, **(overrides or {})}.items():
        config.set_override(name, value, group)
    config([], project=conf.PROJECT, default_config_files=[], default_config_dirs=[])
    return config
