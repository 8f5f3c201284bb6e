"""Sums over the whole cloud as metrics."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from oslo_log import log

from placement import measure
from placement.objects import total
from placement_foundation.database import trouble
from placement_foundation.database.storage import Database
from placement_foundation.observing.recent import Recent

if TYPE_CHECKING:
    from prometheus_client import Metric

LOG = log.getLogger(__name__)

# The most names from the data that are shown, for each label.
MOST_NAMES = 100
OTHER = "other"
# How long a reader waits for the first sums, in seconds.
PATIENCE = 1

CLASS_METRICS = {
    "providers": "Providers that have an inventory of the class.",
    "total": "Units in inventories.",
    "reserved": "Units that are reserved.",
    "capacity": "Units that can be allocated: total less reserved, times the ratio.",
    "used": "Units that are allocated.",
}


class FleetTotals:
    """A collector of prometheus_client.

    A request for sums that are too old lets the process read them from the database; if
    that fails or takes too long, the answer has the old ones.

    :param interval: how long sums are kept, in seconds
    """

    def __init__(
        self,
        database: Database,
        interval: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        # The last sums, and when they were read.
        self._sums: tuple[total.Totals, float] | None = None
        self._refreshed: Recent[None] = Recent(
            self._refresh,
            lasts=interval,
            patience=PATIENCE,
            too_late=lambda: None,
            clock=clock,
        )

    def describe(self) -> Iterable["Metric"]:
        """Return nothing: the metrics are not known before they are collected."""
        return ()

    def collect(self) -> Iterator["Metric"]:
        """Yield the metrics."""
        self._refreshed.get()
        if self._sums:
            yield from families(*self._sums)

    def _refresh(self) -> None:
        try:
            self._sums = self._database.look(total.load), time.time()
        except Exception as exc:
            LOG.warning("no sums of the fleet: %s", trouble.describe(exc))


def _largest(named: Mapping[str, Any], size: Callable[[str], int]) -> list[str]:
    names = sorted(named, key=lambda name: (-size(name), name))
    return sorted(names[:MOST_NAMES])


def families(totals: total.Totals, moment: float) -> Iterator["Metric"]:
    """Yield sums as metrics, with no more names than are shown.

    The resource classes that most providers have remain, with the number of the others;
    consumers whose types are not among the largest count as one type.

    :param moment: when the sums were read, as seconds since 1970
    """
    from prometheus_client.core import GaugeMetricFamily

    def gauge(name: str, meaning: str, label: str, values: Mapping[str, float]) -> Any:
        family = GaugeMetricFamily(
            f"{measure.PREFIX}fleet_{name}", meaning, labels=[label] if label else []
        )
        for each, value in values.items():
            family.add_metric([each] if label else [], value)
        return family

    classes = _largest(totals.classes, lambda name: totals.classes[name].providers)
    for name, meaning in CLASS_METRICS.items():
        amounts = {each: getattr(totals.classes[each], name) for each in classes}
        yield gauge(f"resource_{name}", meaning, "resource_class", amounts)
    types = _largest(totals.consumers, totals.consumers.__getitem__)
    consumers = {kind: totals.consumers[kind] for kind in types}
    if len(types) < len(totals.consumers):
        rest = sum(totals.consumers.values()) - sum(consumers.values())
        consumers[OTHER] = rest
    yield gauge("consumers", "Consumers.", "consumer_type", consumers)
    for name, value, meaning in (
        ("providers", totals.providers, "Resource providers."),
        (
            "resource_classes_left_out",
            len(totals.classes) - len(classes),
            f"Resource classes beyond the {MOST_NAMES} that most providers have.",
        ),
        (
            "refreshed_timestamp_seconds",
            moment,
            "When the sums were last read from the database.",
        ),
    ):
        yield gauge(name, meaning, "", {"": value})
