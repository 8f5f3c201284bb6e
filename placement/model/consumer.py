"""Consumers: the owners of allocations, with their project, user and type."""

import dataclasses

# Stands for the type of a consumer that has none.
UNKNOWN_TYPE = "unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer as it was read. The type is None if no write has ever set one."""

    uuid: str
    project_id: str
    user_id: str
    type: str | None
    generation: int


@dataclasses.dataclass(frozen=True, slots=True)
class WantedConsumer:
    """A consumer as a write describes it.

    A type of None leaves the stored one alone. If the write is guarded, the stored
    generation must be the given one; None means that the consumer must not exist yet.
    """

    uuid: str
    project_id: str
    user_id: str
    type: str | None = None
    guarded: bool = False
    generation: int | None = None
