"""Traits of nodes: which names may be set, and which traits a node has."""

import re
from collections.abc import Collection, Iterable

import os_traits
import sqlalchemy as sa
from oslo_utils.timeutils import utcnow

from placement_foundation import errors
from placement_nodes.db import models
from placement_nodes.objects.node import Node

MOST_PER_NODE = 50
# A name has 255 characters at most.
CUSTOM = re.compile("CUSTOM_[A-Z0-9_]{1,248}")
STANDARD = frozenset(os_traits.get_traits())


def check_names(names: Iterable[str], where: str) -> None:
    """Check that all traits are custom, or known to the installed os-traits.

    Placement accepts no others.

    :param where: where the names come from, for the error message
    :raises BadRequest: a name is not valid
    """
    for name in names:
        if name not in STANDARD and not CUSTOM.fullmatch(name):
            raise errors.BadRequest(
                f"Schema error for {where}: {name!r} is not valid: a trait is a name "
                "of os-traits, or CUSTOM_ and then A-Z, 0-9 and _, and has 255 "
                "characters at most"
            )


def replace_all(connection: sa.Connection, node: Node, names: Collection[str]) -> None:
    """Replace the traits of a node, which is locked.

    :raises BadRequest: there are more than a node may have
    """
    new = set(names)
    if len(new) > MOST_PER_NODE:
        raise errors.BadRequest(
            f"Could not modify traits for node {node.uuid} as it would exceed the "
            f"maximum number of traits per node ({len(new)} vs. {MOST_PER_NODE})"
        )
    table = models.NodeTrait
    gone = sorted(set(node.traits) - new)
    if gone:
        connection.execute(
            sa.delete(table).where(table.node_id == node.id, table.trait.in_(gone))
        )
    added = sorted(new - set(node.traits))
    if added:
        rows = [{"node_id": node.id, "trait": name} for name in added]
        connection.execute(sa.insert(table), rows)
    if gone or added:
        # Its traits are part of the node.
        change = sa.update(models.Node).where(models.Node.id == node.id)
        connection.execute(change.values(updated_at=utcnow()))


def add(connection: sa.Connection, node: Node, name: str) -> None:
    """Add a trait to a node, which is locked.

    :raises BadRequest: it has as many as a node may have
    """
    replace_all(connection, node, {*node.traits, name})


def remove(connection: sa.Connection, node: Node, name: str) -> None:
    """Remove a trait from a node, which is locked.

    :raises NotFound: the node does not have it
    """
    if name not in node.traits:
        raise errors.NotFound(f"Node {node.uuid} doesn't have a trait '{name}'")
    replace_all(connection, node, set(node.traits) - {name})
