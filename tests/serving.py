"""An application behind a real socket, which records its requests."""

import dataclasses
import importlib.util
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from wsgiref import simple_server

import pytest

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# Marks of tests of what openstacksdk does with an application.
OPENSTACKSDK = [
    pytest.mark.skipif(
        importlib.util.find_spec("openstack") is None,
        reason="openstacksdk comes with the extra nova: tox -e reservations",
    ),
    # The library calls functions that it has deprecated itself.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A request: its decoded path, its query as sent."""

    method: str
    path: str
    query: str
    headers: dict[str, str]

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def version(self) -> str:
        return self.headers.get("openstack-api-version", "").removeprefix("placement ")


@dataclasses.dataclass(frozen=True, slots=True)
class Served:
    """The URL of an application, and the requests so far."""

    url: str
    calls: list[Call] = dataclasses.field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        return [call.line for call in self.calls]


class _Server(ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that have gone; errors of the application are reported."""


class _Handler(simple_server.WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def answering(status: str, body: bytes = b"", **headers: str) -> "WSGIApplication":
    """Return an application with one answer to everything."""

    def application(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        named = [(name.replace("_", "-"), value) for name, value in headers.items()]
        start_response(status, [("Content-Length", str(len(body))), *named])
        return [body]

    return application


@contextmanager
def serving(application: "WSGIApplication", port: int = 0) -> Iterator[Served]:
    """Serve an application, on a free port unless one is given."""
    calls: list[Call] = []

    def recording(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        calls.append(_call(environ))
        return application(environ, start_response)

    server = simple_server.make_server(
        "127.0.0.1", port, recording, server_class=_Server, handler_class=_Handler
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield Served(f"http://127.0.0.1:{server.server_port}", calls)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _call(environ: "WSGIEnvironment") -> Call:
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    path = unquote(environ["PATH_INFO"])
    return Call(environ["REQUEST_METHOD"], path, environ["QUERY_STRING"], headers)


def without_ledger(application: "WSGIApplication") -> "WSGIApplication":
    """Return a Placement that has no ``/ledger/v1``, as OpenStack Placement."""

    def older(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith("/ledger"):
            start_response("404 Not Found", [("Content-Type", "application/json")])
            return [b'{"errors": [{"status": 404, "detail": "not here"}]}']
        return application(environ, start_response)

    return older


class Between:
    """A network in which something happens before or after some request.

    :param matches: chooses requests by method and path; the first of them counts
    :param before: whether it happens before the service gets the request
    """

    def __init__(
        self,
        application: "WSGIApplication",
        matches: Callable[[str, str], bool],
        happens: Callable[[], Any],
        *,
        before: bool = True,
    ) -> None:
        self._application = application
        self._matches = matches
        self._happens: Callable[[], Any] | None = happens
        self._before = before

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> "Iterable[bytes]":
        line = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        happens = self._happens if self._matches(*line) else None
        if happens:
            self._happens = None
        if happens and self._before:
            happens()
        parts = self._application(environ, start_response)
        answer = list(parts)
        # A server closes what it has sent.
        getattr(parts, "close", lambda: None)()
        if happens and not self._before:
            happens()
        return answer
