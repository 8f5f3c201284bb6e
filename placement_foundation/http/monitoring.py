"""The pages beside an API by which a service is monitored."""

import socket
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from placement_foundation.database.migration import History
from placement_foundation.database.storage import Database
from placement_foundation.http import health
from placement_foundation.http.health import NO_CHECKS, Checks
from placement_foundation.http.page import Page, Text, bind
from placement_foundation.observing import metrics
from placement_foundation.observing.telemetry import Measure

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

METRICS = "/metrics"


def health_pages(
    database: Database,
    schema: History,
    further: Checks = NO_CHECKS,
    lesser: Checks = NO_CHECKS,
) -> "dict[str, WSGIApplication]":
    """Return the pages for probes, by path.

    :param further: checks after those of the database and its tables
    :param lesser: checks that only warn
    """
    checks = {
        "database": database.answers,
        "schema": lambda: database.look(schema.check_newest),
    }
    return health.pages({**checks, **further}, lesser=lesser)


def metrics_page(
    database: Database,
    prefix: str,
    measures: tuple[Measure, ...] = (),
    collectors: Iterable[Any] = (),
) -> Page:
    """Begin to count, and return the page that shows the metrics.

    :param prefix: the beginning of the names of all metrics
    :param measures: those of the service, besides those of every service
    :param collectors: those of metrics that are computed for each page
    """
    # Close the connections that were opened before they were counted.
    database.rest()
    metrics.switch_on(prefix, measures)
    metrics.watch_connections(database.engine)
    shown = list(collectors)
    return Page(lambda: Text(metrics.render(shown), media_type=metrics.MEDIA_TYPE))


def elsewhere(
    config: cfg.ConfigOpts, make_page: "Callable[[], WSGIApplication]"
) -> "Sequence[tuple[socket.socket, WSGIApplication]]":
    """Return the socket at which the metrics are public, if one is configured.

    :raises OSError: the address is taken, or does not belong to this machine
    """
    address = config.metrics.address
    return [(bind(address), make_page())] if address else []
