"""Requests to the service under stress."""

import http.client
import json
from typing import Any
from urllib import parse

VERSION = "1.38"
PATIENCE_SECONDS = 60


class Unanswered(Exception):
    """The service did not answer at all."""


class Service:
    """A connection to the service, as an administrator."""

    def __init__(self, url: str) -> None:
        parts = parse.urlsplit(url)
        self._prefix = parts.path.rstrip("/")
        self._connection = http.client.HTTPConnection(
            str(parts.hostname), parts.port or 80, timeout=PATIENCE_SECONDS
        )

    def close(self) -> None:
        """Close the connection; the next call opens one."""
        self._connection.close()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the document of an answer.

        :raises Unanswered: there is no answer
        """
        headers = {
            "x-auth-token": "admin",
            "x-roles": "admin,service",
            "accept": "application/json",
            "openstack-api-version": f"placement {VERSION}",
        }
        raw = None
        if body is not None:
            headers["content-type"] = "application/json"
            raw = json.dumps(body)
        try:
            self._connection.request(method, self._prefix + path, raw, headers)
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as exc:
            self.close()
            raise Unanswered(f"{method} {path}: {exc!r}") from exc
        return response.status, json.loads(answer) if answer else None

    def get(self, path: str) -> Any:
        """Return the document at a path, which must be there.

        :raises Unanswered: it is not there
        """
        status, document = self.call("GET", path)
        if status != 200:
            raise Unanswered(f"GET {path}: {status} {document}")
        return document
