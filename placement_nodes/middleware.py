"""The middleware that only this service has."""

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def at_endpoint(application: "WSGIApplication", url: str) -> "WSGIApplication":
    """Make an application build its links on the URL at which clients find it."""
    endpoint = urlsplit(url)

    def believing(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        environment["wsgi.url_scheme"] = endpoint.scheme
        environment["HTTP_HOST"] = endpoint.netloc
        environment["SCRIPT_NAME"] = endpoint.path.rstrip("/")
        return application(environment, start_response)

    return believing
