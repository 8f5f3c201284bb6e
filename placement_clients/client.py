"""The Placement API over HTTP, for programs that use it.

::

    from placement_clients import client

    placement = client.from_config(config)              # an oslo.config [placement]
    placement = client.from_environment(url=..., token=...)    # or OS_* variables

    found = placement.list_candidates("resources=VCPU:1")
    placement.change_traits(provider, lambda traits: traits | {"CUSTOM_GOLD"})

Every operation names the lowest microversion that it needs, and sends that one unless
another is given; it never sends "latest". A refusal is raised as an exception, one for
each kind (``BadRequest``, ``Unauthorized``, ``Forbidden``, ``NotFound``,
``NotSupported``, ``Conflict``, ``Unavailable``, ``Timeout``, all of them
``PlacementError``), with status, code, detail and request id. For all other paths,
there are ``get``, ``put``, ``post`` and ``delete``.

A client keeps one session, with its connections and its token: create one for a process
and share it. ``for_request`` returns the same client on behalf of one inbound request.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from oslo_config import cfg

from placement_clients import access, record
from placement_clients.access import Access, Misconfigured, register_options
from placement_clients.adapter import Adapter, Answer, Query, encode_query, path_of
from placement_clients.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    NotSupported,
    PlacementError,
    Timeout,
    Unauthorized,
    Unavailable,
)
from placement_clients.record import (
    Aggregates,
    Allocations,
    Candidate,
    Candidates,
    Inventories,
    Inventory,
    Json,
    Provider,
    Traits,
)

__all__ = [
    "Client",
    "from_config",
    "from_environment",
    "register_options",
    "Access",
    "Misconfigured",
    "PlacementError",
    "BadRequest",
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "NotSupported",
    "Conflict",
    "Unavailable",
    "Timeout",
    "Answer",
    "Provider",
    "Inventory",
    "Inventories",
    "Traits",
    "Aggregates",
    "Allocations",
    "Candidate",
    "Candidates",
    "Json",
    "Query",
    "encode_query",
    "path_of",
]

T = TypeVar("T")
# Some servers accept no first line of more than 4094 characters; a comma becomes three.
LONGEST_PIECE = 2000


class Client(Adapter):
    """A client of Placement: its operations, by values."""

    # Resource providers

    def list_providers(
        self,
        *,
        name: str | None = None,
        uuid: str | None = None,
        in_tree: str | None = None,
        member_of: str | None = None,
        required: str | None = None,
        resources: str | None = None,
        version: str = "1.14",
    ) -> list[Provider]:
        """List the resource providers that match all given filters."""
        filters = {
            "name": name,
            "uuid": uuid,
            "in_tree": in_tree,
            "member_of": member_of,
            "required": required,
            "resources": resources,
        }
        query = {key: value for key, value in filters.items() if value is not None}
        document = self.get("/resource_providers", version=version, query=query)
        return record.parse_providers(document)

    def get_provider(self, uuid: str, *, version: str = "1.14") -> Provider:
        """Return a resource provider.

        :raises NotFound: there is no such provider
        """
        path = path_of("resource_providers", uuid)
        return record.parse_provider(self.get(path, version=version))

    def create_provider(
        self,
        name: str,
        *,
        uuid: str | None = None,
        parent: str | None = None,
        version: str = "1.20",
    ) -> Provider:
        """Create a resource provider; without a UUID, Placement chooses one.

        :param version: 1.20 or later, which answer with the provider
        :raises Conflict: the name or the UUID is taken
        """
        members = {"name": name, "uuid": uuid, "parent_provider_uuid": parent}
        body = {key: value for key, value in members.items() if value is not None}
        return record.parse_provider(
            self.post("/resource_providers", body, version=version).document
        )

    def rename_provider(
        self, uuid: str, name: str, *, version: str = "1.0"
    ) -> Provider:
        """Give a resource provider another name; its parent stays.

        :raises NotFound: there is no such provider
        :raises Conflict: the name is taken
        """
        path = path_of("resource_providers", uuid)
        return record.parse_provider(
            self.put(path, {"name": name}, version=version).document
        )

    def delete_provider(self, uuid: str, *, version: str = "1.23") -> None:
        """Delete a resource provider.

        :raises NotFound: there is no such provider
        :raises Conflict: it has allocations or children (``in_use``)
        """
        self.delete(path_of("resource_providers", uuid), version=version)

    # Inventories

    def get_inventories(self, provider: str, *, version: str = "1.0") -> Inventories:
        """Return the inventories of a provider.

        :raises NotFound: there is no such provider
        """
        path = path_of("resource_providers", provider, "inventories")
        return record.parse_inventories(self.get(path, version=version))

    def replace_inventories(
        self,
        provider: str,
        generation: int,
        inventories: Mapping[str, Inventory],
        *,
        version: str = "1.26",
    ) -> Inventories:
        """Replace all inventories of a provider.

        :param inventories: by resource class; the classes must exist
        :raises Conflict: the generation is out of date (``lost_race``), or a class that
            is left out has allocations (``in_use``)
        """
        body = {
            "resource_provider_generation": generation,
            "inventories": {
                resource_class: dataclasses.asdict(inventory)
                for resource_class, inventory in inventories.items()
            },
        }
        path = path_of("resource_providers", provider, "inventories")
        return record.parse_inventories(self.put(path, body, version=version).document)

    def change_inventories(
        self,
        provider: str,
        change: Callable[[Mapping[str, Inventory]], Mapping[str, Inventory]],
        *,
        version: str = "1.26",
    ) -> Inventories:
        """Change the inventories of a provider, even while others change them.

        :param change: takes the inventories by class and returns the new ones; called
            again if a race is lost. Nothing is written if nothing changes
        """
        return self._change(
            lambda: self.get_inventories(provider, version=version),
            lambda known: Inventories(
                known.generation, dict(change(dict(known.by_class)))
            ),
            lambda wanted: self.replace_inventories(
                provider, wanted.generation, wanted.by_class, version=version
            ),
        )

    def delete_inventory(
        self, provider: str, resource_class: str, *, version: str = "1.29"
    ) -> None:
        """Delete the inventory of one class, again if a race is lost.

        :raises NotFound: the provider does not have it
        :raises Conflict: it has allocations (``in_use``), which is not retried
        """
        path = path_of("resource_providers", provider, "inventories", resource_class)
        self.retry_lost_races(lambda: self.delete(path, version=version))

    # Resource classes

    def create_resource_class(self, name: str, *, version: str = "1.29") -> None:
        """Create a custom resource class.

        :raises Conflict: it exists already
        """
        self.post("/resource_classes", {"name": name}, version=version)

    def ensure_resource_class(self, name: str, *, version: str = "1.7") -> bool:
        """Create a custom resource class if needed; return whether it was new."""
        return self._ensure(path_of("resource_classes", name), version)

    def delete_resource_class(self, name: str, *, version: str = "1.29") -> None:
        """Delete a custom resource class.

        :raises NotFound: it does not exist
        :raises Conflict: a provider has inventory of it (``in_use``)
        """
        self.delete(path_of("resource_classes", name), version=version)

    # Traits

    def list_traits(
        self, names: Iterable[str] | None = None, *, version: str = "1.6"
    ) -> frozenset[str]:
        """Return the existing traits, all or those among given names."""
        found: frozenset[str] = frozenset()
        for query in [{}] if names is None else map(_among, _joined(sorted(names))):
            document = self.get("/traits", version=version, query=query)
            found |= record.parse_trait_names(document)
        return found

    def ensure_trait(self, name: str, *, version: str = "1.6") -> bool:
        """Create a custom trait if needed; return whether it was new.

        :raises BadRequest: it is not a custom trait
        """
        return self._ensure(path_of("traits", name), version)

    def get_traits(self, provider: str, *, version: str = "1.6") -> Traits:
        """Return the traits of a provider.

        :raises NotFound: there is no such provider
        """
        path = path_of("resource_providers", provider, "traits")
        return record.parse_traits(self.get(path, version=version))

    def replace_traits(
        self,
        provider: str,
        generation: int,
        names: Iterable[str],
        *,
        version: str = "1.6",
    ) -> Traits:
        """Replace all traits of a provider.

        :raises BadRequest: a trait does not exist
        :raises Conflict: the generation is out of date (``lost_race``)
        """
        body = {"resource_provider_generation": generation, "traits": sorted(names)}
        path = path_of("resource_providers", provider, "traits")
        return record.parse_traits(self.put(path, body, version=version).document)

    def change_traits(
        self,
        provider: str,
        change: Callable[[frozenset[str]], Iterable[str]],
        *,
        version: str = "1.6",
    ) -> Traits:
        """Change the traits of a provider, even while others change them.

        :param change: takes the traits and returns the new ones; called again if a race
            is lost. Nothing is written if nothing changes
        """
        return self._change(
            lambda: self.get_traits(provider, version=version),
            lambda known: Traits(known.generation, frozenset(change(known.names))),
            lambda wanted: self.replace_traits(
                provider, wanted.generation, wanted.names, version=version
            ),
        )

    # Aggregates

    def get_aggregates(self, provider: str, *, version: str = "1.19") -> Aggregates:
        """Return the aggregates of a provider.

        :raises NotFound: there is no such provider
        """
        path = path_of("resource_providers", provider, "aggregates")
        return record.parse_aggregates(self.get(path, version=version))

    def replace_aggregates(
        self,
        provider: str,
        generation: int,
        uuids: Iterable[str],
        *,
        version: str = "1.19",
    ) -> Aggregates:
        """Replace all aggregates of a provider.

        :raises Conflict: the generation is out of date (``lost_race``)
        """
        body = {"resource_provider_generation": generation, "aggregates": sorted(uuids)}
        path = path_of("resource_providers", provider, "aggregates")
        return record.parse_aggregates(self.put(path, body, version=version).document)

    def change_aggregates(
        self,
        provider: str,
        change: Callable[[frozenset[str]], Iterable[str]],
        *,
        version: str = "1.19",
    ) -> Aggregates:
        """Change the aggregates of a provider, even while others change them.

        :param change: takes the UUIDs and returns the new ones; called again if a race
            is lost. Nothing is written if nothing changes
        """
        return self._change(
            lambda: self.get_aggregates(provider, version=version),
            lambda known: Aggregates(known.generation, frozenset(change(known.uuids))),
            lambda wanted: self.replace_aggregates(
                provider, wanted.generation, wanted.uuids, version=version
            ),
        )

    # Allocations

    def get_allocations(self, consumer: str, *, version: str = "1.28") -> Allocations:
        """Return the allocations of a consumer, which may be empty."""
        return record.parse_allocations(
            self.get(path_of("allocations", consumer), version=version)
        )

    def claim(
        self,
        consumer: str,
        candidate: Candidate,
        *,
        project_id: str,
        user_id: str,
        consumer_type: str | None = None,
        version: str = "1.36",
    ) -> None:
        """Claim a candidate for a consumer without allocations.

        :param consumer_type: required from version 1.38 on; ``INSTANCE``
        :raises Conflict: there is no longer enough room; or ``lost_race``, which is
            final if the detail says "consumer generation conflict": the consumer has
            allocations
        """
        body = {
            "allocations": candidate.allocations,
            "mappings": candidate.mappings,
            "project_id": project_id,
            "user_id": user_id,
            "consumer_generation": None,
        }
        if consumer_type is not None:
            body["consumer_type"] = consumer_type
        self.put(path_of("allocations", consumer), body, version=version)

    def delete_allocations(self, consumer: str, *, version: str = "1.0") -> None:
        """Delete all allocations of a consumer.

        :raises NotFound: it has none
        """
        self.delete(path_of("allocations", consumer), version=version)

    def list_allocations_of_provider(
        self, provider: str, *, version: str = "1.0"
    ) -> dict[str, dict[str, int]]:
        """Return the allocations on a provider: amounts by class, by consumer.

        :raises NotFound: there is no such provider
        """
        path = path_of("resource_providers", provider, "allocations")
        return record.parse_resources(self.get(path, version=version))

    # Allocation candidates

    def list_candidates(self, query: Query, *, version: str = "1.36") -> Candidates:
        """Return the allocation candidates for a request, in Placement's order.

        :raises BadRequest: the query is malformed, or names something that does not
            exist
        """
        path = "/allocation_candidates"
        return record.parse_candidates(self.get(path, version=version, query=query))

    def get_explanation(
        self, query: Query, *, version: str = "1.36"
    ) -> dict[str, Json] | None:
        """Return why a request has the candidates that it has, or None.

        The ledger API explains it. Most services do not have that API, and no operation
        depends on an explanation, so a failure means that there is none.

        :raises BadRequest: the request names something that does not exist, which a
            search that ends early does not find out
        """
        try:
            document = self.get("/ledger/v1/explanation", version=version, query=query)
        except BadRequest:
            raise
        except PlacementError:
            return None
        return document if isinstance(document, dict) else None

    def _change(
        self,
        read: Callable[[], T],
        change: Callable[[T], T],
        write: Callable[[T], T],
    ) -> T:
        """Read, change and write, starting over with the read if a race is lost.

        Nothing is written if nothing changes.
        """

        def work() -> T:
            known = read()
            wanted = change(known)
            return known if wanted == known else write(wanted)

        return self.retry_lost_races(work)

    def _ensure(self, path: str, version: str) -> bool:
        return self.put(path, version=version).status == 201


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


def _among(names: str) -> dict[str, str]:
    return {"name": f"in:{names}"}


def _joined(words: Iterable[str]) -> list[str]:
    """Return words joined by commas, in pieces that are not too long for an address."""
    pieces = [""]
    for word in words:
        longer = f"{pieces[-1]},{word}" if pieces[-1] else word
        if pieces[-1] and len(longer) > LONGEST_PIECE:
            pieces.append(word)
        else:
            pieces[-1] = longer
    return pieces
