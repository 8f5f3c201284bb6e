"""Where changes are delivered: standard output, or a webhook."""

import contextlib
import email.utils
import functools
import http.client
import json
import re
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any, Protocol

from placement_clients.feed import signature
from placement_clients.output import Unusable
from placement_clients.record import Json

EVENT = "application/cloudevents+json"
EVENT_TYPE = "org.openstack.placement."
# The longest time for a connection and the head of an answer, together.
SECONDS = 30.0
# Statuses below 500 after which another attempt may succeed.
PASSING = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
)
# An address without a user; all other characters are percent-encoded.
ADDRESS = re.compile("https?://(?![^/?#]*@)[!-~]+")


class Away(Exception):
    """The target cannot take a change now; it is worth trying again.

    ``pause`` is how many seconds it requests to wait, None if it requests nothing.
    """

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


class Refused(Exception):
    """The target will never take this change."""


class Target(Protocol):
    """Takes changes, one after the other."""

    def deliver(self, change: Json) -> None:
        """Deliver a change; it has arrived when this returns.

        :raises Away: it could not be delivered at the moment
        :raises Refused: the target refuses it
        """


class Lines:
    """Writes a line of JSON for each change to standard output."""

    def deliver(self, change: Json) -> None:
        """Print a change."""
        print(json.dumps(change), flush=True)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats a redirection as a refusal: followed, a POST would become a GET."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""


class _Listed:
    """A connection that adds its socket to a list."""

    sockets: list[socket.socket]
    sock: socket.socket

    def connect(self) -> None:
        """Connect."""
        super().connect()  # type: ignore[misc]
        self.sockets.append(self.sock)


@contextlib.contextmanager
def _opener(seconds: float) -> Iterator[urllib.request.OpenerDirector]:
    """Open connections that are shut down after some seconds.

    A timeout of a socket is for each of its reads: a byte now and then passes it.
    """
    sockets: list[socket.socket] = []

    def connection(base: type) -> Any:
        return type("Connection", (_Listed, base), {"sockets": sockets})

    class Plain(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> Any:
            return self.do_open(connection(http.client.HTTPConnection), req)

    class Secure(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> Any:
            return self.do_open(connection(http.client.HTTPSConnection), req)

    timer = threading.Timer(seconds, _shut_down, [sockets])
    timer.daemon = True
    timer.start()
    try:
        yield urllib.request.build_opener(_NoRedirects, Plain, Secure)
    finally:
        timer.cancel()


def _shut_down(sockets: list[socket.socket]) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            # That of an SSL socket would have it decode what is read from then on.
            socket.socket.shutdown(each, socket.SHUT_RDWR)


class Webhook:
    """Posts each change as a CloudEvent.

    :param source: returns where the changes come from; called for the first of them,
        when Placement has answered
    :param key: signs them, if there is one
    :raises Unusable: nothing can be posted to the address
    """

    def __init__(
        self,
        url: str,
        source: Callable[[], str],
        key: bytes | None = None,
        clock: Callable[[], float] = time.time,
        seconds: float = SECONDS,
    ) -> None:
        _check(url)
        self._url = url
        self._source = functools.cache(source)
        self._key = key
        self._clock = clock
        self._seconds = seconds

    def deliver(self, change: Json) -> None:
        """Post a change.

        :raises Away: there is no answer in time, or it is 408, 425, 429 or a 5xx
        :raises Refused: the answer is another one than 2xx
        """
        body = json.dumps(event_of(change, self._source())).encode()
        # The address was checked to begin with http.
        request = urllib.request.Request(  # noqa: S310
            self._url, body, self._headers(change["id"], body), method="POST"
        )
        try:
            with _opener(self._seconds) as opener:
                # The status alone confirms the delivery.
                opener.open(request, timeout=self._seconds).close()
        except urllib.error.HTTPError as exc:
            with exc:
                raise self._failure(exc) from exc
        except (OSError, http.client.HTTPException) as exc:
            raise Away(f"{self._url} does not answer: {exc}") from exc

    def _headers(self, message_id: str, body: bytes) -> dict[str, str]:
        now = int(self._clock())
        headers = {
            "content-type": EVENT,
            "webhook-id": message_id,
            "webhook-timestamp": str(now),
        }
        if self._key:
            signed = signature.sign(self._key, message_id, now, body)
            headers["webhook-signature"] = signed
        return headers

    def _failure(self, answer: urllib.error.HTTPError) -> Exception:
        said = f"{self._url} answers {answer.code}"
        if answer.code in PASSING or answer.code >= 500:
            pause = answer.headers.get("retry-after")
            return Away(said, parse_pause(pause, self._clock()))
        return Refused(said)


def _check(url: str) -> None:
    """Check that a change can be posted to an address.

    :raises Unusable: it cannot; the address is not shown, as it may have a password
    """
    try:
        parts = urllib.parse.urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not (is_whole and ADDRESS.fullmatch(url)):
        raise Unusable(
            "the address of the webhook needs http:// or https://, a valid host and "
            "port, no user or password, and other characters percent-encoded"
        )


def event_of(change: Json, source: str) -> Json:
    """Return a change as a CloudEvent."""
    event = {
        "specversion": "1.0",
        "id": change["id"],
        "source": source,
        "type": EVENT_TYPE + change["type"],
        "time": change["time"],
        "datacontenttype": "application/json",
        "data": change,
    }
    if change["subject"]:
        event["subject"] = change["subject"]
    return event


def parse_pause(text: str | None, now: float) -> float | None:
    """Return the seconds in a ``Retry-After``; None if there are none."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now)
    except (OverflowError, ValueError):
        return None
