"""All options, with their help; and the values that code reads from them."""

import dataclasses
import functools
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log
from oslo_middleware import cors

from placement_clients import access
from placement_foundation import option

PROJECT = "placement-nodes"

API_OPTIONS = [
    *option.API_OPTIONS,
    cfg.URIOpt(
        "public_endpoint",
        schemes=["http", "https"],
        help="Where clients find the service, for the links in answers. If unset, "
        "links lead to the address to which a request was sent.",
    ),
]

NODE_OPTIONS = [
    cfg.ListOpt(
        "drivers",
        default=["fake-hardware"],
        help="The drivers that a node may have. None of them controls any hardware.",
    ),
]

SYNC_OPTIONS = [
    cfg.IntOpt(
        "interval",
        default=60,
        min=1,
        help="Seconds from the end of a pass to the beginning of the next one.",
    ),
    cfg.IntOpt(
        "parallel",
        default=8,
        min=1,
        max=64,
        help="How many nodes to work on at a time. Each has one request to Placement "
        "under way.",
    ),
    cfg.Opt(
        "monitoring_address",
        type=option.Address(),
        help="Publish /livez, /readyz and /metrics at this address, such as "
        "127.0.0.1:9179, without authentication. By default nothing listens.",
    ),
    cfg.IntOpt(
        "removed_at_once",
        default=3,
        min=0,
        help="How many providers a pass removes because their nodes are missing. If "
        "more are missing, or all, the list of nodes may be wrong: nothing is removed "
        "until they have been missing for removal_quiet_time, or in two passes with "
        "--remove-many.",
    ),
    cfg.IntOpt(
        "removal_quiet_time",
        default=3600,
        min=0,
        help="Seconds for which many nodes, or all, have to be missing before their "
        "providers are removed.",
    ),
    cfg.StrOpt(
        "state_file",
        sample_default="~/.local/share/placement-nodes/providers.json",
        help="Where the agent records which resource providers are its own: it "
        "removes these when their nodes are gone.",
    ),
]

# The services that the agent calls: the option group of each, and its type.
SERVICES = {"placement": "placement", "baremetal": "baremetal"}

# The options that placement-nodes reads.
SERVICE_OPTIONS: list[tuple[str, Sequence[cfg.Opt]]] = [
    ("api", API_OPTIONS),
    ("database", option.DATABASE_OPTIONS),
    ("metrics", option.METRICS_OPTIONS),
    ("nodes", NODE_OPTIONS),
    *option.LIBRARY_OPTIONS,
]

CORS_DEFAULTS = {
    "allow_headers": [
        "X-Auth-Token",
        "X-OpenStack-Request-ID",
        "X-OpenStack-Ironic-API-Version",
        "OpenStack-API-Version",
    ],
    "expose_headers": [
        "X-OpenStack-Request-ID",
        "X-OpenStack-Ironic-API-Minimum-Version",
        "X-OpenStack-Ironic-API-Maximum-Version",
        "X-OpenStack-Ironic-API-Version",
    ],
    "allow_methods": ["GET", "PUT", "POST", "DELETE", "PATCH"],
}


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The options of ``[nodes]``, which handlers need."""

    drivers: Sequence[str] = ("fake-hardware",)


def set_defaults() -> None:
    """Set the defaults of this service for options of libraries."""
    cors.set_defaults(**CORS_DEFAULTS)


def register(config: cfg.ConfigOpts) -> None:
    """Register the options of the service with a configuration."""
    set_defaults()
    option.register(config, SERVICE_OPTIONS)


def register_sync(config: cfg.ConfigOpts) -> None:
    """Register the options of the agent with a configuration."""
    log.register_options(config)
    config.register_opts(SYNC_OPTIONS, "sync")
    for group, service_type in SERVICES.items():
        access.register_options(config, group, service_type)


def list_options() -> list[tuple[str, Sequence[cfg.Opt]]]:
    """Return all options, for the generator of the sample configuration."""
    return [
        *SERVICE_OPTIONS,
        ("sync", SYNC_OPTIONS),
        *((group, access.list_options()) for group in SERVICES),
        *option.list_keystone(),
    ]


def settings(config: cfg.ConfigOpts) -> Settings:
    """Return the settings that handlers need."""
    return Settings(**option.values(Settings, config.nodes))


# Returns the configuration of the service.
read = functools.partial(option.read, PROJECT, register)
