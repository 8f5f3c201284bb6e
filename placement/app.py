"""Assembly and dispatch: the steps that every request takes, in their order."""

import gc
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import webob
import webob.exc
from oslo_config import cfg
from oslo_log import log
from sqlalchemy.orm import Session

from placement import conf, context, errors, microversion, middleware, policy
from placement.db import api as db_api
from placement.db import migration
from placement.microversion import Version
from placement.objects import standard_name
from placement.operation import Call, Operation, Reply
from placement.routes import ROUTES
from placement.schemas import common, query
from placement.schemas.common import Json, View

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LOG = log.getLogger(__name__)

JSON = "application/json"
# No document of a renderer contains itself, so nothing has to look for that.
ENCODER = json.JSONEncoder(check_circular=False)
# How many objects are made before the young ones are looked at for garbage, and how
# often that is done before the older ones are.
COLLECT_AFTER = (50_000, 20, 20)
READING = "GET"


def start_from_environment() -> "WSGIApplication":
    """Return the service as configuration files and the environment describe it."""
    config = conf.read_for_service()
    set_up_logging(config)
    return start(config)


def set_up_logging(config: cfg.ConfigOpts) -> None:
    """Log as the options say: to stderr, if they name no place."""
    places = ("log_file", "log_dir", "use_syslog", "use_journal")
    if not any(getattr(config, place) for place in places):
        # The library would take stdout, which belongs to the web server.
        config.set_default("use_stderr", True)
    log.setup(config, conf.PROJECT)
    logging.captureWarnings(True)


def start(config: cfg.ConfigOpts) -> "WSGIApplication":
    """Return the service on the database that the configuration names.

    From here on it knows the standard traits and resource classes of the installed
    libraries.

    :raises Exception: the policy file cannot be parsed, or the database cannot be
        reached, or has no tables
    """
    if config.log_options:
        config.log_opt_values(LOG, logging.DEBUG)
    # Nothing is migrated for a service that will not start.
    LOG.debug("callers are authenticated by %s", config.api.auth_strategy)
    enforcer = policy.make_enforcer(config)
    database = db_api.connect(conf.database_settings(config))
    if config.placement_database.sync_on_startup:
        migration.upgrade(database)
    standard_name.synchronise(database)
    # Servers may fork from here on.
    database.rest()
    application = _assemble(config, database, enforcer)
    settle()
    return application


def settle() -> None:
    """Keep the garbage collector from looking at what is there for good.

    A large answer makes so many objects that the collector looks at everything there
    is, in the middle of a request. See docs/decisions/garbage-collection.rst.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def build(config: cfg.ConfigOpts, database: db_api.Database) -> "WSGIApplication":
    """Return the service on a database that is ready, as one WSGI application.

    :raises Exception: the policy file cannot be parsed
    """
    return _assemble(config, database, policy.make_enforcer(config))


def _assemble(
    config: cfg.ConfigOpts, database: db_api.Database, enforcer: policy.Enforcer
) -> "WSGIApplication":
    application = Application(database, conf.settings(config), enforcer)
    return middleware.surround(application, config)


class Application:
    """The API: takes each request through the steps, and turns errors into answers."""

    def __init__(
        self,
        database: db_api.Database,
        settings: conf.Settings,
        enforcer: policy.Enforcer,
    ) -> None:
        self._database = database
        self._settings = settings
        self._enforcer = enforcer

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve a request."""
        request = webob.Request(environment)
        version = None
        try:
            version = _negotiate(request)
            response = self._serve(request, version)
        except errors.PlacementError as error:
            response = _refusal(request, error, version)
        except Exception as exc:
            LOG.exception("Placement API unexpected error: %s", exc)
            version = None
            response = _refusal(
                request,
                errors.InternalError("The log of the service tells more."),
                None,
            )
        if version:
            response.headers["openstack-api-version"] = (
                f"{microversion.SERVICE} {version}"
            )
            response.headers["vary"] = "openstack-api-version"
        return response(environment, start_response)  # type: ignore[no-any-return]

    def _serve(self, request: webob.Request, version: Version) -> webob.Response:
        _check_body_headers(request)
        path = _path(request)
        methods, parameters = find(path)
        operation = methods.get(request.method)
        if operation is None:
            raise errors.MethodNotAllowed(
                "The method specified is not allowed for this resource.", methods
            )
        handler = _check_gates(request, operation, version)
        self._check_policy(request, operation)
        asked = _Asked(request, operation, version)

        def work(session: Session) -> Reply:
            call = asked.call(session, self._settings, parameters)
            return handler(call, **_flags(operation, version))

        # What is sure to fail needs no lock.
        reading = request.method == READING or asked.fault
        reply = (self._database.read if reading else self._database.write)(work)
        return _render(request, operation, reply, version)

    def _check_policy(self, request: webob.Request, operation: Operation) -> None:
        if operation.policy is None:
            return
        target = None
        if operation.policy_project:
            target = {"project_id": _last(request, operation.policy_project)}
        asking = request.environ[context.ENVIRONMENT_KEY]
        policy.authorize(self._enforcer, asking, operation.policy, target)


class _Asked:
    """The query and the body of a request, parsed once, before any transaction.

    What is wrong with them is ``fault``, and is told after the subject was found, or
    at once where there is none.
    """

    def __init__(
        self, request: webob.Request, operation: Operation, version: Version
    ) -> None:
        self._operation = operation
        self.query: Any = None
        self.body: Json = None
        self.fault: errors.PlacementError | None = None
        try:
            self._parse(request, version)
        except errors.PlacementError as fault:
            if operation.subject is None or operation.body_first:
                raise
            self.fault = fault

    def _parse(self, request: webob.Request, version: Version) -> None:
        parse_query = self._operation.query and self._operation.query.at(version)
        if parse_query:
            self.query = parse_query(query.decode(request.query_string))
        schema = self._operation.body and self._operation.body.at(version)
        if schema:
            self.body = common.parse_json(_body(request), schema)

    def call(
        self,
        session: Session,
        settings: conf.Settings,
        parameters: Mapping[str, str],
    ) -> Call[Any]:
        """Return what the handler gets, the subject loaded."""
        subject = None
        if self._operation.subject:
            subject = self._operation.subject(session, **parameters)
        if self.fault:
            raise self.fault
        return Call(session, settings, subject, parameters, self.query, self.body)


def _patterns() -> list[tuple[re.Pattern[str], dict[str, Operation]]]:
    return [
        (re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)), methods)
        for path, methods in ROUTES.items()
    ]


PATTERNS = _patterns()


def find(path: str) -> tuple[dict[str, Operation], dict[str, str]]:
    """Return the methods of a path, and the parameters in it.

    :raises NotFound: no row of the table is for that path
    """
    for pattern, methods in PATTERNS:
        match = pattern.fullmatch(path)
        if match:
            return methods, match.groupdict()
    raise errors.NotFound("")


def _negotiate(request: webob.Request) -> Version:
    try:
        version = microversion.negotiate(request.headers)
    except microversion.Malformed as exc:
        raise errors.MalformedVersion(str(exc)) from exc
    except microversion.Unavailable as exc:
        raise errors.UnavailableVersion(str(exc)) from exc
    request.environ[middleware.VERSION_KEY] = str(version)
    return version


def _path(request: webob.Request) -> str:
    """Return the path that is asked for, decoded; what is no UTF-8 finds nothing."""
    raw: str = request.environ.get("PATH_INFO", "")
    try:
        return raw.encode("latin-1").decode("utf-8", "replace") or "/"
    except UnicodeEncodeError:
        # Clients that call the application without a server decode for themselves.
        return raw


def _check_body_headers(request: webob.Request) -> None:
    try:
        length = int(request.environ.get("CONTENT_LENGTH") or 0)
    except ValueError as exc:
        raise errors.BadRequest("content-length header must be an integer") from exc
    if length > 0 and not request.environ.get("CONTENT_TYPE"):
        raise errors.BadRequest("content-type header required when content-length > 0")


def _check_gates(
    request: webob.Request, operation: Operation, version: Version
) -> Callable[..., Reply]:
    """Return the handler, if the operation is there and speaks what is spoken.

    :raises PlacementError: the operation's ``absent``, 406 or 415
    """
    handler = operation.handler.at(version)
    if operation.media_type_first:
        _check_media_types(request, operation, version)
    if handler is None:
        raise operation.absent("")
    if not operation.media_type_first:
        _check_media_types(request, operation, version)
    return handler


def _check_media_types(
    request: webob.Request, operation: Operation, version: Version
) -> None:
    if operation.body and (operation.body.at(version) or operation.media_type_first):
        # The sentence of a refusal quotes it even if there is none.
        content_type: str = request.environ.setdefault("CONTENT_TYPE", "")
        media_type = content_type.split(";")[0].strip()
        if media_type != JSON:
            raise errors.UnsupportedMediaType(
                f"The media type {media_type or None} is not supported, use {JSON}"
            )
    if (
        request.method == READING
        and operation.reply
        and not operation.accepts_anything
        and request.environ.get("HTTP_ACCEPT", JSON) != JSON
        and not request.accept.acceptable_offers([JSON])
    ):
        raise errors.NotAcceptable(f"Only {JSON} is provided")


def _last(request: webob.Request, name: str) -> str | None:
    """Return the last value of a query parameter, None if there is none to read."""
    try:
        return dict(query.decode(request.query_string)).get(name)
    except errors.BadRequest:
        return None


def _body(request: webob.Request) -> bytes:
    length = int(request.environ.get("CONTENT_LENGTH") or 0)
    if length < 0:
        return b""
    try:
        return request.body  # type: ignore[no-any-return]
    except OSError as exc:
        # The caller has gone in the middle of it.
        raise errors.BadRequest(f"Malformed JSON: {exc}") from exc


def _flags(operation: Operation, version: Version) -> dict[str, bool]:
    return {name: version >= first for name, first in operation.flags.items()}


def _render(
    request: webob.Request, operation: Operation, reply: Reply, version: Version
) -> webob.Response:
    response = webob.Response(status=_status(operation, reply, version))
    renderer = operation.reply and operation.reply.at(version)
    if renderer:
        view = View(version, request.script_name)
        response.content_type = JSON
        response.charset = None
        response.body = ENCODER.encode(renderer(reply.value, view)).encode("ascii")
    else:
        del response.content_type
        response.content_length = 0
    if reply.location:
        response.location = request.application_url + reply.location
    if operation.dated and version >= operation.dated:
        response.headers["cache-control"] = "no-cache"
        response.last_modified = reply.modified
    return response


def _status(operation: Operation, reply: Reply, version: Version) -> int:
    if reply.created:
        return 201
    return operation.status.at(version) or 200


def _refusal(
    request: webob.Request, error: errors.PlacementError, version: Version | None
) -> webob.Response:
    """Return an error as the caller likes to read it: JSON, HTML or plain text."""

    def as_json(body: str, **unused: Any) -> Json:
        request_id = request.environ.get(context.REQUEST_ID)
        detail = webob.exc.strip_tags(body)
        return errors.document(error, detail, version, request_id)

    response = webob.exc.status_map[error.status](
        detail=str(error), json_formatter=as_json
    )
    if isinstance(error, errors.MethodNotAllowed) and error.allow:
        response.headers["allow"] = error.allow
    return response
