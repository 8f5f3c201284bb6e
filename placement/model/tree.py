"""Resource providers and their trees, as they were at one moment."""

import dataclasses
import datetime
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from placement.model.inventory import InventoryUsage

K = TypeVar("K", bound=Hashable)

# The trait of a provider whose inventories serve other trees.
SHARING = "MISC_SHARES_VIA_AGGREGATE"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Provider:
    """A resource provider, as it was at one moment.

    ``inventories`` are by resource class. ``trait_names`` has its traits in the order
    of their creation. ``position`` counts the members of its tree, each before its
    children and these before its next sibling, and ``end`` is the position after its
    last descendant. The rest does not matter to a search: ``inventory_times`` are when
    the inventories were changed, in their order, and ``aggregate_uuids`` are the
    aggregates, the oldest first.
    """

    uuid: str
    parent_uuid: str | None
    root_uuid: str
    inventories: Mapping[str, InventoryUsage]
    trait_names: tuple[str, ...]
    traits: frozenset[str]
    aggregates: frozenset[str]
    position: int
    end: int
    id: int = 0
    name: str = ""
    generation: int = 0
    modified: datetime.datetime | None = None
    inventory_times: tuple[datetime.datetime | None, ...] = ()
    aggregate_uuids: tuple[str, ...] = ()

    @property
    def shares(self) -> bool:
        """Whether it serves the trees that have an aggregate in common with it."""
        return SHARING in self.traits

    def taking(self, amounts: Mapping[str, int], times: int = 1) -> "Provider":
        """Return the provider with more of its inventories in use.

        :param amounts: by resource class, negative for less; others do not matter
        :param times: how often they are taken
        """
        inventories = {
            name: inventory.with_more(times * amounts.get(name, 0))
            for name, inventory in self.inventories.items()
        }
        return dataclasses.replace(self, inventories=inventories)

    def covers(self, other: "Provider") -> bool:
        """Return whether this is the other provider, or an ancestor of it."""
        return (
            self.position <= other.position < self.end
            and self.root_uuid == other.root_uuid
        )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The providers under one root: ``members`` by position, the root first.

    ``aggregates`` are the aggregates of all members, ``sharing`` the members that serve
    other trees as well.
    """

    members: tuple[Provider, ...]
    aggregates: frozenset[str] = dataclasses.field(init=False, repr=False)
    sharing: tuple[Provider, ...] = dataclasses.field(init=False, repr=False)
    root: Provider = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Stored, because every search looks at them.
        root, *others = self.members
        aggregates = root.aggregates
        for other in others:
            aggregates |= other.aggregates
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "aggregates", aggregates)
        sharing = tuple([member for member in self.members if member.shares])
        object.__setattr__(self, "sharing", sharing)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The providers that a search considers, as they were at one moment.

    ``sharing`` are the providers that serve other trees as well, ``tree_by_uuid`` the
    trees by the UUID of each of their members.
    """

    trees: Sequence[Tree]
    sharing: tuple[Provider, ...]
    tree_by_uuid: Mapping[str, Tree]

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
        tuple(member for tree in trees for member in tree.sharing),
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
