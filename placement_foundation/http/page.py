"""Pages of text next to an API, for monitoring the service."""

import dataclasses
import socket
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

from placement_foundation.option import Place

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

METHODS = ("GET", "HEAD")


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
        method = environment["REQUEST_METHOD"]
        more = []
        if method in METHODS:
            text = self._write()
        else:
            text = Text("", HTTPStatus.METHOD_NOT_ALLOWED)
            more = [("allow", ", ".join(METHODS))]
        body = text.body.encode() if isinstance(text.body, str) else text.body
        headers = {
            "content-type": text.media_type,
            "content-length": str(len(body)),
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
        }
        start_response(
            f"{text.status.value} {text.status.phrase}", [*headers.items(), *more]
        )
        return [] if method == "HEAD" else [body]


def beside(
    application: "WSGIApplication", pages: Mapping[str, "WSGIApplication"]
) -> "WSGIApplication":
    """Return an application that serves pages at some paths and passes on the rest."""

    def found(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        page = pages.get(environment.get("PATH_INFO", ""), application)
        return page(environment, start_response)

    return found


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
