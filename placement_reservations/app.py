"""Assembly: options, database, Placement, policy and middleware make the service."""

import atexit
import threading
from typing import TYPE_CHECKING

from oslo_config import cfg
from oslo_log import log

from placement_clients import access
from placement_clients.client import Client
from placement_foundation import option
from placement_foundation.database.storage import Database
from placement_foundation.http import middleware, monitoring
from placement_foundation.http.application import Application, Service
from placement_foundation.http.middleware import Surrounded, Surroundings
from placement_foundation.http.monitoring import Page
from placement_foundation.serving import assembly, side
from placement_reservations import conf, errors, measure, policy, version
from placement_reservations.clock import Clock
from placement_reservations.compute import Compute
from placement_reservations.compute.placement import PlacementCompute
from placement_reservations.db import migration
from placement_reservations.lifecycle.turn import Loop
from placement_reservations.routes import ROUTES
from placement_reservations.world import World

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LOG = log.getLogger(__name__)

# How long a process that stops waits for its event loop to finish its current work.
LAST_TURN_SECONDS = 8


SERVICE = Service(
    name="Reservation API",
    routes=ROUTES,
    negotiate=version.negotiate,
    version_headers=version.headers,
    document=errors.document,
)

SURROUNDINGS = Surroundings(
    log_name="placement_reservations.requestlog",
    open_paths={"", "/", "/versions", "/healthcheck"},
    identify=middleware.identify_as_administrator,
)


def start_from_environment() -> "WSGIApplication":
    """Return the service that configuration files and the environment describe.

    Its events are run elsewhere: by ``placement-reservations events``.
    """
    return assembly.start_from_environment(conf.read, conf.PROJECT, start)


def start(config: cfg.ConfigOpts) -> "WSGIApplication":
    """Return the service that a configuration describes, without its event loop.

    :raises Exception: the policy file cannot be parsed, the database cannot be reached,
        or the configuration does not say how to reach Placement
    """
    return build(config, make_world(config))


def begin_events(config: cfg.ConfigOpts) -> None:
    """Run events in a thread of this process until the process ends.

    :raises Exception: as ``make_world``
    """
    world = make_world(config)
    stop = threading.Event()
    thread = threading.Thread(
        target=run_events, args=(config, world, stop), name="events", daemon=True
    )
    thread.start()

    def end() -> None:
        stop.set()
        thread.join(LAST_TURN_SECONDS)

    atexit.register(end)


def run_events(config: cfg.ConfigOpts, world: World, stop: threading.Event) -> None:
    """Run events until it is stopped."""
    Loop(world).run(config.reservations.event_interval, stop)


def publish(config: cfg.ConfigOpts, world: World) -> None:
    """Serve the pages for monitoring a process that only runs events.

    :raises OSError: the address is taken, or does not belong to this machine
    """
    if config.metrics.address:
        pages = monitoring.health_pages(world.database, migration.SCHEMA)
        pages[monitoring.METRICS] = _metrics_page(world)
        side.serve_pages(config.metrics.address, pages)


def _metrics_page(world: World) -> Page:
    return monitoring.metrics_page(world.database, measure.PREFIX, measure.MEASURES)


def make_world(config: cfg.ConfigOpts) -> World:
    """Return the world of operations.

    :raises Exception: the database cannot be reached, or the configuration does not say
        how to reach Placement
    """
    settings = option.database_settings(config.database)
    database = assembly.connect(settings, migration.SCHEMA)
    placement = Client(access.from_config(config, "placement"))
    compute = _make_compute(config, database, placement)
    return World(database, placement, compute, Clock(), conf.rules(config))


def _make_compute(
    config: cfg.ConfigOpts, database: Database, placement: Client
) -> Compute:
    if config.reservations.compute == "nova":
        try:
            # Imported here, as its library need not be installed otherwise.
            from placement_reservations.compute import nova
        except ModuleNotFoundError as exc:
            raise access.Misconfigured(
                "compute = nova needs the Python package openstacksdk: "
                'pip install "placement-server[nova]"'
            ) from exc

        return nova.from_config(config, placement)
    return PlacementCompute(
        database,
        placement,
        config.free_pool.aggregate,
        config.reservations.use_allocation_ratio,
    )


def build(config: cfg.ConfigOpts, world: World) -> "WSGIApplication":
    """Return the service for a given world, as one WSGI application.

    :raises Exception: the policy file cannot be parsed
    """
    enforcer = policy.make_enforcer(config)
    application = Application(
        SERVICE,
        world.database,
        world,
        enforcer,
        largest_body=config.api.max_request_body_size,
    )
    pages = monitoring.health_pages(world.database, migration.SCHEMA)
    elsewhere = monitoring.elsewhere(config, lambda: _metrics_page(world))
    wrapped = middleware.surround(application, config, SURROUNDINGS)
    return Surrounded(wrapped, pages, elsewhere)
