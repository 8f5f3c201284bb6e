"""Metrics in the format of Prometheus, summed over all processes of a service.

Each process writes its numbers to its own files in a directory that all of them share;
the process that answers a request for metrics adds them up.
"""

import atexit
import functools
import os
import shutil
import struct
import tempfile
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from oslo_log import log

from placement_foundation.observing import telemetry
from placement_foundation.observing.telemetry import Kind, Measure

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

LOG = log.getLogger(__name__)

# How long it takes a process at most to make its file of numbers, in seconds.
MAKING_SECONDS = 0.1
# prometheus_client reads it when it is imported, so import that only when needed.
DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
# The method that records an amount; other kinds are added up.
VERBS = {Kind.HISTOGRAM: "observe", Kind.SIZE: "set"}
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Meter(telemetry.Observer):
    """Keeps the reported numbers that belong to its service.

    :param prefix: the beginning of the names of all metrics
    :param measures: those of the service, besides those of every service
    """

    def __init__(self, prefix: str, measures: Sequence[Measure]) -> None:
        import prometheus_client

        registry = prometheus_client.CollectorRegistry()
        self._metrics = {
            measure: _make(prefix, measure, registry)
            for measure in (*telemetry.MEASURES, *measures)
        }

    def record(
        self, measure: Measure, amount: float, labels: Mapping[str, str]
    ) -> None:
        """Record a number."""
        metric = self._metrics.get(measure)
        if metric is None:
            return
        try:
            child = metric.labels(**labels) if labels else metric
            getattr(child, VERBS.get(measure.kind, "inc"))(amount)
        except OSError as exc:
            # The directory is gone, for example. Numbers are not worth a request.
            _warn_once(str(exc))


@functools.cache
def _warn_once(reason: str) -> None:
    LOG.warning("metrics cannot be kept in %s: %s", directory(), reason)


def _make(prefix: str, measure: Measure, registry: Any) -> Any:
    import prometheus_client as client

    names = {
        "name": prefix + measure.name,
        "documentation": measure.meaning,
        "labelnames": measure.labels,
        "registry": registry,
    }
    match measure.kind:
        case Kind.COUNTER:
            return client.Counter(**names)
        case Kind.HISTOGRAM:
            return client.Histogram(**names, buckets=measure.edges)
        case Kind.LEVEL:
            return client.Gauge(**names, multiprocess_mode="livesum")
        case Kind.SIZE:
            return client.Gauge(**names, multiprocess_mode="livemostrecent")


def switch_on(prefix: str, measures: tuple[Measure, ...] = ()) -> Meter:
    """Begin to keep numbers in this process and in those that it forks.

    :param prefix: the beginning of the names of all metrics
    :param measures: those of the service, besides those of every service
    """
    directory()
    meter = _meter(prefix, measures)
    telemetry.add(meter)
    return meter


@functools.cache
def _meter(prefix: str, measures: tuple[Measure, ...]) -> Meter:
    # Two meters of a service in one process would write to the same files.
    return Meter(prefix, measures)


def directory() -> str:
    """Return the directory in which the processes of this service share their numbers.

    It is created, and removed in the end, unless the environment names one. Name one
    for web servers that start their processes without a common parent in this service.
    """
    if not os.environ.get(DIRECTORY):
        os.environ[DIRECTORY] = tempfile.mkdtemp(prefix="placement-metrics-")
        atexit.register(_remove, os.environ[DIRECTORY], os.getpid())
    return os.environ[DIRECTORY]


def _remove(path: str, owner: int) -> None:
    # Forked processes run this as well when they end; they must leave it in place.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


def forget(pid: int) -> None:
    """Remove the gauges of a process that has ended from the numbers.

    Its counts remain.
    """
    if os.environ.get(DIRECTORY):
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]


_watched: weakref.WeakSet[sa.Engine] = weakref.WeakSet()


def watch_connections(engine: sa.Engine) -> None:
    """Measure the connections of a pool, once however many applications share it."""
    if engine in _watched:
        return
    _watched.add(engine)
    for event, measure, amount in (
        ("connect", telemetry.CONNECTIONS, 1),
        ("close", telemetry.CONNECTIONS, -1),
        ("checkout", telemetry.CONNECTIONS_IN_USE, 1),
        ("checkin", telemetry.CONNECTIONS_IN_USE, -1),
    ):
        record = functools.partial(telemetry.record, measure, amount)
        sa.event.listen(engine, event, lambda *_, record=record: record())


def render(more: Iterable["Collector"] = ()) -> bytes:
    """Return all metrics as Prometheus reads them.

    :param more: collectors of metrics that are computed for each page
    """
    try:
        return _render(more)
    except struct.error:
        # prometheus_client does not lock its files: one was empty, just being made.
        time.sleep(MAKING_SECONDS)
        return _render(more)


def _render(more: Iterable["Collector"]) -> bytes:
    import prometheus_client
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = prometheus_client.CollectorRegistry()
    MultiProcessCollector(registry, directory())  # type: ignore[no-untyped-call]
    for collector in more:
        registry.register(collector)
    return prometheus_client.generate_latest(registry)
