"""Traits of a node: listed, replaced, added, removed."""

from placement_foundation.http.operation import Call, Reply
from placement_nodes.conf import Settings
from placement_nodes.objects import node, trait
from placement_nodes.objects.node import Node
from placement_nodes.schemas import node as wire


def _locked(call: Call[Node, Settings]) -> Node:
    return node.get_locked(call.connection, call.subject)


def list_traits(call: Call[Node, Settings]) -> Reply:
    """List the traits of a node."""
    return Reply(call.subject.traits)


def replace_traits(call: Call[Node, Settings]) -> Reply:
    """Replace the traits of a node.

    :raises BadRequest: one of them is not a valid trait, or there are too many
    """
    wanted = sorted(set(call.body["traits"]))
    trait.check_names(wanted, "body")
    trait.replace_all(call.connection, _locked(call), wanted)
    return Reply(wanted)


def delete_traits(call: Call[Node, Settings]) -> Reply:
    """Remove all traits of a node."""
    trait.replace_all(call.connection, _locked(call), ())
    return Reply()


def add_trait(call: Call[Node, Settings]) -> Reply:
    """Add a trait to a node, unless it has it already.

    :raises BadRequest: it is not a valid trait, or one too many
    """
    name = call.path["trait"]
    trait.check_names([name], "trait")
    trait.add(call.connection, _locked(call), name)
    return Reply(location=wire.path_of(call.path["ident"], "traits", name))


def delete_trait(call: Call[Node, Settings]) -> Reply:
    """Remove a trait of a node.

    :raises NotFound: the node does not have it
    """
    trait.remove(call.connection, _locked(call), call.path["trait"])
    return Reply()
