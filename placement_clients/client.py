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

import contextlib
import copy
import json
import random
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode

from keystoneauth1 import exceptions as keystone
from oslo_config import cfg

from placement_clients import access, record
from placement_clients.access import Access
from placement_clients.errors import (
    TABLE_UNUSABLE,
    Conflict,
    PlacementError,
    Timeout,
    Unavailable,
    kind_of,
    origin_of,
)
from placement_clients.record import Candidates, Held, Json, Part, Provider

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
LONGEST_LIST = 2000
PARSE_TRAITS = record.parser_with(traits=list)


class Client:
    """A client of Placement: its operations, by values.

    A refusal is raised as an exception of its kind, and work that reads, changes and
    writes can be attempted again. It may be shared between threads.
    """

    def __init__(
        self,
        way: Access,
        *,
        service_type: str = access.SERVICE_TYPE,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._way = way
        self._service_type = service_type
        self._pause = pause
        self._request_id: str | None = None

    def for_request(self, request_id: str | None) -> Self:
        """Return this client on behalf of an inbound request.

        Its id is sent to Placement, which logs it.
        """
        other = copy.copy(self)
        other._request_id = request_id or None
        return other

    @property
    def answer_seconds(self) -> float:
        """How many seconds the client waits for an answer."""
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
    ) -> Json:
        """Send a request, and return the document of the answer, None if it has none.

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
        # A number sign would end the query, and the rest would not be sent.
        text = text.replace("#", "%23")
        try:
            return self._way.adapter.request(
                f"{path}?{text}" if text else path,
                method,
                raise_exc=False,
                headers={"Accept": accept},
                microversion=version,
                microversion_service_type=self._service_type,
                global_request_id=self._request_id,
                timeout=(self._way.connect_seconds, self._way.answer_seconds),
                **options,
            )
        except keystone.ClientException as exc:
            raise _unanswered(exc) from exc
        except UnicodeEncodeError as exc:
            raise Unavailable(f"a header cannot be sent: {exc}") from exc

    def get(self, path: str, *, version: str, query: Query = "") -> Json:
        """Return the document at a path."""
        return self.request("GET", path, version=version, query=query)

    def put(self, path: str, body: Json = None, *, version: str) -> Json:
        """Put a document at a path."""
        return self.request("PUT", path, version=version, body=body)

    def post(self, path: str, body: Json, *, version: str) -> Json:
        """Post a document to a path."""
        return self.request("POST", path, version=version, body=body)

    def delete(self, path: str, *, version: str) -> Json:
        """Delete what is at a path."""
        return self.request("DELETE", path, version=version)

    def retry_lost_races(self, work: Callable[[], T]) -> T:
        """Run work that reads, changes and writes, again if another client was faster.

        ``work`` is called again from the start, so it must read what it changes. After
        four more attempts the conflict is raised; any other conflict is raised at once.
        """
        return self._retry(
            work,
            lambda exc: isinstance(exc, Conflict) and exc.lost_race,
            PAUSE_SECONDS,
        )

    def retry_while_busy(self, work: Callable[[], T]) -> T:
        """Run work, again after growing pauses while the service is busy.

        Busy is a 503, except for an unusable table. Only the last error is raised.
        """
        return self._retry(
            work, lambda exc: exc.status == 503 and exc.code != TABLE_UNUSABLE, 1.0
        )

    def _retry(
        self,
        work: Callable[[], T],
        may_pass: Callable[[PlacementError], bool],
        seconds: float,
    ) -> T:
        for attempt in range(ATTEMPTS - 1):
            try:
                return work()
            except PlacementError as exc:
                if not may_pass(exc):
                    raise
            # Others that lost the same race do not come back at the same time.
            self._pause(seconds * 2**attempt * random.uniform(0.5, 1))
        return work()

    # The operations of the Placement API

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


def path_of(*names: str) -> str:
    """Return the path of the given names, percent-encoded."""
    return "".join(f"/{quote(name, safe='')}" for name in names)


def encode_query(query: Mapping[str, str] | Iterable[tuple[str, str]]) -> str:
    """Return a query string, percent-encoded, its parameters sorted by name."""
    pairs = query.items() if isinstance(query, Mapping) else query
    return urlencode(sorted(pairs), quote_via=quote, safe="")


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
        # The library says the same several times, one within the other.
        url = re.search(r"https?://[^\s?]*[^\s?:]", str(exc))
        prefix = f"no connection to {url[0]}: " if url else ""
        return Unavailable(f"{prefix}{origin_of(exc)}")
    return Unavailable(str(exc))


def _read(response: Any) -> Json:
    """Return the document of a response, None if it has none.

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
        return document
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
    """Return the first error of an error document, or another description of one.

    The middleware that checks tokens answers with documents of another form.
    """
    try:
        members = dict(document["errors"][0]).items()
        return {name: str(value) for name, value in members if value is not None}
    except (TypeError, ValueError, LookupError):
        pass
    try:
        return {"detail": str(document.get("error", document)["message"])}
    except (AttributeError, TypeError, LookupError):
        return {}
