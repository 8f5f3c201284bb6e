"""Which nodes a list has, in which order, and where its pages begin and end."""

import dataclasses
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import sqlalchemy as sa

from placement_foundation import errors
from placement_nodes.db import models
from placement_nodes.objects import node as ledger
from placement_nodes.objects.node import Node

# The fields by which a list can be sorted: those whose values have an order.
UNSORTED = {"properties", "extra", "driver_info", "instance_info", "interfaces"}
SORT_KEYS = [
    column.name
    for column in models.Node.__table__.columns
    if column.name not in UNSORTED
]


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: ``limit`` nodes after the one whose UUID is ``marker``."""

    limit: int
    marker: str | None = None
    sort_key: str = "id"
    descending: bool = False


def list_page(
    connection: sa.Connection, filters: Mapping[str, Any], page: Page
) -> tuple[list[Node], bool]:
    """Return the nodes of a page, and whether more follow.

    :param filters: the values of ``CONDITIONS`` that nodes must meet, by name
    :raises BadRequest: there is no node with the UUID of the marker
    """
    conditions = [CONDITIONS[name](value) for name, value in filters.items()]
    query = ledger.NODES.where(*conditions, *_after_marker(connection, page))
    order = [key.desc() if page.descending else key.asc() for key in _keys(page)]
    query = query.order_by(*order).limit(page.limit + 1)
    nodes = ledger.read(connection, query)
    return nodes[: page.limit], len(nodes) > page.limit


def _has(names: frozenset[str], number: int) -> sa.ColumnElement[bool]:
    """Return the condition of nodes that have so many of some traits."""
    table = models.NodeTrait
    having = sa.select(table.node_id).where(table.trait.in_(sorted(names)))
    # A node cannot have a trait twice.
    having = having.group_by(table.node_id).having(sa.func.count() >= number)
    return models.Node.id.in_(having)


EQUAL = ("instance_uuid", "maintenance", "provision_state", "driver", "resource_class")
# The condition of each filter of a list, given its value.
CONDITIONS: Mapping[str, Callable[[Any], sa.ColumnElement[bool]]] = {
    **{name: partial(operator.eq, getattr(models.Node, name)) for name in EQUAL},
    "associated": lambda wanted: models.Node.instance_uuid.is_not(None) == wanted,
    "traits": lambda names: _has(names, len(names)),
    "traits-any": lambda names: _has(names, 1),
    "not-traits": lambda names: ~_has(names, len(names)),
    "not-traits-any": lambda names: ~_has(names, 1),
}


def _keys(page: Page) -> list[sa.ColumnElement[Any]]:
    """Return the sort keys: nodes without a value come first, then by value.

    The id makes the order the same on every database.
    """
    column = getattr(models.Node, page.sort_key)
    present = sa.case((column.is_(None), 0), else_=1)
    return [present, column, models.Node.id]


def _after_marker(
    connection: sa.Connection, page: Page
) -> Iterator[sa.ColumnElement[bool]]:
    if page.marker is None:
        return
    keys = _keys(page)
    query = sa.select(*keys).where(models.Node.uuid == page.marker)
    marker = connection.execute(query).first()
    if marker is None:
        raise errors.BadRequest(f"Node {page.marker}, the marker, could not be found.")
    # Nodes without a value are told apart by the first key alone.
    pairs = [pair for pair in zip(keys, marker, strict=True) if pair[1] is not None]
    place = sa.tuple_(*(key for key, _ in pairs))
    at = sa.tuple_(*(sa.literal(value, key.type) for key, value in pairs))
    yield place < at if page.descending else place > at
