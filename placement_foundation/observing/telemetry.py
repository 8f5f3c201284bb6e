"""Counting and timing, for monitoring a service.

The code reports what happens, in the terms of this module, and observers receive it.
While there is no observer, nothing is kept and no library is loaded: a call only checks
whether there is one.
"""

import contextlib
import contextvars
import dataclasses
import enum
import functools
import time
import types
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from placement_foundation import errors

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

P = ParamSpec("P")
T = TypeVar("T")

# The place in the environment of a request for the path of the route table that it is
# for, as soon as that is known.
OPERATION = "placement.operation"
# Stands for an operation, a method or a code that is not known.
NONE = "none"
OTHER = "other"
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}

# Upper edges of histograms: seconds, and numbers of things.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5, 10, 30)
NUMBERS = (0, 1, 10, 100, 1000, 10_000, 100_000)


class Kind(enum.Enum):
    """How reported amounts become the value of a measure."""

    # The sum of all amounts since the service began.
    COUNTER = "counter"
    # How many amounts fell into each range.
    HISTOGRAM = "histogram"
    # Goes up and down; the value of the service is the sum over its processes.
    LEVEL = "level"
    # The last amount reported by any process.
    SIZE = "size"


@dataclasses.dataclass(frozen=True, slots=True)
class Measure:
    """Something that is counted or timed.

    The values of a label come from a set that is known, or bounded.
    """

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()


REQUESTS = Measure(
    "requests",
    Kind.COUNTER,
    "Requests that were answered.",
    ("operation", "method", "status"),
)
REQUEST_SECONDS = Measure(
    "request_duration_seconds",
    Kind.HISTOGRAM,
    "Time until an answer began.",
    ("operation", "method"),
    SECONDS,
)
STEP_SECONDS = Measure(
    "step_duration_seconds",
    Kind.HISTOGRAM,
    "Time that requests spent in a step: transaction, load, search, rendering.",
    ("operation", "step"),
    SECONDS,
)
TRANSACTION_FAILURES = Measure(
    "transaction_failures",
    Kind.COUNTER,
    "Attempts at a transaction that failed, by cause, including lost_race.",
    ("cause",),
)
TRANSACTION_RETRIES = Measure(
    "transaction_retries",
    Kind.COUNTER,
    "Transactions that were begun again, by the cause of the failure before.",
    ("cause",),
)
CONNECTIONS = Measure(
    "database_connections",
    Kind.LEVEL,
    "Connections to the database that are open.",
)
CONNECTIONS_IN_USE = Measure(
    "database_connections_in_use",
    Kind.LEVEL,
    "Connections to the database that a transaction is using.",
)
# What every service measures. Each adds its own.
MEASURES = (
    REQUESTS,
    REQUEST_SECONDS,
    STEP_SECONDS,
    TRANSACTION_FAILURES,
    TRANSACTION_RETRIES,
    CONNECTIONS,
    CONNECTIONS_IN_USE,
)


class Observer:
    """Receives what happens. This one ignores it."""

    def record(
        self, measure: Measure, amount: float, labels: Mapping[str, str]
    ) -> None:
        """Record a number."""

    def request(
        self, environment: "WSGIEnvironment"
    ) -> contextlib.AbstractContextManager[object]:
        """Return a context manager around a request."""
        return contextlib.nullcontext()

    def step(self, name: str) -> contextlib.AbstractContextManager[object]:
        """Return a context manager around a step of a request."""
        return contextlib.nullcontext()

    def answer(self, operation: str, method: str, status: str) -> None:
        """Record how the current request is answered."""


_observers: tuple[Observer, ...] = ()
# The environment of the request that this thread serves.
_environment: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar(
    "environment", default=types.MappingProxyType({})
)


def add(observer: Observer) -> None:
    """Report what happens in this process to an observer from now on."""
    global _observers
    if observer not in _observers:
        _observers = (*_observers, observer)


def remove(observer: Observer) -> None:
    """Report nothing more to an observer."""
    global _observers
    _observers = tuple(one for one in _observers if one is not observer)


def record(measure: Measure, amount: float = 1, **labels: str) -> None:
    """Report something that was counted or timed."""
    for observer in _observers:
        observer.record(measure, amount, labels)


def request(
    environment: "WSGIEnvironment",
) -> contextlib.AbstractContextManager[object]:
    """Surround a request."""
    return _request(environment) if _observers else contextlib.nullcontext()


@contextlib.contextmanager
def _request(environment: "WSGIEnvironment") -> Iterator[None]:
    before = _environment.set(environment)
    try:
        with contextlib.ExitStack() as stack:
            for observer in _observers:
                stack.enter_context(observer.request(environment))
            yield
    finally:
        _environment.reset(before)


def method_of(environment: "WSGIEnvironment") -> str:
    """Return the method of a request, or ``other`` if HTTP does not define it."""
    method: str = environment["REQUEST_METHOD"]
    return method if method in METHODS else OTHER


def answer(environment: "WSGIEnvironment", status: str, seconds: float) -> None:
    """Report how a request is answered.

    :param seconds: the time since it came in
    """
    if not _observers:
        return
    method, place = method_of(environment), environment.get(OPERATION, NONE)
    record(REQUESTS, operation=place, method=method, status=status)
    record(REQUEST_SECONDS, seconds, operation=place, method=method)
    for observer in _observers:
        observer.answer(place, method, status)


def step(name: str) -> contextlib.AbstractContextManager[object]:
    """Surround a step of a request."""
    return _step(name) if _observers else contextlib.nullcontext()


@contextlib.contextmanager
def _step(name: str) -> Iterator[None]:
    began = time.perf_counter()
    try:
        with contextlib.ExitStack() as stack:
            for observer in _observers:
                stack.enter_context(observer.step(name))
            yield
    finally:
        seconds = time.perf_counter() - began
        operation = _environment.get().get(OPERATION, NONE)
        record(STEP_SECONDS, seconds, operation=operation, step=name)


def timed(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function a step of requests."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def stepping(*args: P.args, **options: P.kwargs) -> T:
            with step(name):
                return function(*args, **options)

        return stepping

    return decorate


@contextlib.contextmanager
def outcome(measure: Measure) -> Iterator[None]:
    """Count the outcome of a block, with the code of the error if it raises one."""
    try:
        yield
    except errors.ServiceError as error:
        refused = error.status < 500
        record(measure, outcome="refused" if refused else "failed", code=error.code)
        raise
    except Exception:
        record(measure, outcome="failed", code=NONE)
        raise
    record(measure, outcome="granted", code=NONE)
