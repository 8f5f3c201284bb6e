"""The console next to the API: its files, and its sign-in.

The files are public, and the same for all callers. The page gets its data from the
public APIs, like any other client.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from placement import errors
from placement.console import page, session
from placement_foundation import context

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


@dataclasses.dataclass(frozen=True, slots=True)
class ConsoleReply:
    """An answer to a request: a status, headers and a body."""

    status: HTTPStatus
    headers: Mapping[str, str]
    body: bytes = b""


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
        self._signing_in = session.make_limit()

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve a request."""
        if not is_asked(environment):
            return self._application(environment, start_response)
        try:
            answer = self._answer(environment)
        except errors.ServiceError as error:
            answer = _refusal(environment, error)
        headers = dict(answer.headers)
        if answer.status is not HTTPStatus.NOT_MODIFIED:
            # A 304 would have the length of the file that the browser already has.
            headers["content-length"] = str(len(answer.body))
        status = f"{answer.status.value} {answer.status.phrase}"
        start_response(status, [*headers.items()])
        return [] if environment["REQUEST_METHOD"] == "HEAD" else [answer.body]

    def _answer(self, environment: "WSGIEnvironment") -> ConsoleReply:
        path = environment["PATH_INFO"]
        if path == ROOT:
            # Relative, because only the browser has the prefix of the address.
            return ConsoleReply(HTTPStatus.PERMANENT_REDIRECT, {"location": "console/"})
        name = path.removeprefix(f"{ROOT}/") or page.INDEX
        if name == SESSION:
            return self._answer_session(environment)
        if name not in self._files:
            raise errors.NotFound(f"The console has no file {name}.")
        _check_method(environment, *READ)
        return _file(environment, self._files[name])

    def _answer_session(self, environment: "WSGIEnvironment") -> ConsoleReply:
        _check_method(environment, *READ, "POST")
        if environment["REQUEST_METHOD"] in READ:
            caller = environment.get("REMOTE_ADDR", "")
            names = {"cloud": self._config.console.cloud or ""}
            names["region"] = self._config.console.region or ""
            door = session.describe(self._config, caller)
            return _json({"sign_in": door, **names})
        credentials = session.parse(_read_json(environment))
        begun = session.begin(self._config, credentials, self._signing_in)
        return _json(dataclasses.asdict(begun), HTTPStatus.CREATED)


def _check_method(environment: "WSGIEnvironment", *methods: str) -> None:
    if environment["REQUEST_METHOD"] not in methods:
        raise errors.MethodNotAllowed(
            "The method specified is not allowed for this resource.", methods
        )


def _file(environment: "WSGIEnvironment", file: page.File) -> ConsoleReply:
    headers = {**file.headers, "etag": file.tag}
    cached_tags = environment.get("HTTP_IF_NONE_MATCH", "")
    if file.tag in (tag.strip().removeprefix("W/") for tag in cached_tags.split(",")):
        return ConsoleReply(HTTPStatus.NOT_MODIFIED, headers)
    if "gzip" in environment.get("HTTP_ACCEPT_ENCODING", ""):
        headers["content-encoding"] = "gzip"
        return ConsoleReply(HTTPStatus.OK, headers, file.compressed)
    return ConsoleReply(HTTPStatus.OK, headers, file.body)


def _read_json(environment: "WSGIEnvironment") -> Any:
    """Return the document in a body.

    Requiring its media type keeps out forms on foreign pages, which cannot send it.
    """
    media_type = environment.get("CONTENT_TYPE", "").split(";")[0].strip()
    if media_type != "application/json":
        raise errors.UnsupportedMediaType(
            f"The media type {media_type or None} is not supported, use "
            "application/json"
        )
    try:
        length = int(environment.get("CONTENT_LENGTH") or 0)
    except ValueError as exc:
        raise errors.BadRequest("content-length header must be an integer") from exc
    most = LARGEST_BODY + 1
    if not environment.get("wsgi.input_terminated"):
        # Without this mark, a body ends where its header says.
        most = max(0, min(length, most))
    body = environment["wsgi.input"].read(most)
    if not 0 < len(body) <= LARGEST_BODY:
        raise errors.BadRequest(f"The body must have 1 to {LARGEST_BODY} bytes.")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise errors.BadRequest(f"Malformed JSON: {exc}") from exc


def _json(document: Any, status: HTTPStatus = HTTPStatus.OK) -> ConsoleReply:
    return ConsoleReply(status, JSON_HEADERS, json.dumps(document).encode())


def _refusal(
    environment: "WSGIEnvironment", error: errors.ServiceError
) -> ConsoleReply:
    request_id = environment.get(context.REQUEST_ID)
    document = errors.document(error, str(error), None, request_id)
    answer = _json(document, HTTPStatus(error.status))
    return dataclasses.replace(answer, headers={**answer.headers, **error.headers})
