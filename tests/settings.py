"""Configurations for tests: made in the process, without any file."""

from typing import Any

from oslo_config import cfg

from placement import conf

DEFAULTS = {
    # Tests open their own connections.
    ("placement_database", "connection"): "sqlite://",
    ("api", "auth_strategy"): "noauth2",
    ("oslo_policy", "policy_file"): "a file that does not exist.yaml",
    ("oslo_policy", "policy_dirs"): ["a directory that does not exist"],
    ("oslo_policy", "enforce_new_defaults"): False,
}


def make_config(overrides: dict[tuple[str, str], Any] | None = None) -> cfg.ConfigOpts:
    """Return a configuration with some options set, keyed by group and name."""
    config = cfg.ConfigOpts()
    conf.register(config)
    for (group, name), value in {**DEFAULTS, **(overrides or {})}.items():
        config.set_override(name, value, None if group == "DEFAULT" else group)
    config([], project=conf.PROJECT, default_config_files=[], default_config_dirs=[])
    return config
