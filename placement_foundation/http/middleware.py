"""The layers around the application: request id, log, identity.

Each is a WSGI application wrapped around another one.
"""

import contextlib
import dataclasses
import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import webob.exc
from oslo_config import cfg
from oslo_context.context import generate_request_id
from oslo_log import log
from oslo_middleware import cors, http_proxy_to_wsgi

from placement_foundation import context, errors
from placement_foundation.context import RequestContext
from placement_foundation.observing import telemetry

if TYPE_CHECKING:
    import socket

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LOG = log.getLogger(__name__)

REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
VERSION_KEY = "placement.microversion"
# How much of a body that is too large is read and thrown away.
DRAINED, DRAINED_AT_ONCE = 256 * 1024 * 1024, 256 * 1024
# Characters that could end a line of the log and forge another one.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# How much of an address is logged, in characters.
LOGGED = 2000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The parts of the surroundings of an application that differ between services.

    ``log_name`` is the name of the log that has a line for each request. ``open_paths``
    are those that anonymous callers may request. Where callers are not authenticated,
    ``identify`` sets the headers that name the caller, and returns whether the caller
    is known. ``headers`` are added to every answer that lacks them.
    """

    log_name: str
    open_paths: Collection[str]
    identify: Callable[["WSGIEnvironment"], bool]
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Surrounded:
    """An application with all that surrounds it, as a server gets it.

    ``pages`` are served instead of it, by path. ``elsewhere`` has further
    applications to serve, each at its own socket. ``begin`` is called by the first
    request.
    """

    def __init__(
        self,
        application: "WSGIApplication",
        pages: Mapping[str, "WSGIApplication"] | None = None,
        elsewhere: Sequence[tuple["socket.socket", "WSGIApplication"]] = (),
        begin: Callable[[], object] = lambda: None,
    ) -> None:
        self._application = application
        self._pages = pages or {}
        self.elsewhere = elsewhere
        self._begin = begin
        self._has_begun = False

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve a request."""
        if not self._has_begun:
            self._has_begun = True
            self._begin()
        page = self._pages.get(environment.get("PATH_INFO", ""), self._application)
        return page(environment, start_response)


def surround(
    application: "WSGIApplication",
    config: cfg.ConfigOpts,
    around: Surroundings,
    beside: Callable[["WSGIApplication"], "WSGIApplication"] | None = None,
) -> "WSGIApplication":
    """Return an application with the layers around it, as the options say.

    :param beside: returns a further layer, which every caller reaches
    """
    if config.api.auth_strategy == "noauth2":
        LOG.warning(
            "Callers are not authenticated (auth_strategy = noauth2): every caller may "
            "do anything."
        )
        wrapped: Any = with_context(application, around, around.identify)
    else:
        wrapped = with_keystone(with_context(application, around), config, around)
    if beside:
        wrapped = beside(wrapped)
    if config.cors.allowed_origin:
        wrapped = cors.CORS(wrapped, config)
    wrapped = with_request_log(wrapped, around)
    if config.oslo_middleware.enable_proxy_headers_parsing:
        wrapped = http_proxy_to_wsgi.HTTPProxyToWSGI(wrapped, config)
    return wrapped  # type: ignore[no-any-return]


def with_request_log(
    application: "WSGIApplication", around: Surroundings
) -> "WSGIApplication":
    """Give each request an id, and write a line about it."""
    request_log = log.getLogger(around.log_name)

    def logged(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        began = time.perf_counter()
        request_id = generate_request_id()
        environment[context.REQUEST_ID] = request_id
        inbound = environment.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
        if REQUEST_ID.fullmatch(inbound):
            environment[context.GLOBAL_REQUEST_ID] = inbound
        # Otherwise log records of this thread would carry the request before.
        RequestContext(
            request_id=request_id,
            global_request_id=environment.get(context.GLOBAL_REQUEST_ID),
        )
        # A request that accepts anything gets our preferred media type.
        if environment.get("HTTP_ACCEPT", "") in ("", "*/*"):
            environment["HTTP_ACCEPT"] = "application/json"
        is_logged = request_log.isEnabledFor(logging.INFO)
        caller, line = _describe(environment) if is_logged else ("", "")
        request_log.debug("Starting request: %s %s", caller, line)

        def start_logged(
            status: str, headers: list[tuple[str, str]], *error: Any
        ) -> Any:
            seconds = time.perf_counter() - began
            code = status.split(" ", 1)[0]
            telemetry.answer(environment, code, seconds)
            if is_logged:
                request_log.info(
                    "%s %s status: %s len: %s microversion: %s",
                    caller,
                    line,
                    code,
                    _header(headers, "content-length") or "-",
                    environment.get(VERSION_KEY, "-"),
                    extra=_facts(environment, code, seconds),
                )
            if code == "413":
                _drain(environment["wsgi.input"])
            headers.append(("x-openstack-request-id", request_id))
            for name, text in around.headers.items():
                if _header(headers, name.lower()) is None:
                    headers.append((name, text))
            return start_response(status, headers, *error)

        with telemetry.request(environment):
            return application(environment, start_logged)

    return logged


def _drain(body: Any) -> None:
    """Read the rest of a body that is too large, for its client to see the answer.

    If the connection were closed at once, a client that is still sending would not.
    """
    left = DRAINED
    # Each server has its own errors for a client that has gone.
    with contextlib.suppress(Exception):
        while left > 0 and (data := body.read(DRAINED_AT_ONCE)):
            left -= len(data)


def _facts(
    environment: "WSGIEnvironment", status: str, seconds: float
) -> dict[str, object]:
    """Return the content of a line, and more, as fields, for structured logs."""
    asking = environment.get(context.ENVIRONMENT_KEY)
    version = environment.get(VERSION_KEY)
    return {
        "request_id": environment[context.REQUEST_ID],
        "operation": environment.get(telemetry.OPERATION, telemetry.NONE),
        "method": errors.quote(environment["REQUEST_METHOD"]),
        "status": int(status),
        "duration": round(seconds, 6),
        "microversion": version and str(version),
        "user": asking and asking.user_id,
        "project": asking and asking.project_id,
    }


def _describe(environment: "WSGIEnvironment") -> tuple[str, str]:
    """Return the caller and the first line of a request, as they are logged."""
    uri = environment.get("SCRIPT_NAME", "") + environment.get("PATH_INFO", "")
    if environment.get("QUERY_STRING"):
        uri += f"?{environment['QUERY_STRING']}"
    if len(uri) > LOGGED:
        uri = f"{uri[:LOGGED]}... ({len(uri)} characters)"
    line = f'"{errors.quote(environment["REQUEST_METHOD"])} {uri}"'
    # A proxy has written the address of the caller.
    caller = environment.get("REMOTE_ADDR") or "-"
    return _escape_controls(caller), _escape_controls(line)


def _escape_controls(text: str) -> str:
    return CONTROL.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _header(headers: Iterable[tuple[str, str]], wanted: str) -> str | None:
    return next((value for name, value in headers if name.lower() == wanted), None)


def with_keystone(
    application: "WSGIApplication", config: cfg.ConfigOpts, around: Surroundings
) -> "WSGIApplication":
    """Let the identity service authenticate callers, except those of open requests."""
    # Loaded late, so that programs without an identity service need not wait.
    from placement_foundation.http import identity

    authenticated = identity.authenticated(application, config)

    def guarded(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        is_open = environment.get("PATH_INFO", "") in around.open_paths
        inner = application if is_open else authenticated
        return inner(environment, start_response)

    return guarded


def with_context(
    application: "WSGIApplication",
    around: Surroundings,
    identify: Callable[["WSGIEnvironment"], bool] = lambda environment: True,
) -> "WSGIApplication":
    """Create the context of a request, and refuse unknown callers.

    :param identify: as in ``Surroundings``
    """

    def known(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        if not identify(environment):
            return _refuse(environment, start_response)
        # Log records of this thread carry it from here on.
        asking = RequestContext.from_environ(dict(environment))
        is_open = environment.get("PATH_INFO", "") in around.open_paths
        # A user with an empty name is known.
        if asking.user_id is None and not is_open:
            return _refuse(environment, start_response)
        environment[context.ENVIRONMENT_KEY] = asking
        return application(environment, start_response)

    return known


def _refuse(
    environment: "WSGIEnvironment", start_response: "StartResponse"
) -> Iterable[bytes]:
    return webob.exc.HTTPUnauthorized()(environment, start_response)  # type: ignore[no-any-return]


def identify_by_token(
    environment: "WSGIEnvironment", open_paths: Collection[str]
) -> bool:
    """Take a token for a user and a project: ``X-Auth-Token: user:project``.

    :param open_paths: those of requests that need none
    """
    if environment.get("PATH_INFO") in open_paths:
        return True
    token = environment.get("HTTP_X_AUTH_TOKEN")
    if token is None:
        return False
    # Roles are those of the token, or of X-Roles.
    environment.pop("HTTP_X_ROLE", None)
    user, _, project = token.partition(":")
    environment["HTTP_X_USER_ID"] = user
    if not environment.get("HTTP_OPENSTACK_SYSTEM_SCOPE"):
        environment["HTTP_X_TENANT_ID"] = project or user
    if "HTTP_X_ROLES" not in environment and user == "admin":
        environment["HTTP_X_ROLES"] = "admin"
    return True


def identify_as_administrator(environment: "WSGIEnvironment") -> bool:
    """Take any caller, with any token or none, for an administrator of one project."""
    environment["HTTP_X_USER_ID"] = "admin"
    environment["HTTP_X_TENANT_ID"] = "admin"
    environment["HTTP_X_ROLES"] = "admin"
    return True
