"""Traits of a node: listed, replaced, added, removed."""

from placement_foundation.http.operation import (
    Call,
    Connection,
    Reply,
    reading,
    writing,
)
from placement_nodes.conf import Settings
from placement_nodes.objects import node as ledger
from placement_nodes.objects import trait
from placement_nodes.objects.node import Node
from placement_nodes.schemas import node as wire


def _locked(call: Call[None, Settings], connection: Connection) -> Node:
    return ledger.get_locked(connection, call.load(connection))


@reading
def list_traits(call: Call[None, Settings], connection: Connection) -> Reply:
    """List the traits of a node."""
    return Reply(call.load(connection).traits)


@writing
def replace_traits(call: Call[None, Settings], connection: Connection) -> Reply:
    """Replace the traits of a node.

    :raises BadRequest: one of them is not a valid trait, or there are too many
    """
    node = _locked(call, connection)
    names = sorted(set(call.body["traits"]))
    trait.check_names(names, "body")
    trait.replace_all(connection, node, names)
    return Reply(names)


@writing
def delete_traits(call: Call[None, Settings], connection: Connection) -> Reply:
    """Remove all traits of a node."""
    trait.replace_all(connection, _locked(call, connection), ())
    return Reply()


@writing
def add_trait(call: Call[None, Settings], connection: Connection) -> Reply:
    """Add a trait to a node, unless it has it already.

    :raises BadRequest: it is not a valid trait, or one too many
    """
    node = _locked(call, connection)
    name = call.path["trait"]
    trait.check_names([name], "trait")
    trait.add(connection, node, name)
    return Reply(location=wire.path_of(call.path["ident"], "traits", name))


@writing
def delete_trait(call: Call[None, Settings], connection: Connection) -> Reply:
    """Remove a trait of a node.

    :raises NotFound: the node does not have it
    """
    trait.remove(connection, _locked(call, connection), call.path["trait"])
    return Reply()
