"""The pages next to the API, and who may read them."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from oslo_config import cfg
from oslo_log import log

from placement import errors, measure
from placement.db import migration, models
from placement.monitoring.fleet import FleetTotals
from placement.objects import own_table, standard_name
from placement_foundation import context
from placement_foundation.database.storage import Database
from placement_foundation.http import health, policy
from placement_foundation.http.page import Page, Text, bind
from placement_foundation.http.policy import Enforcer
from placement_foundation.observing import metrics, telemetry

if TYPE_CHECKING:
    import socket

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LOG = log.getLogger(__name__)

METRICS = "/metrics"
# Callers who may read every provider may read their sums.
RULE = "placement:ledger:fleet"


def health_pages(database: Database) -> "dict[str, WSGIApplication]":
    """Return the pages for probes, by path."""
    return health.pages(
        {
            "database": database.answers,
            "schema": lambda: database.look(migration.SCHEMA.check_newest),
            "names": lambda: database.look(standard_name.check_complete),
        },
        lesser={"own_tables": lambda: _has_own_tables(database)},
    )


def _has_own_tables(database: Database) -> bool:
    faults = database.look(
        lambda connection: own_table.list_faults(connection, models.OWN.sorted_tables)
    )
    if faults:
        LOG.debug("not all can be used: %s", " ".join(faults))
    return not faults


def metrics_page(config: cfg.ConfigOpts, database: Database) -> Page:
    """Begin to count, and return the page that shows the metrics."""
    # Close the connections that were opened before they were counted.
    database.rest()
    metrics.switch_on(measure.PREFIX, measure.MEASURES)
    metrics.watch_connections(database.engine)
    fleet = FleetTotals(database, metrics.directory(), config.metrics.fleet_interval)
    return Page(lambda: Text(metrics.render([fleet]), media_type=metrics.MEDIA_TYPE))


class Guarded:
    """A page for callers whom a rule lets in."""

    def __init__(self, page: "WSGIApplication", enforcer: Enforcer) -> None:
        self._page = page
        self._enforcer = enforcer

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve a request."""
        telemetry.name_operation(METRICS)
        asking = environment[context.ENVIRONMENT_KEY]
        try:
            policy.authorize(self._enforcer, asking, RULE)
        except errors.Forbidden as error:
            refusal = Page(_telling(error))
            return refusal(environment, start_response)
        return self._page(environment, start_response)


def _telling(error: errors.ServiceError) -> Callable[[], Text]:
    return lambda: Text(f"{error}\n", error.status)


def elsewhere(
    config: cfg.ConfigOpts, page: "WSGIApplication"
) -> "Sequence[tuple[socket.socket, WSGIApplication]]":
    """Return the sockets at which anybody may read the metrics.

    :raises OSError: an address is taken, or does not belong to this machine
    """
    place = config.metrics.address
    return [(bind(place), page)] if place else []
