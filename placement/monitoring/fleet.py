"""Sums over the whole cloud as metrics, computed by one process for all of them."""

import contextlib
import dataclasses
import fcntl
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
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

    The sums are kept in a file next to the counts of the processes. A process that is
    asked when they are too old refreshes them, unless another one is doing so, and
    answers with what is there.
    """

    def __init__(
        self,
        database: Database,
        directory: str,
        interval: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._file = Path(directory, "fleet.json")
        self._interval = interval
        self._clock = clock
        # When the sums could not be kept on disk, by the clock.
        self._failed_at = -math.inf
        self._refreshed: Recent[None] = Recent(
            self._refresh, lasts=0, patience=PATIENCE, too_late=lambda: None
        )

    def describe(self) -> Iterable["Metric"]:
        """Return nothing: the metrics are not known before they are collected."""
        return ()

    def collect(self) -> Iterator["Metric"]:
        """Yield the metrics."""
        if self._is_due():
            self._refreshed.get()
        sums = self._read()
        if sums:
            yield from families(sums)

    def _is_due(self) -> bool:
        """Return whether the last refresh of the sums, or attempt, is too long ago."""
        last = self._failed_at
        with contextlib.suppress(FileNotFoundError):
            last = max(last, self._file.stat().st_mtime)
        # The clock may have been set back.
        return not 0 <= self._clock() - last < self._interval

    def _read(self) -> Any:
        try:
            return json.loads(self._file.read_text())
        except (OSError, ValueError):
            return None

    def _refresh(self) -> None:
        """Refresh the sums; warn once if they cannot be kept on disk."""
        try:
            self._refresh_alone()
        except OSError as exc:
            if self._failed_at == -math.inf:
                LOG.warning("sums of the fleet cannot be kept: %s", exc)
            # This also waits for the next interval.
            self._failed_at = self._clock()
        else:
            self._failed_at = -math.inf

    def _refresh_alone(self) -> None:
        """Refresh the sums, unless another process is doing so."""
        with self._exclusively() as alone:
            if not alone or not self._is_due():
                return
            try:
                sums = bound(self._database.look(total.load), self._clock())
            except Exception as exc:
                LOG.warning("no sums of the fleet: %s", trouble.describe(exc))
                # A failure also waits for the next interval.
                sums = self._read()
            self._write(sums)

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[bool]:
        """Try to hold a lock against other processes; yield whether it was free."""
        with self._file.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _write(self, sums: Any) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(sums))
        os.utime(new, (self._clock(), self._clock()))
        new.replace(self._file)


def bound(totals: total.Totals, moment: float) -> dict[str, Any]:
    """Return sums with no more names than are shown.

    The resource classes that most providers have remain, with the number of the others;
    consumers whose types are not among the largest count as one type.
    """
    classes = _largest(totals.classes, lambda name: totals.classes[name].providers)
    consumers = _largest(totals.consumers, totals.consumers.__getitem__)
    rest = sum(totals.consumers.values()) - sum(consumers.values())
    return {
        "at": moment,
        "providers": totals.providers,
        "left_out": len(totals.classes) - len(classes),
        "classes": {
            name: dataclasses.asdict(amounts) for name, amounts in classes.items()
        },
        "consumers": {**consumers, **({OTHER: rest} if rest else {})},
    }


def _largest(named: Mapping[str, Any], size: Callable[[str], int]) -> dict[str, Any]:
    names = sorted(named, key=lambda name: (-size(name), name))[:MOST_NAMES]
    return {name: named[name] for name in sorted(names)}


def families(sums: Any) -> Iterator["Metric"]:
    """Yield sums, bounded, as metrics."""
    from prometheus_client.core import GaugeMetricFamily

    def gauge(name: str, meaning: str, label: str, values: Mapping[str, float]) -> Any:
        family = GaugeMetricFamily(
            f"{measure.PREFIX}fleet_{name}", meaning, labels=[label] if label else []
        )
        for each, value in values.items():
            family.add_metric([each] if label else [], value)
        return family

    for name, meaning in CLASS_METRICS.items():
        amounts = {each: row[name] for each, row in sums["classes"].items()}
        yield gauge(f"resource_{name}", meaning, "resource_class", amounts)
    yield gauge("consumers", "Consumers.", "consumer_type", sums["consumers"])
    for name, value, meaning in (
        ("providers", sums["providers"], "Resource providers."),
        (
            "resource_classes_left_out",
            sums["left_out"],
            f"Resource classes beyond the {MOST_NAMES} that most providers have.",
        ),
        (
            "refreshed_timestamp_seconds",
            sums["at"],
            "When the sums were last read from the database.",
        ),
    ):
        yield gauge(name, meaning, "", {"": value})
