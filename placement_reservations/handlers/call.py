"""What a handler of this service receives: the world, and who is asking."""

from typing import TypeAlias, TypeVar

from placement_foundation.http import operation
from placement_reservations.world import World

S = TypeVar("S")

Call: TypeAlias = operation.Call[S, World]


def project_of(call: Call[S], rule: str) -> str | None:
    """Return the project of which a caller may see something.

    :param rule: with it, callers see that of all projects: None
    """
    if call.may(rule):
        return None
    return (call.asking and call.asking.project_id) or ""


def world_of(call: Call[S]) -> World:
    """Return the world of operations, on behalf of a request."""
    world = call.context
    if call.asking is None:
        return world
    return world.for_request(call.asking.global_request_id or call.asking.request_id)
