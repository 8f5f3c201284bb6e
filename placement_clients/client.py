"""The Placement API over HTTP, for programs that use it.

::

    from placement_clients import client
    from placement_clients.record import TRAITS

    placement = client.from_config(config)              # an oslo.config [placement]
    placement = client.from_environment(url=..., token=...)    # or OS_* variables

    candidates = placement.list_candidates("resources=VCPU:1")
    placement.change(provider, TRAITS, lambda traits: traits | {"CUSTOM_GOLD"})

Every operation of the Placement API names the lowest microversion that it needs, and
sends that one unless another is given. A refusal is raised as an exception of
``placement_clients.errors``, one for each kind, with status, code, detail and request
id. For all other paths, there are ``get``, ``put``, ``post`` and ``delete``.

A client keeps one session, with its connections and its token: create one for a process
and share it. ``for_request`` returns the same client on behalf of one inbound request.
"""

from collections.abc import Callable, Collection
from typing import TypeVar

from oslo_config import cfg

from placement_clients import access, record
from placement_clients.adapter import Adapter, Query, path_of
from placement_clients.record import Candidates, Held, Json, Part, Provider

T = TypeVar("T")
# Some servers accept no first line of more than 4094 characters; a comma becomes three.
LONGEST_LIST = 2000
PARSE_TRAITS = record.parser_with(traits=list)


class Client(Adapter):
    """A client of Placement: its operations, by values."""

    def list_providers(
        self, *, version: str = "1.14", **filters: str | None
    ) -> list[Provider]:
        """List the resource providers that match all given filters.

        :param filters: parameters of the query; None is no filter
        """
        query = {name: value for name, value in filters.items() if value is not None}
        document = self.get("/resource_providers", version=version, query=query)
        return record.parse_providers(document)

    def get_provider(self, uuid: str, *, version: str = "1.14") -> Provider:
        """Return a resource provider.

        :raises NotFound: there is no such provider
        """
        path = path_of("resource_providers", uuid)
        return record.parse_provider(self.get(path, version=version))

    def create_provider(
        self, name: str, *, uuid: str | None = None, parent: str | None = None
    ) -> Provider:
        """Create a resource provider; without a UUID, Placement chooses one.

        :raises Conflict: the name or the UUID is taken
        """
        members = {"name": name, "uuid": uuid, "parent_provider_uuid": parent}
        body = {key: value for key, value in members.items() if value is not None}
        answer = self.post("/resource_providers", body, version="1.20")
        return record.parse_provider(answer)

    def get_part(self, provider: str, part: Part[T]) -> Held[T]:
        """Return a part of a provider, such as ``TRAITS``.

        :raises NotFound: there is no such provider
        """
        path = path_of("resource_providers", provider, part.name)
        return record.parse_held(part, self.get(path, version=part.version))

    def replace(
        self, provider: str, part: Part[T], generation: int, value: T
    ) -> Held[T]:
        """Replace a part of a provider. Traits and classes must exist.

        :raises Conflict: the generation is out of date (``lost_race``), or a class that
            is left out has allocations (``in_use``)
        """
        path = path_of("resource_providers", provider, part.name)
        body = {
            "resource_provider_generation": generation,
            part.name: part.render(value),
        }
        return record.parse_held(part, self.put(path, body, version=part.version))

    def change(self, provider: str, part: Part[T], change: Callable[[T], T]) -> Held[T]:
        """Change a part of a provider, even while others change it.

        Nothing is written if nothing changes.

        :param change: takes the value and returns the new one; called again if a race
            is lost
        """

        def work() -> Held[T]:
            held = self.get_part(provider, part)
            value = change(held.value)
            if value == held.value:
                return held
            return self.replace(provider, part, held.generation, value)

        return self.retry_lost_races(work)

    def list_traits(self, names: Collection[str]) -> frozenset[str]:
        """Return those among given traits that exist."""
        listed = ",".join(sorted(names))
        query = {"name": f"in:{listed}"} if len(listed) <= LONGEST_LIST else {}
        document = self.get("/traits", version="1.6", query=query)
        return frozenset(PARSE_TRAITS(document)["traits"]) & frozenset(names)

    def get_allocations(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return the allocations of a consumer: amounts by class, by provider."""
        path = path_of("allocations", consumer)
        return record.parse_resources(self.get(path, version="1.28"))

    def list_allocations_of_provider(self, provider: str) -> dict[str, dict[str, int]]:
        """Return the allocations on a provider: amounts by class, by consumer.

        :raises NotFound: there is no such provider
        """
        path = path_of("resource_providers", provider, "allocations")
        return record.parse_resources(self.get(path, version="1.0"))

    def list_candidates(self, query: Query) -> Candidates:
        """Return the allocation candidates for a request, in Placement's order.

        :raises BadRequest: the query is malformed, or names something that does not
            exist
        """
        path = "/allocation_candidates"
        return record.parse_candidates(self.get(path, version="1.36", query=query))

    def get_ledger(self, name: str, query: Query = "", **members: type) -> Json:
        """Return a document of the ledger API.

        :param members: what it must have, to be recognised, and of which types
        :raises NotFound: the service has no ledger API
        """
        path = f"/ledger/v1/{name}"
        document = self.get(path, version="latest", query=query)
        return record.parser_with(**members)(document)


def from_config(config: cfg.ConfigOpts, group: str = access.GROUP) -> Client:
    """Return a client for the service that a group of a configuration describes.

    :raises Misconfigured: ``auth_type`` is not set, or an option that it needs is
        missing
    """
    return Client(access.from_config(config, group))


def from_environment(*, url: str | None = None, token: str | None = None) -> Client:
    """Return a client for the service that the ``OS_*`` variables describe.

    :raises Misconfigured: something that is needed is missing
    """
    return Client(access.from_environment(url=url, token=token))
