"""Nodes: machines that are allocated as a whole."""

import dataclasses
import datetime
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_utils import uuidutils

from placement_foundation import errors
from placement_nodes.db import models

ENROLL = "enroll"

# Values that must be unique among nodes, with the message of a refusal.
UNIQUE = {
    "uuid": "A node with UUID {value} already exists.",
    "name": "A node with name {value} already exists.",
    "instance_uuid": "Instance {value} is already associated with a node.",
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine. Times are in UTC.

    ``interfaces`` has the names of the chosen interfaces, keyed by their type;
    ``traits`` are sorted.
    """

    id: int
    uuid: str
    name: str | None
    driver: str
    resource_class: str | None
    properties: Mapping[str, Any]
    extra: Mapping[str, Any]
    driver_info: Mapping[str, Any]
    instance_info: Mapping[str, Any]
    interfaces: Mapping[str, str]
    instance_uuid: str | None
    chassis_uuid: str | None
    maintenance: bool
    maintenance_reason: str | None
    power_state: str | None
    target_power_state: str | None
    provision_state: str
    target_provision_state: str | None
    provision_updated_at: datetime.datetime | None
    last_error: str | None
    reservation: str | None
    created_at: datetime.datetime
    updated_at: datetime.datetime | None
    traits: tuple[str, ...]


NODES = sa.select(*models.Node.__table__.columns)


def get_by_ident(
    connection: sa.Connection, ident: str, *, by_name: bool, **_: str
) -> Node:
    """Return a node; other names in its path are ignored.

    :param ident: its UUID in any spelling, or its name
    :param by_name: whether names count
    :raises NotFound: there is no such node
    """
    if uuidutils.is_uuid_like(ident):
        condition = models.Node.uuid == canonical_uuid(ident)
    else:
        condition = sa.and_(sa.literal(by_name), models.Node.name == ident)
    return _one(read(connection, NODES.where(condition)), ident)


def get_locked(connection: sa.Connection, node: Node) -> Node:
    """Return the current node, locked until the end of the transaction.

    :raises NotFound: it has been removed
    """
    query = NODES.where(models.Node.id == node.id).with_for_update(key_share=True)
    return _one(read(connection, query), node.uuid)


def _one(nodes: Sequence[Node], ident: str) -> Node:
    if not nodes:
        raise errors.NotFound(f"Node {ident} could not be found.")
    return nodes[0]


def canonical_uuid(text: str) -> str:
    """Return a UUID as it is stored: in lower case, with hyphens."""
    return str(uuid.UUID(text))


def read(connection: sa.Connection, query: sa.Select[Any]) -> list[Node]:
    """Return the nodes, with traits, that a query on all columns of the table finds."""
    rows = connection.execute(query).mappings().all()
    traits = _traits_by_id(connection, [row["id"] for row in rows])
    return [Node(**row, traits=tuple(traits[row["id"]])) for row in rows]


def _traits_by_id(
    connection: sa.Connection, ids: Collection[int]
) -> dict[int, list[str]]:
    traits: dict[int, list[str]] = {node_id: [] for node_id in ids}
    table = models.NodeTrait
    if ids:
        query = sa.select(table.node_id, table.trait).where(table.node_id.in_(ids))
        for node_id, trait in connection.execute(query.order_by(table.trait)):
            traits[node_id].append(trait)
    return traits


def probe(connection: sa.Connection) -> None:
    """Read as little as possible, to check that nodes can be read."""
    connection.execute(sa.select(models.Node.id).limit(1))


def create(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    """Enrol a node.

    :param values: its values, keyed by column
    :raises Conflict: another node has the UUID, the name or the instance
    """
    _check_unique(connection, values, besides=None)
    row = {"provision_state": ENROLL, **values}
    connection.execute(sa.insert(models.Node), [row])


def update(connection: sa.Connection, node: Node, changes: Mapping[str, Any]) -> None:
    """Change a node, which is locked.

    :param changes: the new values, keyed by column
    :raises Conflict: another node has the name or the instance, or the node has another
        instance
    """
    if changes:
        if node.instance_uuid and changes.get("instance_uuid"):
            raise errors.Conflict(
                f"Node {node.uuid} is associated with instance {node.instance_uuid}."
            )
        _check_unique(connection, changes, besides=node.id)
        change = sa.update(models.Node).where(models.Node.id == node.id)
        connection.execute(change.values(dict(changes)))


def _check_unique(
    connection: sa.Connection, values: Mapping[str, Any], besides: int | None
) -> None:
    """Check that no other node has the unique values.

    If another request takes a value at the same moment, the race is lost, and the next
    attempt finds it taken.
    """
    for name, refusal in UNIQUE.items():
        value = values.get(name)
        if value is not None:
            taken = sa.select(models.Node.id).where(
                getattr(models.Node, name) == value,
                models.Node.id.is_distinct_from(besides),
            )
            if connection.execute(taken).first():
                raise errors.Conflict(refusal.format(value=value))


def delete(connection: sa.Connection, node: Node) -> None:
    """Remove a node, which is locked, and its traits."""
    # SQLite does not cascade unless each connection enables it.
    connection.execute(
        sa.delete(models.NodeTrait).where(models.NodeTrait.node_id == node.id)
    )
    connection.execute(sa.delete(models.Node).where(models.Node.id == node.id))
