"""The values that the search for allocation candidates works on."""

import dataclasses
import datetime
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)

# The trait of a provider whose inventories serve other trees.
SHARING = "MISC_SHARES_VIA_AGGREGATE"


# The largest amount that an inventory can have.
LARGEST_AMOUNT = 0x7FFFFFFF


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """What a resource provider has of one resource class, in units of the class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = LARGEST_AMOUNT
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """The amount that can be allocated in all, rounded toward zero."""
        return int((self.total - self.reserved) * self.allocation_ratio)


@dataclasses.dataclass(frozen=True, slots=True)
class Stock(Inventory):
    """An inventory, and how much of it is used.

    ``room`` is the most that one consumer may take from what is left. Whether an amount
    fits is decided here, for the search and for writing allocations alike.
    """

    used: int = 0
    room: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Computed once, because every search compares it with an amount.
        object.__setattr__(self, "room", min(self.max_unit, self.free))

    @classmethod
    def of(cls, inventory: Inventory, used: int) -> "Stock":
        """Return the stock for an inventory of which some is used."""
        return cls(**dataclasses.asdict(inventory), used=used)

    @property
    def free(self) -> int:
        """What is left of the capacity; negative if too much is used."""
        return self.capacity - self.used

    def suits(self, amount: int) -> bool:
        """Return whether an amount respects the least and most units and the step."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0

    def holds(self, amount: int) -> bool:
        """Return whether there is room for an amount in addition to what is used."""
        return self.used + amount <= self.capacity

    def fits(self, amount: int) -> bool:
        """Return whether an amount can be allocated: it suits, and there is room."""
        return amount <= self.room and self.suits(amount)


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """What one request group asks for.

    ``resources`` are amounts by resource class. A provider must have one of each set
    in ``required`` and be in one of each set in ``member_of``. The group with the empty
    suffix may spread over several providers.

    A ``relaxed`` group leaves out some of the constraints: for classes in ``any_unit``
    every amount is suitable, those in ``no_room`` need no room and take none, and if no
    resources are left, any one provider that meets the rest may serve it.
    """

    suffix: str = ""
    resources: Mapping[str, int] = dataclasses.field(default_factory=dict)
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()
    in_tree: str | None = None
    relaxed: bool = False
    any_unit: frozenset[str] = frozenset()
    no_room: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A request for allocation candidates.

    ``root_required`` and ``root_forbidden`` are traits of the anchor, each set in
    ``same_subtree`` names groups by suffix. Without ``nested``, as before microversion
    1.29, a candidate takes from one provider of a tree at most.
    """

    groups: tuple[Group, ...]
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    isolate: bool = False
    same_subtree: tuple[frozenset[str], ...] = ()
    nested: bool = True


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Provider:
    """A resource provider, as it was at one moment.

    ``stocks`` are its inventories by resource class. ``trait_names`` has its traits
    in the order of their creation. ``position`` counts the members of its tree, each
    before its children and these before its next sibling, and ``end`` is the position
    after its last descendant. The rest does not matter to a search; ``notes`` are for
    other modules to keep what they derive from it, for as long as it exists.
    """

    uuid: str
    parent_uuid: str | None
    root_uuid: str
    stocks: Mapping[str, Stock]
    trait_names: tuple[str, ...]
    traits: frozenset[str]
    aggregates: frozenset[str]
    position: int
    end: int
    id: int = 0
    name: str = ""
    generation: int = 0
    modified: datetime.datetime | None = None
    notes: dict[Hashable, Any] = dataclasses.field(
        default_factory=dict, init=False, repr=False
    )

    @property
    def shares(self) -> bool:
        """Whether it serves the trees that have an aggregate in common with it."""
        return SHARING in self.traits

    @property
    def is_alone(self) -> bool:
        """Whether it is the only member of its tree."""
        return self.end == 1

    def covers(self, other: "Provider") -> bool:
        """Return whether this is the other provider, or an ancestor of it."""
        return (
            self.position <= other.position < self.end
            and self.root_uuid == other.root_uuid
        )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The providers under one root: ``members`` by position, the root first.

    ``aggregates`` are the aggregates of all members.
    """

    members: tuple[Provider, ...]
    aggregates: frozenset[str]

    @property
    def root(self) -> Provider:
        """The provider that has no parent."""
        return self.members[0]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Everything that a search considers, as it was at one moment.

    ``sharing`` are the providers that serve other trees as well, ``homes`` the trees
    by the UUID of each of their members.
    """

    trees: Sequence[Tree]
    sharing: tuple[Provider, ...]
    homes: Mapping[str, Tree]

    def sharing_with(self, aggregates: frozenset[str]) -> list[Provider]:
        """Return the sharing providers that have one of some aggregates."""
        return [
            provider
            for provider in self.sharing
            if not provider.aggregates.isdisjoint(aggregates)
        ]


def snapshot_of(trees: Iterable[Tree]) -> Snapshot:
    """Return the snapshot of some trees."""
    trees = tuple(trees)
    return Snapshot(
        trees,
        tuple(member for tree in trees for member in tree.members if member.shares),
        {member.uuid: tree for tree in trees for member in tree.members},
    )


def walk(parents: Mapping[K, K | None]) -> Iterator[list[tuple[K, int]]]:
    """Yield, for each tree, its members by position, each with its ``end``.

    :param parents: the parent of each member, None for a root
    """
    children: dict[K | None, list[K]] = {}
    for member, parent in parents.items():
        children.setdefault(parent, []).append(member)
    for root in children.get(None, ()):
        order: list[K] = []
        waiting = [root]
        while waiting:
            member = waiting.pop()
            order.append(member)
            waiting.extend(reversed(children.get(member, ())))
        sizes: dict[K | None, int] = dict.fromkeys(order, 1)
        for member in reversed(order):
            parent = parents[member]
            sizes[parent] = sizes.get(parent, 0) + sizes[member]
        yield [
            (member, position + sizes[member]) for position, member in enumerate(order)
        ]
