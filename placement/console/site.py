"""The console next to the API: its files, and its sign-in.

The files are public, and the same for all callers. The page gets its data from the
public APIs, like any other client.
"""

import dataclasses
import json
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import webob
from oslo_config import cfg

from placement import errors
from placement.console import page, session
from placement_foundation import context
from placement_foundation.http.thread_limit import ThreadLimit

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

ROOT = "/console"
SESSION = "session"
LARGEST_BODY = 32 * 1024

READ = ("GET", "HEAD")
JSON_HEADERS = {
    "content-type": "application/json",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
}


def is_asked(environment: "WSGIEnvironment") -> bool:
    """Return whether a request is for the console."""
    path: str = environment.get("PATH_INFO", "")
    return path == ROOT or path.startswith(f"{ROOT}/")


class Site:
    """An application that serves the console and passes on all other requests."""

    def __init__(self, application: "WSGIApplication", config: cfg.ConfigOpts) -> None:
        self._application = application
        self._config = config
        self._files = page.load()
        self._signing_in = ThreadLimit(session.PART, session.PATIENCE)

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve a request."""
        if not is_asked(environment):
            return self._application(environment, start_response)
        if environment["PATH_INFO"] == ROOT:
            # Relative, because only the browser has the prefix of the address.
            headers = [("location", "console/"), ("content-length", "0")]
            start_response("308 Permanent Redirect", headers)
            return []
        request = webob.Request(environment)
        try:
            response = self._respond(request)
        except errors.ServiceError as error:
            request_id = environment.get(context.REQUEST_ID)
            document = errors.document(error, str(error), None, request_id)
            response = _json(document, error.status)
            response.headers.update(error.headers)
        answer: Iterable[bytes] = response(environment, start_response)
        return answer

    def _respond(self, request: webob.Request) -> webob.Response:
        name = request.environ["PATH_INFO"].removeprefix(f"{ROOT}/") or page.INDEX
        if name == SESSION:
            return self._respond_session(request)
        if name not in self._files:
            raise errors.NotFound(f"The console has no file {name}.")
        _check_method(request, *READ)
        return _file(request, self._files[name])

    def _respond_session(self, request: webob.Request) -> webob.Response:
        _check_method(request, *READ, "POST")
        if request.method in READ:
            names = {"cloud": self._config.console.cloud or ""}
            names["region"] = self._config.console.region or ""
            door = session.describe(self._config, request.remote_addr or "")
            return _json({"sign_in": door, **names})
        credentials = session.parse(_read_json(request))
        begun = session.begin(self._config, credentials, self._signing_in)
        return _json(dataclasses.asdict(begun), HTTPStatus.CREATED)


def _check_method(request: webob.Request, *methods: str) -> None:
    if request.method not in methods:
        raise errors.MethodNotAllowed(
            "The method specified is not allowed for this resource.", methods
        )


def _file(request: webob.Request, file: page.File) -> webob.Response:
    headers = {**file.headers, "etag": file.tag}
    body = file.body
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"], body = "gzip", file.compressed
    return webob.Response(
        body, headerlist=[*headers.items()], conditional_response=True
    )


def _read_json(request: webob.Request) -> Any:
    """Return the document in a body.

    Requiring its media type keeps out forms on foreign pages, which cannot send it.
    """
    if request.content_type != "application/json":
        raise errors.UnsupportedMediaType(
            f"The media type {request.content_type or None} is not supported, use "
            "application/json"
        )
    is_there = (request.content_length or 0) >= 0
    try:
        body = request.body_file.read(LARGEST_BODY + 1) if is_there else b""
        if not 0 < len(body) <= LARGEST_BODY:
            raise errors.BadRequest(f"The body must have 1 to {LARGEST_BODY} bytes.")
        return json.loads(body)
    except (OSError, ValueError, RecursionError) as exc:
        raise errors.BadRequest(f"Malformed JSON: {exc}") from exc


def _json(document: Any, status: HTTPStatus = HTTPStatus.OK) -> webob.Response:
    body = json.dumps(document).encode()
    return webob.Response(body, int(status), headerlist=[*JSON_HEADERS.items()])
