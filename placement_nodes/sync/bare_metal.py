"""The bare metal API, of this service or of Ironic, as the agent reads it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from placement_clients import errors
from placement_clients.access import Access
from placement_clients.client import Client, path_of

SERVICE_TYPE = "baremetal"
VERSION = "1.37"
# The member of every error document of the API. Without it, a 404 comes from another
# service, or from a proxy, and does not mean that a node is gone.
SIGN = "error_message"
FIELDS = (
    "uuid",
    "power_state",
    "target_power_state",
    "provision_state",
    "target_provision_state",
    "last_error",
    "maintenance",
    "properties",
    "instance_uuid",
    "traits",
    "resource_class",
)


class Unreadable(Exception):
    """The node service could not be reached, or its answer could not be parsed."""


class BareMetal:
    """A client that reads the nodes of a bare metal service.

    :param fields: the fields to read of each node
    """

    def __init__(self, way: Access, fields: Sequence[str] = FIELDS) -> None:
        self._service = Client(way, service_type=SERVICE_TYPE)
        self._fields = ",".join(fields)

    def list_nodes(self) -> list[dict[str, Any]]:
        """Return all nodes.

        :raises Unreadable: some of them cannot be read
        """
        return list(self._pages())

    def find_node(self, ident: str) -> dict[str, Any] | None:
        """Return the node with a UUID or a name, None if there is none.

        :raises Unreadable: the service does not answer, or not with a node
        """
        query = {"fields": self._fields}
        return self._get(path_of("v1", "nodes", ident), query)

    def _pages(self) -> Iterator[dict[str, Any]]:
        query = {"fields": self._fields}
        markers: set[str | None] = set()
        while query:
            if query.get("marker") in markers:
                raise Unreadable("the list of nodes does not end")
            markers.add(query.get("marker"))
            document = self._get("/v1/nodes", query) or {}
            nodes = document.get("nodes")
            if not isinstance(nodes, list) or not all(
                isinstance(each, dict) for each in nodes
            ):
                raise Unreadable("the answer is not a list of nodes")
            yield from nodes
            query = _rest(document.get("next"))

    def _get(self, path: str, query: Mapping[str, str]) -> dict[str, Any] | None:
        """Return the document at a path, None if there is none."""
        try:
            document = self._service.get(path, version=VERSION, query=query)
        except errors.PlacementError as exc:
            told = (exc.document or {}).get(SIGN)
            if exc.status == 404 and told is not None:
                return None
            what = f"answered {exc.status}" if exc.status else "cannot be reached"
            # All of it: of a refused microversion, it ends with those that there are.
            raise Unreadable(f"the node service {what}: {told or exc}") from exc
        if not isinstance(document, dict):
            raise Unreadable("the answer is not a document of the node service")
        return document


def _rest(link: object) -> dict[str, str]:
    """Return the query for the following nodes, empty if there are none.

    Only the query of the link is used: its host may be that of a public endpoint.

    :raises Unreadable: it leads nowhere, so the list is not complete
    """
    if not link:
        return {}
    try:
        query = dict(parse_qsl(urlsplit(str(link)).query))
    except ValueError:
        query = {}
    if not query:
        raise Unreadable(f"there is no list of further nodes at {link!r}")
    return query
