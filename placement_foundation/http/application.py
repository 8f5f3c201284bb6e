"""The steps that every request takes, in their order."""

import contextlib
import dataclasses
import functools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
import webob
import webob.exc
from oslo_log import log

from placement_foundation import context, ending, errors
from placement_foundation.context import RequestContext
from placement_foundation.database import trouble
from placement_foundation.database.origin import Origin
from placement_foundation.database.storage import Database
from placement_foundation.http import (
    middleware,
    query_string,
    schema,
)
from placement_foundation.http.answer import JSON, Answer, offers_of
from placement_foundation.http.operation import (
    Call,
    Deviation,
    Edition,
    Handler,
    Operation,
    edition,
)
from placement_foundation.http.policy import Enforcer
from placement_foundation.http.router import Router
from placement_foundation.http.schema import Json
from placement_foundation.http.version import Version
from placement_foundation.observing import telemetry

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

LOG = log.getLogger(__name__)

READING = "GET"
# Many groups of resources, or many aggregates, make a long query.
LONGEST_ADDRESS = query_string.LONGEST
PARTS_OF_ADDRESS = ("SCRIPT_NAME", "PATH_INFO", "QUERY_STRING")
TOO_HEAVY = "Too many long-running requests are in progress. Please retry."
UNLIMITED = sys.maxsize - 1
# How much of the path of a write is recorded, in characters.
LONGEST_ORIGIN = 500

# Of a whole message, including the part of a schema that it shows, in characters.
LONGEST_MESSAGE = 4000
# The parts of a request that messages for people quote.
QUOTED = ("REQUEST_METHOD", "HTTP_ACCEPT", "CONTENT_TYPE")

# The operations of a service: path, method, row.
Table = Mapping[str, Mapping[str, Operation]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The parts of the steps of a request that differ between services.

    ``negotiate`` returns the microversion that the headers of a request ask for;
    ``newest_by_default`` of a row is its argument, and ``newest`` is the highest
    microversion. ``version_headers`` returns
    the headers of an answer at a microversion, or at None if none was agreed on.
    ``document`` makes that of an error from the error, its message as it is shown, the
    same microversion, and the id of the request. It is JSON; with ``other_errors``, a
    caller that accepts only HTML or plain text gets that. ``call`` is the class of the
    calls that handlers get.
    """

    name: str
    routes: Table
    negotiate: Callable[..., Version]
    version_headers: Callable[[Version | None], Mapping[str, str]]
    document: Callable[[errors.ServiceError, str, Version | None, str | None], Json]
    other_errors: bool = False
    call: type[Call[Any, Any]] = Call
    newest: Version | None = None


class _Place(NamedTuple):
    """The operations of a path, by method, and the parameters in it.

    With ``newest``, a request that names no microversion gets the highest one, and the
    errors of every request are those of the highest.
    """

    methods: Mapping[str, Operation]
    parameters: dict[str, str]
    newest: bool


class _Asked(NamedTuple):
    """The query and the body of a request, parsed.

    ``fault`` is the error in them. It is raised after the subject was found, or at once
    if the path names none.
    """

    query: Any
    body: Json
    fault: errors.ServiceError | None = None


class Application:
    """A service: takes each request through the steps, and turns errors into answers.

    :param given: the ``context`` of each call
    :param most_heavy: the most heavy requests in progress at a time: their threads
        compute without a pause, and share the interpreter with those of claims
    :param largest_body: the size of the largest body of a request, in bytes
    """

    def __init__(
        self,
        service: Service,
        database: Database,
        given: Any,
        enforcer: Enforcer,
        most_heavy: int = 1,
        largest_body: int = UNLIMITED,
    ) -> None:
        self._largest_body = largest_body
        self._heavy = threading.BoundedSemaphore(most_heavy)
        self._service = service
        self._database = database
        self._given = given
        self._enforcer = enforcer
        self._router = Router(service.routes)
        self._newest = frozenset(
            template
            for template, methods in service.routes.items()
            if any(row.newest_by_default for row in methods.values())
        )

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve a request."""
        response = self._respond(webob.Request(environment))
        body: Iterable[bytes] = response(environment, start_response)
        return body

    def _respond(self, request: webob.Request) -> webob.Response:
        """Return the response to a request."""
        version = place = None
        try:
            place = self._find(request)
            version = self._negotiate(request, place)
            response = self._serve(request, version, place)
        except errors.ServiceError as error:
            if isinstance(error, errors.DatabaseUnavailable) and error.__cause__:
                LOG.error(
                    "the database is not available: %s",
                    trouble.describe(error.__cause__),
                )
            # Where the newest microversion is the default, every error is one of it.
            newest = self._service.newest if place and place.newest else version
            response = self._refuse(request, error, version and newest)
        except Exception as exc:
            LOG.exception("%s unexpected error: %s", self._service.name, exc)
            version = None
            bug = errors.InternalError("The log of the service has the details.")
            response = self._refuse(request, bug, None)
        _add_headers(response, self._service.version_headers(version))
        return response

    def _refuse(
        self,
        request: webob.Request,
        error: errors.ServiceError,
        version: Version | None,
    ) -> webob.Response:
        environment, service = request.environ, self._service

        def show(message: str) -> Json:
            request_id = environment.get(context.REQUEST_ID)
            return service.document(error, message, version, request_id)

        message = errors.quote(str(error), LONGEST_MESSAGE)
        if service.other_errors:
            for name in QUOTED:
                if name in environment:
                    environment[name] = errors.quote(environment[name])
            response = webob.exc.status_map[error.status](
                detail=message,
                json_formatter=lambda body, **_: show(webob.exc.strip_tags(body)),
            )
        else:
            response = webob.Response(status=int(error.status), json_body=show(message))
        response.headers.update(error.headers)
        return response

    def _find(self, request: webob.Request) -> _Place | None:
        """Return the requested place; None if no row of the table matches the path."""
        try:
            template, parameters = self._router.find(_path(request))
        except errors.NotFound:
            return None
        request.environ[telemetry.OPERATION] = template
        methods = self._service.routes[template]
        return _Place(methods, parameters, template in self._newest)

    def _negotiate(self, request: webob.Request, place: _Place | None) -> Version:
        newest = place is not None and place.newest
        version = self._service.negotiate(request.headers, newest_by_default=newest)
        request.environ[middleware.VERSION_KEY] = version
        return version

    def _serve(
        self,
        request: webob.Request,
        version: Version,
        place: _Place | None,
    ) -> webob.Response:
        _check_sizes(request, self._largest_body)
        _check_body_headers(request)
        if place is None:
            raise errors.NotFound("")
        operation = place.methods.get(request.method)
        if operation is None:
            raise errors.MethodNotAllowed(
                "The method specified is not allowed for this resource.", place.methods
            )
        now = edition(operation, version)
        handler = _check_gates(request, now)
        self._check_policy(request, operation)
        asked = _parse(request, now, self._largest_body)
        answer = Answer(request, now)
        with self._turn(operation, asked):
            with _counting(operation):
                call = self._call(place.parameters, asked, answer)
                if asked.fault:
                    if operation.subject:
                        self._database.read(call.load)
                    raise asked.fault
                done = handler(call, **now.flags)
            return done if isinstance(done, webob.Response) else answer.render(done)

    @contextlib.contextmanager
    def _turn(self, operation: Operation, asked: _Asked) -> Iterator[None]:
        """Take a turn for a request that may take seconds; a refusal never does.

        :raises Busy: too many of them are in progress
        """
        heavy = operation.heavy
        if callable(heavy) and not asked.fault:
            heavy = heavy(asked.query, asked.body)
        if asked.fault or not heavy:
            yield
            return
        if not self._heavy.acquire(blocking=False):
            raise errors.Busy(TOO_HEAVY)
        try:
            yield
        finally:
            self._heavy.release()

    def _call(
        self, parameters: Mapping[str, str], asked: _Asked, answer: Answer
    ) -> Call[Any, Any]:
        """Return the call for the handler of a request.

        :raises BadRequest: the path is wrong
        """
        environment, now = answer.request.environ, answer.edition
        operation = now.operation
        asking = environment.get(context.ENVIRONMENT_KEY)

        def load(connection: sa.Connection) -> Any:
            if now.subject is None:
                raise ValueError("the path of the row names nothing that is stored")
            subject = now.subject(connection, **parameters)
            if operation.policy and operation.owner:
                owner = {"project_id": operation.owner(subject)}
                self._enforcer.authorize(operation.policy, asking, owner)
            return subject

        return self._service.call(
            self._database,
            _origin(answer.request, asking),
            self._given,
            load,
            operation.parse_path(**parameters) if operation.parse_path else None,
            parameters,
            asked.query,
            asked.body,
            asking,
            functools.partial(self._enforcer.allows, asking),
            answer.knows,
            answer.store,
            functools.partial(ending.is_near, environment),
        )

    def _check_policy(self, request: webob.Request, operation: Operation) -> None:
        if operation.policy is None:
            return
        target = None
        if operation.policy_project:
            pairs = query_string.decode(request.query_string, "replace")
            project = query_string.last(pairs, operation.policy_project)
            target = {"project_id": project}
        asking = request.environ[context.ENVIRONMENT_KEY]
        self._enforcer.authorize(operation.policy, asking, target)


def _counting(operation: Operation) -> contextlib.AbstractContextManager[object]:
    measure = operation.counted
    return telemetry.outcome(measure) if measure else contextlib.nullcontext()


def _parse(request: webob.Request, now: Edition, largest_body: int) -> _Asked:
    """Return the query and the body of a request, parsed once for all attempts."""
    operation = now.operation
    query = body = None
    try:
        if now.query:
            query = query_string.read(request.query_string, now.query)
        if now.body:
            raw = _body(request, largest_body)
            if raw or Deviation.BODY_OPTIONAL not in operation.deviation:
                body = schema.parse_json(raw, now.body)
    except errors.ServiceError as fault:
        names_nothing = not (operation.subject or operation.parse_path)
        if names_nothing or Deviation.BODY_FIRST in operation.deviation:
            raise
        return _Asked(None, None, fault)
    return _Asked(query, body)


def _origin(request: webob.Request, asking: RequestContext | None) -> Origin:
    """Return the origin of the writes of a request, for the journal."""
    line = f"{request.method} {_path(request)}"[:LONGEST_ORIGIN]
    if asking is None:
        return Origin(line, request.environ.get(context.REQUEST_ID))
    return Origin(
        line,
        asking.request_id,
        asking.global_request_id,
        asking.user_id,
        asking.user_name,
        asking.project_id,
        asking.project_name,
    )


def _add_headers(response: webob.Response, headers: Mapping[str, str]) -> None:
    """Add headers to an answer; names that ``Vary`` has already stay there."""
    listed = response.headerlist
    varies = [value for name, value in listed if name.lower() == "vary"]
    if varies and "vary" in headers:
        response.headers.update(headers)
        response.headers["vary"] = ", ".join([*varies, headers["vary"]])
    else:
        listed.extend(headers.items())


def _path(request: webob.Request) -> str:
    """Return the requested path, decoded.

    Bytes that are not valid UTF-8 become characters that occur in no path.
    """
    raw: str = request.environ.get("PATH_INFO", "")
    try:
        return raw.encode("latin-1").decode("utf-8", "replace") or "/"
    except UnicodeEncodeError:
        # Callers that use the application without a server have decoded it already.
        return raw


def _check_sizes(request: webob.Request, largest_body: int) -> None:
    """Refuse a request that is too large, before it is read.

    :raises AddressTooLong: the path and the query have more than a million characters
    :raises BodyTooLarge: the body is larger than the service reads
    """
    environment = request.environ
    parts = [environment.get(part, "") for part in PARTS_OF_ADDRESS]
    if sum(map(len, parts)) > LONGEST_ADDRESS:
        raise errors.AddressTooLong(f"It has more than {LONGEST_ADDRESS} bytes.")
    length: str = environment.get("CONTENT_LENGTH") or "0"
    if length.isdecimal() and int(length[:20]) > largest_body:
        raise _too_large(largest_body)


def _too_large(largest_body: int) -> errors.BodyTooLarge:
    return errors.BodyTooLarge(
        f"The largest body that is read has {largest_body} bytes."
    )


def _check_body_headers(request: webob.Request) -> None:
    try:
        length = int(request.environ.get("CONTENT_LENGTH") or 0)
    except ValueError as exc:
        raise errors.BadRequest("content-length header must be an integer") from exc
    if length > 0 and not request.environ.get("CONTENT_TYPE"):
        raise errors.BadRequest("content-type header required when content-length > 0")


def _check_gates(request: webob.Request, now: Edition) -> Handler:
    """Return the handler, if the operation exists and the media types fit.

    :raises ServiceError: the operation's ``absent``, 406 or 415
    """
    if now.handler or Deviation.MEDIA_TYPE_FIRST in now.operation.deviation:
        _check_media_types(request, now)
    if now.handler is None:
        raise now.operation.absent("")
    return now.handler


def _check_media_types(request: webob.Request, now: Edition) -> None:
    operation = now.operation
    if (
        operation.body
        and Deviation.BODY_OPTIONAL not in operation.deviation
        and (now.body or Deviation.MEDIA_TYPE_FIRST in operation.deviation)
    ):
        # The message of a refusal quotes the header, even if the request has none.
        content_type: str = request.environ.setdefault("CONTENT_TYPE", "")
        media_type = content_type.split(";")[0].strip()
        if media_type != JSON:
            raise errors.UnsupportedMediaType(
                f"The media type {media_type or None} is not supported, use {JSON}"
            )
    if (
        request.method == READING
        and operation.reply
        and Deviation.ACCEPTS_ANYTHING not in operation.deviation
        and request.environ.get("HTTP_ACCEPT", JSON) != JSON
        and not request.accept.acceptable_offers(offers_of(operation))
    ):
        offers = " or ".join(offers_of(operation))
        raise errors.NotAcceptable(f"Only {offers} is provided")


def _body(request: webob.Request, largest: int) -> bytes:
    length = int(request.environ.get("CONTENT_LENGTH") or 0)
    if length < 0:
        return b""
    try:
        # The size of a chunked body is not known in advance.
        raw: bytes = request.body if length else request.body_file.read(largest + 1)
    except Exception as exc:
        # The caller hung up in the middle of it, or the server cannot parse it. Each
        # server raises its own errors for that.
        raise errors.BadRequest(f"Malformed JSON: the body ends early: {exc}") from exc
    if len(raw) > largest:
        raise _too_large(largest)
    return raw
