"""All options, with their help; and the values that code reads from them."""

import datetime
from collections.abc import Sequence

from keystoneauth1 import loading
from oslo_config import cfg
from oslo_middleware import cors

from placement_clients import access
from placement_foundation import option
from placement_reservations.world import Rules

PROJECT = "placement-reservations"
# Where `make serve` runs Placement, for users who try out both.
LOCAL_PLACEMENT = "http://127.0.0.1:8778"

# The form that Placement accepts.
UUID = "^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$"

RESERVATION_OPTIONS = [
    cfg.StrOpt(
        "compute",
        default="placement",
        choices=[
            (
                "placement",
                "hosts are root providers, servers are consumers with allocations, "
                "and this service shows the flavors",
            ),
            ("nova", "Nova; needs the extra `nova` and the group [nova]"),
        ],
        help="What runs the instances.",
    ),
    cfg.BoolOpt(
        "use_allocation_ratio",
        default=False,
        help="Whether slots are promised up to what Placement allocates: (total - "
        "reserved) times the allocation ratio. By default, a ratio above one does not "
        "count, and a promised processor is a processor.",
    ),
    cfg.IntOpt(
        "event_interval",
        default=10,
        min=1,
        help="Seconds between two checks for due events. Leases start and end late by "
        "at most this time.",
    ),
    cfg.IntOpt(
        "cleaning_time",
        default=0,
        min=0,
        max=10_000_000,
        help="Minutes after the end of a lease in which its room is not promised to "
        "another lease.",
    ),
    cfg.IntOpt(
        "minutes_before_end_lease",
        default=60,
        min=0,
        max=10_000_000,
        help="How many minutes before its end a lease has the event before_end_lease, "
        "unless it sets another time; 0 means no such event.",
    ),
    cfg.IntOpt(
        "watch_interval",
        default=60,
        min=1,
        help="Seconds between two checks of all hosts. If a host is gone, disabled or "
        "smaller than it was, leases that have not started are moved off it, and "
        "others are marked as degraded.",
    ),
    cfg.IntOpt(
        "server_patience",
        default=600,
        min=0,
        help="Seconds to wait until the servers of a lease are gone when it ends.",
    ),
    cfg.IntOpt(
        "end_retry_interval",
        default=60,
        min=1,
        help="Seconds after which a failed end of a lease is tried again.",
    ),
    cfg.IntOpt(
        "claim_seconds",
        default=180,
        min=1,
        help="Seconds for which a process keeps its claim on a lease without renewing "
        "it. After that, another process finishes its work. No single request to "
        "Placement or to the compute service, including its retries, may take longer.",
    ),
]

FREE_POOL_OPTIONS = [
    cfg.StrOpt(
        "aggregate",
        default="f6a0c7b2-1d0e-4f5e-9b3a-5a1d6c2e8f40",
        regex=UUID,
        help="UUID of the Placement aggregate of reservable hosts, with compute = "
        "placement. Ordinary requests exclude it: member_of=!in:<this>.",
    ),
    cfg.StrOpt(
        "name",
        default="freepool",
        help="Name of the host aggregate of reservable hosts, with compute = nova.",
    ),
]

OPTIONS: list[tuple[str, Sequence[cfg.Opt]]] = [
    ("api", option.API_OPTIONS),
    ("database", option.DATABASE_OPTIONS),
    ("metrics", option.METRICS_OPTIONS),
    ("reservations", RESERVATION_OPTIONS),
    ("free_pool", FREE_POOL_OPTIONS),
    *option.LIBRARY_OPTIONS,
]

# The option group of each service, and the type of the service.
SERVICES = {"placement": "placement", "nova": "compute"}

CORS_DEFAULTS = {
    "allow_headers": [
        "X-Auth-Token",
        "X-OpenStack-Request-ID",
        "OpenStack-API-Version",
    ],
    "expose_headers": ["X-OpenStack-Request-ID", "OpenStack-API-Version"],
    "allow_methods": ["GET", "PUT", "POST", "DELETE", "PATCH"],
}


def set_defaults() -> None:
    """Set the defaults of this service for options of libraries."""
    cors.set_defaults(**CORS_DEFAULTS)


def register(config: cfg.ConfigOpts) -> None:
    """Register all options with a configuration."""
    set_defaults()
    option.register(config, OPTIONS)
    for group, service_type in SERVICES.items():
        access.register_options(config, group, service_type)


def list_options() -> list[tuple[str, Sequence[cfg.Opt]]]:
    """Return all options, for the generator of the sample configuration."""
    return [
        *OPTIONS,
        *((group, access.list_options()) for group in SERVICES),
        *option.list_keystone(),
    ]


def read(files: list[str] | None, connection: str | None = None) -> cfg.ConfigOpts:
    """Return the configuration of the service.

    Without configuration, Placement is expected on this machine, for users who try out
    both.

    :param files: the configuration files; None means those of the default search
    :param connection: the database to use when none is configured
    """
    config = option.read(PROJECT, register, files, connection)
    if connection and not config.placement.auth_type:
        _look_beside(config)
    return config


def _look_beside(config: cfg.ConfigOpts) -> None:
    config.register_opts(
        loading.get_auth_plugin_conf_options("admin_token"), "placement"
    )
    config.set_default("auth_type", "admin_token", "placement")
    config.set_default("endpoint", LOCAL_PLACEMENT, "placement")
    config.set_default("token", "admin", "placement")


def rules(config: cfg.ConfigOpts) -> Rules:
    """Return the rules that operators set."""
    group = config.reservations
    return Rules(
        cleaning=datetime.timedelta(minutes=group.cleaning_time),
        claim=datetime.timedelta(seconds=group.claim_seconds),
        patience=datetime.timedelta(seconds=group.server_patience),
        retry=datetime.timedelta(seconds=group.end_retry_interval),
        watch=datetime.timedelta(seconds=group.watch_interval),
        notice=datetime.timedelta(minutes=group.minutes_before_end_lease),
    )
