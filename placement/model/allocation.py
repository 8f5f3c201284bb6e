"""Allocations: what consumers use, and what they claim."""

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from placement.model.consumer import Consumer, WantedConsumer

# The UUID of a provider and the name of a resource class.
Place: TypeAlias = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Allocation:
    """The usage of one provider by one consumer, by resource class name."""

    consumer: Consumer
    provider_uuid: str
    provider_generation: int
    amounts: Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Allocations:
    """Some allocations, and when the newest of them was written, in UTC."""

    allocations: Sequence[Allocation]
    modified: datetime.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """All that one consumer is to use; if that is nothing, the consumer is removed.

    The amounts are keyed by provider UUID, then by resource class name.
    """

    consumer: WantedConsumer
    amounts: Mapping[str, Mapping[str, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class Holder:
    """A consumer with what it uses of one inventory. Old consumers have no record."""

    consumer: str
    amount: int
    type: str | None
    project: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class Owner:
    """The project, user and type of a consumer, and when it was created, in UTC."""

    project: str
    user: str
    type: str | None
    created: datetime.datetime | None


@dataclasses.dataclass(frozen=True, slots=True)
class Holding:
    """The usage of a provider by a consumer, by resource class name.

    The owner is None if it was not loaded, or is not recorded.
    """

    root_id: int
    provider_id: int
    consumer: str
    amounts: Mapping[str, int]
    owner: Owner | None = None
