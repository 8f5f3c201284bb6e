"""The pages next to the API, and the rule that guards the metrics."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from oslo_config import cfg
from oslo_log import log

from placement import errors, measure
from placement.db import migration
from placement.monitoring.fleet import FleetTotals
from placement.objects import own_table, standard_name
from placement_foundation import context
from placement_foundation.database.storage import Database
from placement_foundation.http import monitoring
from placement_foundation.http.monitoring import Page, Text
from placement_foundation.http.policy import Enforcer
from placement_foundation.observing import telemetry

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LOG = log.getLogger(__name__)

# Callers who may read every provider may read their sums.
RULE = "placement:ledger:fleet"


def health_pages(database: Database) -> "dict[str, WSGIApplication]":
    """Return the pages for probes, by path."""
    return monitoring.health_pages(
        database,
        migration.SCHEMA,
        {"names": lambda: database.look(standard_name.check_complete)},
        lesser={"own_tables": lambda: _has_own_tables(database)},
    )


def _has_own_tables(database: Database) -> bool:
    faults = database.look(own_table.list_faults)
    if faults:
        LOG.debug("not all can be used: %s", " ".join(faults))
    return not faults


def metrics_page(config: cfg.ConfigOpts, database: Database) -> Page:
    """Begin to count, and return the page that shows the metrics."""
    fleet = FleetTotals(database, config.metrics.fleet_interval)
    return monitoring.metrics_page(database, measure.PREFIX, measure.MEASURES, [fleet])


class Guarded:
    """A page for callers whom a rule lets in."""

    def __init__(self, page: "WSGIApplication", enforcer: Enforcer) -> None:
        self._page = page
        self._enforcer = enforcer

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve a request."""
        environment[telemetry.OPERATION] = monitoring.METRICS
        asking = environment[context.ENVIRONMENT_KEY]
        try:
            self._enforcer.authorize(RULE, asking)
        except errors.Forbidden as error:
            refusal = Text(f"{error}\n", error.status)
            return Page(lambda: refusal)(environment, start_response)
        return self._page(environment, start_response)
