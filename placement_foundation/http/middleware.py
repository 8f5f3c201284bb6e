"""The layers around the application: request id, log, identity, last-resort 500.

Each is a WSGI application wrapped around another one.
"""

import contextlib
import dataclasses
import logging
import re
import time
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import webob.exc
from oslo_config import cfg
from oslo_context.context import generate_request_id
from oslo_log import log
from oslo_middleware import cors, http_proxy_to_wsgi

from placement_foundation import context
from placement_foundation.http import address, page, quotation
from placement_foundation.observing import telemetry

if TYPE_CHECKING:
    import socket

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LOG = log.getLogger(__name__)

REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
VERSION_KEY = "placement.microversion"
LARGEST_BODY_KEY = "placement.largest_body"
NO_PAGES: Mapping[str, "WSGIApplication"] = types.MappingProxyType({})
# How much of a body that is too large is read and thrown away.
DRAINED, DRAINED_AT_ONCE = 256 * 1024 * 1024, 256 * 1024
# How much of an address is logged, in characters.
LOGGED = 2000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The parts of the surroundings of an application that differ between services.

    ``log_name`` is the name of the log that has a line for each request. ``is_open``
    returns whether a request may be anonymous. Where callers are not authenticated,
    ``identify`` sets the headers that name the caller, and returns whether the caller
    is known.
    """

    log_name: str
    is_open: Callable[["WSGIEnvironment"], bool]
    identify: Callable[["WSGIEnvironment"], bool]


def _nothing() -> None:
    """Do nothing."""


class Surrounded:
    """An application with all that surrounds it.

    ``largest_body`` is that of a request, in bytes. ``elsewhere`` has further
    applications to serve, each at its own socket. ``begin`` is called by the first
    request.
    """

    def __init__(
        self,
        application: "WSGIApplication",
        largest_body: int,
        elsewhere: Sequence[tuple["socket.socket", "WSGIApplication"]],
        begin: Callable[[], object] = _nothing,
    ) -> None:
        self._application = application
        self._begin = begin
        self._has_begun = False
        self.largest_body = largest_body
        self.elsewhere = elsewhere

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Serve a request."""
        environment[LARGEST_BODY_KEY] = self.largest_body
        if not self._has_begun:
            self._has_begun = True
            self._begin()

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            if status.startswith("413"):
                _drain(environment["wsgi.input"])
            return start_response(status, headers, *error)

        return self._application(environment, start)


def _drain(body: Any) -> None:
    """Read the rest of a body that is too large, for its client to see the answer.

    If the connection were closed at once, a client that is still sending would not.
    """
    left = DRAINED
    # Each server has its own errors for a client that has gone.
    with contextlib.suppress(Exception):
        while left > 0 and (data := body.read(DRAINED_AT_ONCE)):
            left -= len(data)


def surround(
    application: "WSGIApplication",
    config: cfg.ConfigOpts,
    around: Surroundings,
    pages: Mapping[str, "WSGIApplication"] = NO_PAGES,
    elsewhere: Sequence[tuple["socket.socket", "WSGIApplication"]] = (),
    begin: Callable[[], object] = _nothing,
) -> Surrounded:
    """Return an application with all that surrounds it, as the options say.

    :param pages: public pages by path, outside of everything else
    :param elsewhere: further applications, each with its own socket
    :param begin: called by the first request
    """
    if config.api.auth_strategy == "noauth2":
        LOG.warning(
            "Callers are not authenticated (auth_strategy = noauth2): every caller may "
            "do anything."
        )
    wrapped: Any = with_context(application, around)
    wrapped = AUTHENTICATION[config.api.auth_strategy](wrapped, config, around)
    if config.cors.allowed_origin:
        wrapped = cors.CORS(wrapped, config)
    wrapped = with_request_log(wrapped, around)
    if config.oslo_middleware.enable_proxy_headers_parsing:
        wrapped = http_proxy_to_wsgi.HTTPProxyToWSGI(wrapped, config)
    wrapped = page.beside(wrapped, pages)
    return Surrounded(wrapped, config.api.max_request_body_size, elsewhere, begin)


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
        context.begin(request_id, environment.get(context.GLOBAL_REQUEST_ID))
        # A request that accepts anything gets our preferred media type.
        if environment.get("HTTP_ACCEPT", "") in ("", "*/*"):
            environment["HTTP_ACCEPT"] = "application/json"
        is_logged = request_log.isEnabledFor(logging.INFO)
        line = _request_line(environment) if is_logged else ""
        # A proxy has written it.
        caller = address.escape_controls(environment.get("REMOTE_ADDR") or "-")
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
                    _header(headers, "content-length"),
                    environment.get(VERSION_KEY, "-"),
                    extra=_facts(environment, code, seconds),
                )
            headers.append(("x-openstack-request-id", request_id))
            return start_response(status, headers, *error)

        with telemetry.request(environment):
            return application(environment, start_logged)

    return logged


def _facts(
    environment: "WSGIEnvironment", status: str, seconds: float
) -> dict[str, object]:
    """Return the content of a line, and more, as fields, for structured logs."""
    asking = environment.get(context.ENVIRONMENT_KEY)
    return {
        "request_id": environment[context.REQUEST_ID],
        "operation": telemetry.operation(),
        "method": quotation.cut(environment["REQUEST_METHOD"]),
        "status": int(status),
        "duration": round(seconds, 6),
        "microversion": environment.get(VERSION_KEY),
        "user": asking and asking.user_id,
        "project": asking and asking.project_id,
    }


def _request_line(environment: "WSGIEnvironment") -> str:
    uri = environment.get("SCRIPT_NAME", "") + environment.get("PATH_INFO", "")
    if environment.get("QUERY_STRING"):
        uri += f"?{environment['QUERY_STRING']}"
    if len(uri) > LOGGED:
        uri = f"{uri[:LOGGED]}... ({len(uri)} characters)"
    line = f'"{quotation.cut(environment["REQUEST_METHOD"])} {uri}"'
    return address.escape_controls(line)


def _header(headers: Iterable[tuple[str, str]], wanted: str) -> str:
    return next((value for name, value in headers if name.lower() == wanted), "-")


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
        inner = application if around.is_open(environment) else authenticated
        return inner(environment, start_response)

    return guarded


def with_noauth(
    application: "WSGIApplication", config: cfg.ConfigOpts, around: Surroundings
) -> "WSGIApplication":
    """Trust the headers of the caller. For tests only."""

    def believed(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        if not around.identify(environment):
            return refuse(environment, start_response)
        return application(environment, start_response)

    return believed


def identify_by_token(environment: "WSGIEnvironment") -> bool:
    """Take a token for a user and a project: ``X-Auth-Token: user:project``.

    The root document needs none.
    """
    if environment.get("PATH_INFO") == "/":
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


AUTHENTICATION = {"keystone": with_keystone, "noauth2": with_noauth}


def with_context(
    application: "WSGIApplication", around: Surroundings
) -> "WSGIApplication":
    """Create the context of a request, and refuse unknown callers."""

    def known(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        asking = context.from_environment(environment)
        if context.is_anonymous(asking) and not around.is_open(environment):
            return refuse(environment, start_response)
        environment[context.ENVIRONMENT_KEY] = asking
        return application(environment, start_response)

    return known


def refuse(
    environment: "WSGIEnvironment", start_response: "StartResponse"
) -> Iterable[bytes]:
    """Answer 401."""
    return webob.exc.HTTPUnauthorized()(environment, start_response)  # type: ignore[no-any-return]
