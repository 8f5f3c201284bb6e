"""An identity service for tests: it issues tokens, and validates those it knows."""

import datetime
import http.server
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# The credentials of the placement service.
SERVICE_USER, SERVICE_PASSWORD = "placement", "secret of the service"
HOUR = datetime.timedelta(hours=1)
PROJECT_DOMAIN = {"id": "domain-of-projects", "name": "Projects"}


class IdentityServer(http.server.ThreadingHTTPServer):
    """Validates the tokens that were made with ``add_token``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), IdentityHandler)
        self.tokens: dict[str, dict[str, Any]] = {}
        self.validated: list[str] = []
        # Passwords and roles of others than the service, by user name.
        self.passwords: dict[str, tuple[str, tuple[str, ...]]] = {}
        # What was sent to get a token.
        self.asked: list[dict[str, Any]] = []
        self.failing = False
        # Cleared, it lets everybody wait for an answer.
        self.answering = threading.Event()
        self.answering.set()

    @property
    def url(self) -> str:
        """Where the server listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def add_token(
        self,
        *roles: str,
        user: str = "user-of-the-token",
        scope: dict[str, Any] | None = None,
        lifetime: datetime.timedelta = HOUR,
    ) -> str:
        """Return a new token.

        :param scope: what the token is for, as in the document of the token; None is
            the project ``project-of-the-token``
        """
        now = datetime.datetime.now(datetime.UTC)
        token = uuid.uuid4().hex
        if scope is None:
            scope = project_scope("project-of-the-token")
        self.tokens[token] = {
            "methods": ["password"],
            "audit_ids": [uuid.uuid4().hex[:22]],
            "user": {
                "id": user,
                "name": f"name of {user}",
                "domain": {"id": "domain-of-users", "name": "Users"},
            },
            "roles": [{"id": f"id of {role}", "name": role} for role in roles],
            "catalog": [self._catalog_entry()],
            "issued_at": (now - HOUR).strftime("%Y-%m-%dT%H:%M:%S.000000Z"),
            "expires_at": (now + lifetime).strftime("%Y-%m-%dT%H:%M:%S.000000Z"),
            **scope,
        }
        return token

    def _catalog_entry(self) -> dict[str, Any]:
        endpoint = {"id": "id", "interface": "internal", "url": f"{self.url}/v3"}
        return {
            "id": "id",
            "type": "identity",
            "name": "keystone",
            "endpoints": [{**endpoint, "region": "one", "region_id": "one"}],
        }


def project_scope(project: str) -> dict[str, Any]:
    """Return the part of a token that limits it to a project."""
    return {
        "project": {"id": project, "name": "a project", "domain": PROJECT_DOMAIN},
        "is_domain": False,
    }


def options_of(
    server: IdentityServer,
    *,
    password: str = SERVICE_PASSWORD,
    delay_auth_decision: bool = False,
    further: str = "",
) -> str:
    """Return how a service reaches the server, as a section of its configuration.

    :param further: more lines of the section
    """
    return f"""
[keystone_authtoken]
www_authenticate_uri = https://identity.example/v3
auth_type = password
auth_url = {server.url}
username = {SERVICE_USER}
password = {password}
project_name = service
user_domain_name = Default
project_domain_name = Default
http_request_max_retries = 0
delay_auth_decision = {delay_auth_decision}
{further}
"""


class IdentityHandler(http.server.BaseHTTPRequestHandler):
    """Answers as the identity API does, version 3."""

    server: IdentityServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Return the version of the API, or the document of a token."""
        self.server.answering.wait()
        if self.server.failing:
            self._answer(503, {"error": {"code": 503, "message": "out of order"}})
        elif self.path.rstrip("/") in ("", "/v3"):
            self._answer(*self._discover())
        elif self.path.startswith("/v3/auth/tokens"):
            self._answer(*self._validate())
        else:
            self._answer(404, {"error": {"code": 404, "message": "no such path"}})

    def do_POST(self) -> None:
        """Issue a token to those whose password is known."""
        self.server.answering.wait()
        length = int(self.headers["Content-Length"])
        asked = json.loads(self.rfile.read(length))["auth"]
        if self.server.failing:
            self._answer(503, {"error": {"code": 503, "message": "out of order"}})
            return
        self.server.asked.append(asked)
        user = asked["identity"]["password"]["user"]
        known = {
            SERVICE_USER: (SERVICE_PASSWORD, ("service",)),
            **self.server.passwords,
        }
        password, roles = known.get(user["name"], (None, ()))
        if user["password"] != password:
            self._answer(401, {"error": {"code": 401, "message": "who are you?"}})
            return
        token = self.server.add_token(*roles, user=user["name"])
        document = {"token": self.server.tokens[token]}
        self._answer(201, document, {"X-Subject-Token": token})

    def log_message(self, *_args: Any) -> None:
        """Keep quiet."""

    def _discover(self) -> tuple[int, dict[str, Any]]:
        version = {
            "id": "v3.14",
            "status": "stable",
            "links": [{"rel": "self", "href": f"{self.server.url}/v3/"}],
            "media-types": [],
        }
        if self.path.startswith("/v3"):
            return 200, {"version": version}
        return 300, {"versions": {"values": [version]}}

    def _validate(self) -> tuple[int, dict[str, Any]]:
        if self.headers["X-Auth-Token"] not in self.server.tokens:
            return 401, {"error": {"code": 401, "message": "who are you?"}}
        token = self.headers["X-Subject-Token"]
        self.server.validated.append(token)
        if token not in self.server.tokens:
            return 404, {"error": {"code": 404, "message": "no such token"}}
        return 200, {"token": self.server.tokens[token]}

    def _answer(
        self, status: int, document: Any, headers: dict[str, str] | None = None
    ) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def running() -> Iterator[IdentityServer]:
    """Run an identity server."""
    server = IdentityServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.answering.set()
        server.shutdown()
        server.server_close()
        thread.join()
