"""The middleware that only this service has."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from placement_nodes import version

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

OPEN_PATHS = {"", "/", "/v1", "/v1/", "/healthcheck"}


def is_open(environment: "WSGIEnvironment") -> bool:
    """Return whether a request is for one of the documents that are open to all."""
    return environment.get("PATH_INFO", "") in OPEN_PATHS


def at_endpoint(application: "WSGIApplication", url: str) -> "WSGIApplication":
    """Make an application build its links on the URL at which clients find it."""
    endpoint = urlsplit(url)

    def believing(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        believed = {
            **environment,
            "wsgi.url_scheme": endpoint.scheme,
            "HTTP_HOST": endpoint.netloc,
            "SCRIPT_NAME": endpoint.path.rstrip("/"),
        }
        return application(believed, start_response)

    return believing


def with_version_bounds(application: "WSGIApplication") -> "WSGIApplication":
    """Add the smallest and largest version to every answer, even to early errors.

    Clients negotiate by these headers.
    """

    def bounded(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        def start_bounded(
            status: str, headers: list[tuple[str, str]], *error: Any
        ) -> Any:
            present = {name.lower() for name, _ in headers}
            missing = [
                (name, value)
                for name, value in version.headers(None).items()
                if name.lower() not in present
            ]
            return start_response(status, [*headers, *missing], *error)

        return application(environment, start_bounded)

    return bounded
