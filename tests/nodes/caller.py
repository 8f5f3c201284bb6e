"""A client of the bare metal API, for tests that call the application directly."""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import webob

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LATEST = "1.37"


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the service; the document is None if there is none."""

    status: int
    document: Any
    headers: Mapping[str, str]

    @property
    def fault(self) -> str:
        """The message of an error."""
        told = json.loads(self.document["error_message"])
        assert told["faultcode"] == ("Client" if self.status < 500 else "Server")
        return str(told["faultstring"])


class Caller:
    """A client of the application."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        version: str | None = LATEST,
        headers: Mapping[str, str] | None = None,
    ) -> webob.Response:
        request = webob.Request.blank(path, method=method)
        if version:
            request.headers["OpenStack-API-Version"] = f"baremetal {version}"
        if body is not None:
            request.content_type = "application/json"
            request.body = (
                body if isinstance(body, bytes) else json.dumps(body).encode()
            )
        request.headers.update(headers or {})
        return request.get_response(self._application)

    def call(self, method: str, path: str, body: Any = None, **how: Any) -> Answer:
        """Send a request; return the answer, which is JSON or empty."""
        response = self.send(method, path, body, **how)
        document = json.loads(response.body) if response.body else None
        return Answer(response.status_int, document, response.headers)

    def get(self, path: str, version: str = LATEST) -> Any:
        """Return the document at a path, which must exist."""
        answer = self.call("GET", path, version=version)
        assert answer.status == 200, answer
        return answer.document

    def enrol(self, name: str, *traits: str, **about: Any) -> str:
        """Create a node with traits, and return its UUID."""
        body = {"driver": "fake-hardware", "name": name, **about}
        answer = self.call("POST", "/v1/nodes", body)
        assert answer.status == 201, answer
        if traits:
            self.set_traits(name, traits)
        return str(answer.document["uuid"])

    def set_traits(self, node: str, traits: Iterable[str]) -> None:
        body = {"traits": list(traits)}
        answer = self.call("PUT", f"/v1/nodes/{node}/traits", body)
        assert answer.status == 200, answer

    def traits(self, node: str) -> list[str]:
        return list(self.get(f"/v1/nodes/{node}/traits")["traits"])

    def provision(self, node: str, *targets: str) -> None:
        for target in targets:
            answer = self.call(
                "PUT", f"/v1/nodes/{node}/states/provision", {"target": target}
            )
            assert answer.status == 202, answer

    def patch(self, node: str, *operations: Mapping[str, Any]) -> Answer:
        return self.call("PATCH", f"/v1/nodes/{node}", list(operations))

    def change(self, node: str, **fields: Any) -> None:
        """Give new values to fields of a node."""
        answer = self.patch(
            node,
            *(
                {"op": "add", "path": f"/{name}", "value": value}
                for name, value in fields.items()
            ),
        )
        assert answer.status == 200, answer

    def names(self, query: str = "") -> list[str]:
        """Return the names of the nodes in a list, in its order."""
        nodes = self.get(f"/v1/nodes?{query}")["nodes"]
        return [str(node["name"]) for node in nodes]
