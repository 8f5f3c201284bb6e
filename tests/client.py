"""A client of the API, for tests that call the application directly."""

import dataclasses
import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import webob

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

# Amounts by resource class name, by provider UUID.
Amounts = Mapping[str, Mapping[str, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the service; the document is None if there is none."""

    status: int
    document: Any

    @property
    def detail(self) -> str:
        return str(self.document["errors"][0]["detail"])

    @property
    def code(self) -> str:
        return str(self.document["errors"][0]["code"])


class Client:
    """An administrator's client of an application."""

    def __init__(self, application: "WSGIApplication", user: str = "admin") -> None:
        self._application = application
        self._user = user

    def known_as(self, user: str) -> "Client":
        """Return a client of another administrator."""
        return Client(self._application, user)

    def call(
        self, method: str, path: str, body: Any = None, version: str = "latest"
    ) -> Answer:
        response = self.send(method, path, body, version)
        document = json.loads(response.body) if response.body else None
        return Answer(response.status_int, document)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        version: str = "latest",
        **headers: str,
    ) -> webob.Response:
        """Return the whole response; underscores in names of headers are dashes."""
        request = webob.Request.blank(path, method=method)
        request.environ["wsgi.multithread"] = True
        request.headers["x-auth-token"] = self._user
        request.headers["x-roles"] = "admin"
        request.headers["openstack-api-version"] = f"placement {version}"
        if body is not None:
            request.content_type = "application/json"
            request.body = json.dumps(body).encode()
        for name, value in headers.items():
            request.headers[name.replace("_", "-")] = value
        return request.get_response(self._application)

    def get(self, path: str) -> Any:
        """Return the document at a path, which must exist."""
        answer = self.call("GET", path)
        assert answer.status == 200, answer
        return answer.document

    def make_provider(self, **totals: int) -> str:
        """Create a root provider with inventories, and return its UUID."""
        provider = new_uuid()
        self.make_provider_again(provider, **totals)
        return provider

    def make_provider_again(self, provider: str, **totals: int) -> None:
        """Create a root provider that has been deleted, with other inventories."""
        body: Any = {"uuid": provider, "name": provider}
        assert self.call("POST", "/resource_providers", body).status == 200
        body = {
            "resource_provider_generation": 0,
            "inventories": {name: {"total": total} for name, total in totals.items()},
        }
        path = f"/resource_providers/{provider}/inventories"
        assert self.call("PUT", path, body).status == 200

    def boot(self, query: str) -> str | None:
        """Claim the first candidate for a new consumer, and return its UUID, if any."""
        answer = self.get(f"/allocation_candidates?{query}")
        for candidate in answer["allocation_requests"]:
            server = new_uuid()
            body = {
                **candidate,
                "project_id": "blue",
                "user_id": "ann",
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            }
            path = f"/allocations/{server}"
            assert self.call("PUT", path, body).status == 204
            return server
        return None

    def claim(self, consumer: str, amounts: Amounts, **about: Any) -> Answer:
        """Replace the allocations of a consumer, by default a new one."""
        return self.call("PUT", f"/allocations/{consumer}", wants(amounts, **about))

    def place(
        self, consumers: list[str], query: str = "resources=VCPU:1", **more: Any
    ) -> Answer:
        """Choose hosts for new consumers and claim them, in one request."""
        body = {
            "query": query,
            "consumers": consumers,
            "project_id": "team-blue",
            "user_id": "robot-7",
            "consumer_type": "INSTANCE",
            **more,
        }
        return self.call("POST", "/ledger/v1/placements", body)

    def usages(self, provider: str) -> dict[str, int]:
        document = self.get(f"/resource_providers/{provider}/usages")
        return dict(document["usages"])

    def generation(self, provider: str) -> int:
        return int(self.get(f"/resource_providers/{provider}")["generation"])


def wants(
    amounts: Amounts,
    generation: int | None = None,
    project: str = "team-blue",
    user: str = "robot-7",
    consumer_type: str = "INSTANCE",
) -> dict[str, Any]:
    """Return the body of a request for one consumer, at the latest microversion."""
    return {
        "allocations": {
            provider: {"resources": dict(resources)}
            for provider, resources in amounts.items()
        },
        "project_id": project,
        "user_id": user,
        "consumer_generation": generation,
        "consumer_type": consumer_type,
    }


def new_uuid() -> str:
    """Return a new UUID."""
    return str(uuid.uuid4())
