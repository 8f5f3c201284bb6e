"""The world of the stress test: providers of a few kinds, and their consumers."""

import dataclasses
import http.client
import json
import uuid
from typing import Any
from urllib import parse

VERSION = "1.38"
PATIENCE_SECONDS = 60

# What inventories hold at the least and the most while they change.
SMALL, LARGE = 20, 40


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


@dataclasses.dataclass(frozen=True)
class World:
    """The UUIDs of all who take part.

    ``steady`` providers never change what they have, ``changing`` ones have more and
    less of it, and each process has a pair of its own between which everything moves.
    All processes write to the ``shared`` consumers, each to its own ``private`` ones.
    """

    steady: list[str]
    changing: list[str]
    pairs: list[tuple[str, str]]
    shared: list[str]
    private: list[list[str]]

    @property
    def providers(self) -> list[str]:
        return [*self.steady, *self.changing, *(each for p in self.pairs for each in p)]

    @property
    def consumers(self) -> list[str]:
        return [*self.shared, *(each for some in self.private for each in some)]

    def limit(self, provider: str) -> int:
        """Return what a provider can never be asked for more than."""
        return SMALL if provider in self.steady else LARGE


def create(service: Service, processes: int) -> World:
    """Create a new world, besides whatever the service has already."""
    world = World(
        steady=_uuids(4),
        changing=_uuids(2),
        pairs=[(one, other) for one, other in (_uuids(2) for _ in range(processes))],
        shared=_uuids(3),
        private=[_uuids(6) for _ in range(processes)],
    )
    for provider in world.providers:
        _expect(200, service.call("POST", "/resource_providers", _named(provider)))
    filled = [*world.steady, *world.changing, *(home for home, _ in world.pairs)]
    for provider in filled:
        total = SMALL if provider in world.steady else LARGE
        path = f"/resource_providers/{provider}/inventories"
        _expect(200, service.call("PUT", path, inventories(0, total)))
    return world


def inventories(generation: int, total: int) -> dict[str, Any]:
    """Return all the inventories of a provider; a total of 0 means none."""
    wanted = {"VCPU": {"total": total}, "MEMORY_MB": {"total": total}} if total else {}
    return {"resource_provider_generation": generation, "inventories": wanted}


def _uuids(number: int) -> list[str]:
    return [str(uuid.uuid4()) for _ in range(number)]


def _named(provider: str) -> dict[str, str]:
    return {"uuid": provider, "name": f"stress-{provider}"}


def _expect(status: int, answer: tuple[int, Any]) -> None:
    if answer[0] != status:
        raise Unanswered(f"expected {status}, got {answer}")
