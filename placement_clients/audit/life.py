"""Living consumers and claims, as values."""

import dataclasses
import datetime
from collections import Counter
from collections.abc import Iterable, Mapping

from placement_clients.output import Unusable

# The type that Placement reports for consumers without one.
UNKNOWN = "unknown"


class NotAnswered(Unusable):
    """Living consumers could not be listed. The message says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Expected:
    """The expected claim of a consumer that is not being built, moved or removed.

    :param host: name or UUID of a root provider; None means any
    :param resources: amounts by class, of all providers together; ``VCPU+PCPU`` is the
        sum of two classes; None means any
    :param exact: whether it should have nothing of other classes
    """

    host: str | None = None
    resources: Mapping[str, int] | None = None
    exact: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Living:
    """A consumer that lives; without ``expected``, it may claim anything or nothing."""

    consumer: str
    expected: Expected | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Allocation:
    """The allocation of a consumer on one provider.

    :param name: of the provider
    :param place: UUID and name of the root of the provider
    :param is_shared: whether the provider shares with others, so it may be anywhere
    """

    name: str
    place: tuple[str, str]
    is_shared: bool
    resources: Mapping[str, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a claim, as far as it is known; ``created_at`` is in UTC."""

    project_id: str | None = None
    user_id: str | None = None
    consumer_type: str | None = None
    created_at: str | None = None

    @property
    def type(self) -> str:
        """The type, ``unknown`` if it has none or it is not known."""
        return self.consumer_type or UNKNOWN

    @property
    def is_known(self) -> bool:
        """Whether the owner has been read: every consumer has a project."""
        return self.project_id is not None

    @property
    def created(self) -> datetime.datetime | None:
        """When the consumer was created, in UTC."""
        if self.created_at is None:
            return None
        return datetime.datetime.fromisoformat(self.created_at)


@dataclasses.dataclass(slots=True)
class Claim:
    """All allocations of a consumer, by UUID of the provider."""

    consumer: str
    parts: dict[str, Allocation] = dataclasses.field(default_factory=dict)
    owner: Owner = Owner()

    @property
    def amounts(self) -> dict[str, Mapping[str, int]]:
        """Amounts by class, by UUID of the provider."""
        return {provider: part.resources for provider, part in self.parts.items()}

    @property
    def totals(self) -> dict[str, int]:
        """Amounts by class, of all providers together."""
        totals: Counter[str] = Counter()
        for part in self.parts.values():
            totals.update(part.resources)
        return dict(totals)


class Source:
    """A source of living consumers."""

    name = ""
    # Whether ``find`` returns living consumers, and not only checks for changes.
    can_look = False
    # Whether it lists consumers; an empty list is then a mistake.
    lists_consumers = True
    # The types of the consumers that it lists; empty means all.
    types: frozenset[str] = frozenset()
    # The time of its data, in UTC, if that is not the time at which it is read.
    moment: datetime.datetime | None = None

    def living(self) -> Iterable[Living]:
        """Yield living consumers; one may occur several times.

        :raises NotAnswered: they cannot be listed
        :raises Unusable: the list cannot be parsed
        """
        return ()

    def knows(self, claim: Claim) -> bool:
        """Return whether it would list the consumer of a claim, if that lives.

        An unknown owner may have any type.
        """
        created = claim.owner.created
        # Placement has whole seconds: the time may be any moment of that second.
        if self.moment and created and created >= self.moment.replace(microsecond=0):
            return False
        if not (self.types and claim.owner.is_known):
            return True
        return claim.owner.type in self.types

    def keeps(self, claim: Claim) -> bool:
        """Return whether a claim is justified by its resources, for any consumer."""
        return False

    def find(self, consumer: str) -> Living | None:
        """Look again for one consumer; None if it does not live, as far as is known.

        :raises NotAnswered: the source does not answer
        """
        return None
