"""Which nodes a list has, in which order, and where its pages begin and end."""

import dataclasses
from collections.abc import Iterator
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which nodes to list; None and empty sets do not filter.

    ``associated`` selects the nodes with an instance, or those without. Nodes have all
    of ``traits``, at least one of ``traits_any``, not all of ``not_traits`` and none of
    ``not_traits_any``.
    """

    instance_uuid: str | None = None
    associated: bool | None = None
    maintenance: bool | None = None
    provision_state: str | None = None
    driver: str | None = None
    resource_class: str | None = None
    traits: frozenset[str] = frozenset()
    traits_any: frozenset[str] = frozenset()
    not_traits: frozenset[str] = frozenset()
    not_traits_any: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: ``limit`` nodes after the one whose UUID is ``marker``."""

    limit: int
    marker: str | None = None
    sort_key: str = "id"
    descending: bool = False


def list_page(
    connection: sa.Connection, filters: Filters, page: Page
) -> tuple[list[Node], bool]:
    """Return the nodes of a page, and whether more follow.

    :raises BadRequest: there is no node with the UUID of the marker
    """
    query = ledger.NODES.where(*_conditions(filters), *_after_marker(connection, page))
    query = query.order_by(*_order(page)).limit(page.limit + 1)
    nodes = ledger.read(connection, query)
    return nodes[: page.limit], len(nodes) > page.limit


def _conditions(filters: Filters) -> Iterator[sa.ColumnElement[bool]]:
    for name in (
        "instance_uuid",
        "maintenance",
        "provision_state",
        "driver",
        "resource_class",
    ):
        value = getattr(filters, name)
        if value is not None:
            yield getattr(models.Node, name) == value
    if filters.associated is not None:
        yield models.Node.instance_uuid.is_not(None) == filters.associated
    if filters.traits:
        yield _has_all(filters.traits)
    if filters.traits_any:
        yield _has_any(filters.traits_any)
    if filters.not_traits:
        yield ~_has_all(filters.not_traits)
    if filters.not_traits_any:
        yield ~_has_any(filters.not_traits_any)


def _has_any(names: frozenset[str]) -> sa.ColumnElement[bool]:
    table = models.NodeTrait
    having = sa.select(table.node_id).where(table.trait.in_(sorted(names)))
    return models.Node.id.in_(having)


def _has_all(names: frozenset[str]) -> sa.ColumnElement[bool]:
    table = models.NodeTrait
    having = sa.select(table.node_id).where(table.trait.in_(sorted(names)))
    having = having.group_by(table.node_id)
    # A node cannot have a trait twice.
    return models.Node.id.in_(having.having(sa.func.count() == len(names)))


def _keys(page: Page) -> list[sa.ColumnElement[Any]]:
    """Return the sort keys: nodes without a value come first, then by value.

    The id makes the order the same on every database.
    """
    column = getattr(models.Node, page.sort_key)
    present = sa.case((column.is_(None), 0), else_=1)
    return [present, column, models.Node.id]


def _order(page: Page) -> list[sa.ColumnElement[Any]]:
    return [key.desc() if page.descending else key.asc() for key in _keys(page)]


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
    present, value, node_id = marker
    beyond = [(keys[0], sa.literal(present)), (keys[2], sa.literal(node_id))]
    if value is not None:
        beyond.insert(1, (keys[1], sa.literal(value, keys[1].type)))
    yield sa.or_(
        *(
            sa.and_(
                *(key == at for key, at in beyond[:depth]),
                key < at if page.descending else key > at,
            )
            for depth, (key, at) in enumerate(beyond)
        )
    )
