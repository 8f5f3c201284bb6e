"""The pages beside an API by which a service is monitored.

Those for probes say whether a process is alive, and whether it is ready to serve. They
are open to anonymous callers, and give no more than a word for each check.
"""

import dataclasses
import socket
import time
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import webob
from oslo_config import cfg
from oslo_log import log

from placement_foundation.database import trouble
from placement_foundation.database.migration import History
from placement_foundation.database.storage import Database
from placement_foundation.observing import metrics
from placement_foundation.observing.recent import Recent
from placement_foundation.observing.telemetry import Measure
from placement_foundation.option import Place

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LOG = log.getLogger(__name__)

METHODS = ("GET", "HEAD")
METRICS = "/metrics"
LIVE = "/livez"
READY = "/readyz"
# How long a result is kept, in seconds, whatever the number of requests.
KEPT = 1
# How long all checks may take together, in seconds.
PATIENCE = 2

OK, FAILED, UNKNOWN, WARNING = "ok", "failed", "unknown", "warning"

# The checks by name, in order. A check that raises has failed, for the reason that is
# logged; one that returns False has logged it.
Checks = Mapping[str, Callable[[], object]]
NO_CHECKS: Checks = types.MappingProxyType({})


@dataclasses.dataclass(frozen=True, slots=True)
class Text:
    """The content of a page."""

    body: str | bytes
    status: HTTPStatus = HTTPStatus.OK
    media_type: str = "text/plain; charset=utf-8"


class Page:
    """An application that is one page of text."""

    def __init__(self, write: Callable[[], Text]) -> None:
        self._write = write

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve a request."""
        is_allowed = environment["REQUEST_METHOD"] in METHODS
        text = self._write() if is_allowed else Text("", HTTPStatus.METHOD_NOT_ALLOWED)
        response = webob.Response(
            text.body, text.status.value, content_type=text.media_type
        )
        response.headers["cache-control"] = "no-store"
        response.headers["x-content-type-options"] = "nosniff"
        response.allow = None if is_allowed else METHODS
        body: Iterable[bytes] = response(environment, start_response)
        return body


def _word(name: str, check: Callable[[], object]) -> str:
    try:
        return FAILED if check() is False else OK
    except Exception as exc:
        LOG.warning("not ready: %s: %s", name, trouble.describe(exc))
        return FAILED


def probes(
    checks: Checks,
    clock: Callable[[], float] = time.monotonic,
    *,
    lesser: Checks = NO_CHECKS,
) -> dict[str, "WSGIApplication"]:
    """Return the pages for probes, by path.

    :param checks: the service cannot work without these; the first that fails is last
    :param lesser: checks that only warn: the service is ready even if they fail
    """
    words = dict.fromkeys([*checks, *lesser], UNKNOWN)

    def run() -> dict[str, str]:
        words.update(dict.fromkeys(words, UNKNOWN))
        for name, check in {**checks, **lesser}.items():
            words[name] = _word(name, check)
            if words[name] == FAILED and name in checks:
                break
            words[name] = WARNING if words[name] == FAILED else OK
        return dict(words)

    def give_up() -> dict[str, str]:
        """Return the results so far; the check that takes too long has failed."""
        results = dict(words)
        slow = next((name for name, word in results.items() if word == UNKNOWN), None)
        if slow:
            results[slow] = FAILED if slow in checks else WARNING
        return results

    recent = Recent(run, lasts=KEPT, patience=PATIENCE, too_late=give_up, clock=clock)

    def ready() -> Text:
        results = recent.get()
        well = set(results.values()) <= {OK, WARNING}
        return Text(
            "".join(f"{name}: {word}\n" for name, word in results.items()),
            HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE,
        )

    return {LIVE: Page(lambda: Text(f"{OK}\n")), READY: Page(ready)}


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
    return probes({**checks, **further}, lesser=lesser)


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


def check_free(place: Place) -> None:
    """Check that an address can be listened on, before anything is made or read.

    :raises OSError: as ``bind`` does
    """
    bind(place).close()


def bind(place: Place) -> socket.socket:
    """Return a socket bound to an address, for the code that will listen on it.

    Until then no client is kept waiting there.

    :raises OSError: the address is taken, or does not belong to this machine
    """
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((place.host, place.port))
    except OSError as exc:
        bound.close()
        raise OSError(
            f"cannot listen on {place.host} port {place.port}: {exc}"
        ) from exc
    return bound


def elsewhere(
    config: cfg.ConfigOpts, make_page: "Callable[[], WSGIApplication]"
) -> "Sequence[tuple[socket.socket, WSGIApplication]]":
    """Return the socket at which the metrics are public, if one is configured.

    :raises OSError: the address is taken, or does not belong to this machine
    """
    address = config.metrics.address
    return [(bind(address), make_page())] if address else []
