"""The world that a handler of this service receives."""

from typing import TypeAlias, TypeVar

from placement_foundation.http import operation
from placement_reservations.world import World

S = TypeVar("S")

Call: TypeAlias = operation.Call[S, World]


def world_of(call: Call[S]) -> World:
    """Return the world of operations, on behalf of a request."""
    world = call.context
    if call.asking is None:
        return world
    return world.for_request(call.asking.global_request_id or call.asking.request_id)
