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

import contextlib
import copy
import dataclasses
import json
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode

from keystoneauth1 import exceptions as keystone
from oslo_config import cfg

from placement_clients import access, record
from placement_clients.access import Access, Misconfigured, register_options
from placement_clients.errors import (
    TABLE_UNUSABLE,
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    NotSupported,
    PlacementError,
    Timeout,
    Unauthorized,
    Unavailable,
    kind_of,
    origin_of,
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
# A query string that is already percent-encoded, or parameters by name; in pairs, a
# name may occur several times.
Query = str | Mapping[str, str] | Iterable[tuple[str, str]]

# How many times, in all, a read-change-write is attempted if its generation is out of
# date.
ATTEMPTS = 5
# The longest pause before the second attempt; twice as long before each further one.
PAUSE_SECONDS = 0.05
# Some servers accept no first line of more than 4094 characters; a comma becomes three.
LONGEST_PIECE = 2000


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """The answer of Placement: ``document`` is None if it has none."""

    status: int
    document: Json
    request_id: str | None = None


class Client:
    """A client of Placement. It may be shared between threads."""

    def __init__(
        self, way: Access, *, pause: Callable[[float], object] = time.sleep
    ) -> None:
        self._way = way
        self._pause = pause
        self._headers: dict[str, str] = {}

    def for_request(self, request_id: str | None) -> Self:
        """Return this client on behalf of an inbound request.

        Its id is sent to Placement, which logs it.
        """
        other = copy.copy(self)
        other._headers = {"X-OpenStack-Request-ID": request_id} if request_id else {}
        return other

    @property
    def answer_seconds(self) -> float:
        """For how many seconds an answer is waited for."""
        return self._way.answer_seconds

    def get_endpoint(self) -> str:
        """Return the URL of Placement: a given one, or that of the catalogue.

        :raises PlacementError: there is no answer, or the catalogue does not have it
        """
        try:
            endpoint = self._way.adapter.get_endpoint()
        except keystone.ClientException as exc:
            raise _unanswered(exc) from exc
        if not endpoint:
            raise Unavailable("the catalogue has no Placement")
        return str(endpoint)

    # Any request

    def request(
        self,
        method: str,
        path: str,
        *,
        version: str,
        query: Query = "",
        body: Json = None,
    ) -> Answer:
        """Send a request, and return the answer.

        :param path: the path below the endpoint, percent-encoded: see ``path_of``
        :raises PlacementError: the status is not 2xx, or there is no answer
        """
        content = {} if body is None else {"json": body}
        return _read(self._send(method, path, version, query, **content))

    def lines(self, path: str, *, version: str, query: Query = "") -> Iterator[Json]:
        """Yield the documents of an answer that has one a line, as they arrive.

        :raises PlacementError: the status is not 2xx, or the answer ends too early
        """
        response = self._send(
            "GET", path, version, query, accept="application/x-ndjson", stream=True
        )
        with contextlib.closing(response):
            if not response.ok:
                _read(response)
            try:
                for line in response.iter_lines():
                    yield json.loads(line)
            except (OSError, ValueError, RecursionError) as exc:
                raise Unavailable(f"the answer ends too early: {exc}") from exc

    def _send(
        self,
        method: str,
        path: str,
        version: str,
        query: Query,
        *,
        accept: str = "application/json",
        **options: Any,
    ) -> Any:
        """Send a request, and return the response.

        :raises PlacementError: there is none
        """
        text = query if isinstance(query, str) else encode_query(query)
        # It would end the query, and the rest would not be sent.
        text = text.replace("#", "%23")
        headers = {
            "Accept": accept,
            "OpenStack-API-Version": f"placement {version}",
            **self._headers,
        }
        try:
            return self._way.adapter.request(
                f"{path}?{text}" if text else path,
                method,
                raise_exc=False,
                headers=headers,
                timeout=(self._way.connect_seconds, self._way.answer_seconds),
                **options,
            )
        except keystone.ClientException as exc:
            raise _unanswered(exc) from exc
        except UnicodeEncodeError as exc:
            raise Unavailable(f"a header cannot be sent: {exc}") from exc

    def get(self, path: str, *, version: str, query: Query = "") -> Json:
        """Return the document at a path."""
        return self.request("GET", path, version=version, query=query).document

    def put(self, path: str, body: Json = None, *, version: str) -> Answer:
        """Put a document at a path."""
        return self.request("PUT", path, version=version, body=body)

    def post(self, path: str, body: Json, *, version: str) -> Answer:
        """Post a document to a path."""
        return self.request("POST", path, version=version, body=body)

    def delete(self, path: str, *, version: str) -> Answer:
        """Delete what is at a path."""
        return self.request("DELETE", path, version=version)

    def retry_lost_races(self, work: Callable[[], T]) -> T:
        """Run work that reads, changes and writes, again if another client was faster.

        ``work`` is called again from the start, so it must read what it changes. After
        four more attempts the conflict is raised; any other conflict is raised at once.
        """
        for attempt in range(ATTEMPTS - 1):
            try:
                return work()
            except Conflict as exc:
                if not exc.lost_race:
                    raise
            self.pause(attempt)
        return work()

    def retry_while_busy(self, work: Callable[[], T]) -> T:
        """Run work, again after growing pauses while the service has no time for it.

        That is what 503 says, but for what no pause mends. Only the last one is raised.
        """
        for attempt in range(ATTEMPTS - 1):
            try:
                return work()
            except Unavailable as exc:
                if exc.status != 503 or exc.code == TABLE_UNUSABLE:
                    raise
            self._pause(2**attempt)
        return work()

    def pause(self, attempt: int) -> None:
        """Wait a short random time, longer after each attempt."""
        self._pause(random.uniform(0, PAUSE_SECONDS * 2**attempt))

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


def path_of(*names: str) -> str:
    """Return the path of the given names, percent-encoded."""
    return "".join(f"/{quote(name, safe='')}" for name in names)


def encode_query(query: Mapping[str, str] | Iterable[tuple[str, str]]) -> str:
    """Return a query string, percent-encoded, its parameters sorted by name."""
    pairs = query.items() if isinstance(query, Mapping) else query
    return urlencode(sorted(pairs), quote_via=quote, safe="")


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


def _unanswered(exc: keystone.ClientException) -> PlacementError:
    """Return the error for a request, or one for a token, that got no answer."""
    if isinstance(exc, keystone.ConnectTimeout) or "timed out" in str(exc):
        return Timeout(str(exc))
    if isinstance(exc, keystone.HttpError):
        return kind_of(exc.http_status)(
            f"Keystone: {exc.message}",
            status=exc.http_status,
            request_id=exc.request_id,
        )
    if isinstance(exc, keystone.ConnectionError):
        url = re.search(r"https?://[^\s?]*[^\s?:]", str(exc))
        asked = f"no connection to {url[0]}: " if url else ""
        return Unavailable(f"{asked}{_innermost(exc)}")
    return Unavailable(str(exc))


def _innermost(exc: BaseException) -> str:
    """Return the message of the original exception, from the operating system."""
    origin = origin_of(exc)
    text = str(origin)
    return text if text.isprintable() else repr(origin)


def _read(response: Any) -> Answer:
    """Return the answer in a response.

    :raises PlacementError: it is an error, or not an answer of Placement
    """
    request_id = response.headers.get("X-OpenStack-Request-ID")
    document = _document(response)
    status = response.status_code
    if 200 <= status < 300:
        if document is None and response.content:
            raise Unavailable(
                f"{response.url} does not answer as Placement does: "
                f"{record.excerpt(response.text)}",
                status=status,
                request_id=request_id,
            )
        return Answer(status, document, request_id)
    error = _error(document)
    raise kind_of(status)(
        error.get("detail") or record.excerpt(response.text) or response.reason,
        status=status,
        code=error.get("code", ""),
        request_id=error.get("request_id") or request_id,
        document=document if isinstance(document, dict) else None,
    )


def _document(response: Any) -> Json:
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def _error(document: Json) -> dict[str, str]:
    """Return the first error of an error document, or what else describes one.

    The middleware that checks tokens answers with documents of another form.
    """
    try:
        known = dict(document["errors"][0]).items()
        return {name: str(value) for name, value in known if value is not None}
    except (TypeError, ValueError, LookupError):
        pass
    try:
        return {"detail": str(document.get("error", document)["message"])}
    except (AttributeError, TypeError, LookupError):
        return {}
