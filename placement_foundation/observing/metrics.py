"""Metrics in the format of Prometheus, summed over all processes of a service.

Each process writes its numbers to its own files in a directory that all of them share;
the process that answers a request for metrics adds them up.
"""

import atexit
import errno
import functools
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from oslo_log import log

from placement_foundation.observing import ended, telemetry
from placement_foundation.observing.telemetry import Kind, Measure

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import Collector

LOG = log.getLogger(__name__)

# How much room on disk each file takes at first, and at most for a value besides its
# key, in bytes.
ROOM = 1 << 16
BESIDE_KEY = 32
# How long a process does not repeat that it cannot keep numbers, in seconds.
QUIET_SECONDS = 3600
# prometheus_client reads it when it is imported, so import that only when needed.
DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Meter(telemetry.Observer):
    """Keeps the numbers that it is given, as far as they belong to its service.

    :param prefix: the beginning of the names of all metrics
    :param measures: those of the service, besides those of every service
    """

    def __init__(self, prefix: str, measures: Sequence[Measure]) -> None:
        import prometheus_client
        from prometheus_client import values

        # When to say again that numbers cannot be kept.
        self._quiet_until = 0.0
        values.MmapedDict = _File  # type: ignore[attr-defined,assignment]
        # Imported by another library before there was a directory, it would keep the
        # numbers of each process in its memory.
        if values.ValueClass is values.MutexValue:
            # Never replaced once it uses files: two classes would overwrite each
            # other's entries in the same files.
            values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]
        registry = prometheus_client.CollectorRegistry()
        self._told: Mapping[Measure, Callable[[float, Mapping[str, str]], None]] = {
            measure: _teller(_make(prefix, measure, registry), measure)
            for measure in (*telemetry.MEASURES, *measures)
        }

    def record(
        self, measure: Measure, amount: float, labels: Mapping[str, str]
    ) -> None:
        """Record a number."""
        keep = self._told.get(measure)
        if not keep:
            return
        try:
            keep(amount, labels)
        except OSError as exc:
            # The disk is full, for example. Numbers are not worth a request.
            now = time.monotonic()
            if now >= self._quiet_until:
                self._quiet_until = now + QUIET_SECONDS
                LOG.warning("metrics cannot be kept in %s: %s", directory(), exc)


class _File:
    """A file of prometheus_client, with room on disk for all that it maps into memory.

    The system ends a process that writes to such memory when the disk is full. This
    raises OSError instead; what it did not take comes again with the next number.
    """

    def __init__(self, filename: str) -> None:
        self._filename = filename
        self._file: Any = None

    def read_value(self, key: str) -> tuple[float, float]:
        """Return a value and its time, as far as the file can be read."""
        try:
            found: tuple[float, float] = self._ready(key).read_value(key)
        except OSError:
            # After a fork, prometheus_client would be left with half of its values.
            return 0.0, 0.0
        return found

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        """Write a value.

        :raises OSError: there is no room for it
        """
        self._ready(key).write_value(key, value, timestamp)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _ready(self, key: str) -> Any:
        """Return the file, with room for the value of a key."""
        from prometheus_client import mmap_dict

        if self._file is None:
            _take_room(self._filename, ROOM)
            self._file = mmap_dict.MmapedDict(self._filename)  # type: ignore[no-untyped-call]
        if key not in self._file._positions:
            room, needed = self._file._capacity, self._file._used + len(key.encode())
            while room < needed + BESIDE_KEY:
                room *= 2
            if room > self._file._capacity:
                _take_room(self._filename, room)
        return self._file


def _take_room(filename: str, size: int) -> None:
    """Let a file occupy so many bytes on disk, or as many as it has if that is more.

    :raises OSError: there is no room for it
    """
    if not hasattr(os, "posix_fallocate"):
        return
    with open(os.open(filename, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
        size = max(size, os.fstat(file.fileno()).st_size)
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as exc:
            if exc.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
            # This file system cannot. The file gets its size as it would without this.


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


def _teller(
    metric: Any, measure: Measure
) -> Callable[[float, Mapping[str, str]], None]:
    """Return the function that records a number."""
    verb = {Kind.HISTOGRAM: "observe", Kind.SIZE: "set"}.get(measure.kind, "inc")
    if not measure.labels:
        note = getattr(metric, verb)
        return lambda amount, labels: note(amount)
    return lambda amount, labels: getattr(metric.labels(**labels), verb)(amount)


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
    """Remove what a process that has ended had open, or kept, from the numbers.

    Its counts remain, in one file with those of all that have ended.
    """
    if os.environ.get(DIRECTORY):
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]
        _ended.add(pid)
        try:
            done = ended.add_up(Path(directory()), _ended, _File)
        except Exception as exc:
            # The disk is full, for example. The files remain, and the server, which
            # would end with this.
            LOG.debug("numbers of ended processes are not added up: %s", exc)
        else:
            _ended.difference_update(done)


# The processes that have ended whose files are still there.
_ended: set[int] = set()


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


class _Shared:
    """Collects the numbers of all processes."""

    def collect(self) -> Iterable["Metric"]:
        """Return the metrics, summed."""
        from prometheus_client.multiprocess import MultiProcessCollector

        place = Path(directory())
        with ended.unchanged(place):
            files = [str(each) for each in place.glob("*.db") if _has_begun(each)]
            metrics: Iterable[Metric] = MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        return metrics


def _has_begun(file: Path) -> bool:
    """Return whether a file has numbers.

    It is empty for a moment when a process makes it, and for good if the process ends
    in that moment; it is gone when a process is forgotten.
    """
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:
        return False


def render(more: Iterable["Collector"] = ()) -> bytes:
    """Return all metrics as Prometheus reads them.

    :param more: collectors of metrics that are computed when asked for
    """
    import prometheus_client

    registry = prometheus_client.CollectorRegistry()
    for collector in (_Shared(), *more):
        registry.register(collector)
    return prometheus_client.generate_latest(registry)
