"""Some trees, and an index of their members."""

import dataclasses
import itertools
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from placement.forest import checksum
from placement.model.constraint import Constraint
from placement.model.tree import Provider, Tree

T = TypeVar("T")

# A constraint on some member of a tree, and the aggregates of providers that meet it
# and share with the trees that have such an aggregate.
Need: TypeAlias = tuple[Constraint, frozenset[str]]

# Less than the room of any provider.
NO_ROOM = -1
# How many amounts a block remembers, with the trees that have room for them.
MOST_AMOUNTS = 64
# Translates the digits of zeros and ones to their values.
_VALUES = bytes(digit == ord("1") for digit in range(256))


@dataclasses.dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Block:
    """Some trees in the order of their roots' ids.

    Sets of trees are bits by position. ``single`` are the trees with one provider.
    ``traits`` and ``aggregates`` have the trees in which some member has one. ``rooms``
    have the largest room of a member of each tree, by position, and ``most`` the
    largest of these. ``sharing`` are the providers that serve other trees as well.
    """

    roots: tuple[int, ...]
    trees: tuple[Tree, ...]
    single: int
    traits: Mapping[str, int]
    aggregates: Mapping[str, int]
    rooms: Mapping[str, tuple[int, ...]]
    most: Mapping[str, int]
    sharing: tuple[Provider, ...]
    # The trees with room for an amount: most requests are for the same few amounts.
    _roomy: dict[tuple[str, int], int] = dataclasses.field(
        default_factory=dict, init=False, repr=False
    )

    def select(
        self, needs: Iterable[Need], first: int = 0, end: int | None = None
    ) -> Iterator[Tree]:
        """Return the trees that may meet all needs, according to the index.

        :param first: the position of the first one to look at
        :param end: the position after the last one; None means all
        """
        bits = (1 << (len(self.trees) if end is None else end)) - (1 << first)
        for constraint, helping in needs:
            if not bits:
                break
            bits &= constraint.trees_in(self) | self.within(helping)
        return _at(bits, self.trees)

    def within(self, aggregates: Iterable[str]) -> int:
        """Return the trees in which some member is in one of some aggregates."""
        bits = 0
        for name in aggregates:
            bits |= self.aggregates.get(name, 0)
        return bits

    def with_room(self, name: str, amount: int) -> int:
        """Return the trees in which some member has room for an amount."""
        if self.most.get(name, NO_ROOM) < amount:
            return 0
        bits = self._roomy.get((name, amount))
        if bits is None:
            digits = ["1" if room >= amount else "0" for room in self.rooms[name]]
            bits = int("".join(reversed(digits)), 2)
            if len(self._roomy) >= MOST_AMOUNTS:
                self._roomy.clear()
            self._roomy[name, amount] = bits
        return bits

    def replace(self, trees: Mapping[int, Tree]) -> "Block":
        """Return the block with some of its trees replaced, by the ids of their roots.

        This is quick if only usages have changed.
        """
        replaced = list(self.trees)
        # By the classes in which a tree has another room now.
        rooms: dict[str, list[int]] = {}
        sharing, sums = False, _sums.get(self)
        for root_id, tree in trees.items():
            position = self.roots.index(root_id)
            if not _are_indexed_alike(replaced[position], tree):
                changed = dict(zip(self.roots, self.trees, strict=True))
                return block_of({**changed, **trees})
            before = replaced[position]
            if sums:
                sums = checksum.exchange(
                    sums, checksum.of_tree(tree), checksum.of_tree(before)
                )
            replaced[position] = tree
            for name, room in _rooms_of(tree).items():
                if self.rooms[name][position] != room:
                    rooms.setdefault(name, [*self.rooms[name]])[position] = room
            sharing = sharing or any(member.shares for member in tree.members)
        renewed = dataclasses.replace(
            self,
            trees=tuple(replaced),
            rooms={
                **self.rooms,
                **{name: tuple(each) for name, each in rooms.items()},
            },
            most={**self.most, **{name: max(each) for name, each in rooms.items()}},
            sharing=_list_sharing(replaced) if sharing else self.sharing,
        )
        if sums:
            _sums[renewed] = sums
        return renewed


# The sums of blocks that were compared with the database, as long as blocks are kept.
_sums: weakref.WeakKeyDictionary[Block, checksum.Sums] = weakref.WeakKeyDictionary()


def sums_of(block: Block) -> checksum.Sums:
    """Return the sums over the trees of a block."""
    sums = _sums.get(block)
    if sums is None:
        sums = checksum.add_up([checksum.of_tree(tree) for tree in block.trees])
        _sums[block] = sums
    return sums


def block_of(trees: Mapping[int, Tree]) -> Block:
    """Return the block of some trees, given in the order of the ids of their roots."""
    listed = tuple(trees.values())
    traits: dict[frozenset[str], int] = {}
    aggregates: dict[frozenset[str], int] = {}
    rooms: dict[str, list[int]] = {}
    single = 0
    for position, tree in enumerate(listed):
        bit = 1 << position
        if len(tree.members) == 1:
            single |= bit
        for member in tree.members:
            traits[member.traits] = traits.get(member.traits, 0) | bit
        aggregates[tree.aggregates] = aggregates.get(tree.aggregates, 0) | bit
        for name, room in _rooms_of(tree).items():
            if name not in rooms:
                rooms[name] = [NO_ROOM] * len(listed)
            rooms[name][position] = room
    return Block(
        tuple(trees),
        listed,
        single,
        _each(traits),
        _each(aggregates),
        {name: tuple(each) for name, each in rooms.items()},
        {name: max(each) for name, each in rooms.items()},
        _list_sharing(listed),
    )


def _list_sharing(trees: Iterable[Tree]) -> tuple[Provider, ...]:
    return tuple(member for tree in trees for member in tree.members if member.shares)


def _rooms_of(tree: Tree) -> dict[str, int]:
    """Return the most that a member has room for, by resource class."""
    rooms: dict[str, int] = {}
    for member in tree.members:
        for name, inventory in member.inventories.items():
            room = max(inventory.room, NO_ROOM)
            if room > rooms.get(name, NO_ROOM - 1):
                rooms[name] = room
    return rooms


def _are_indexed_alike(one: Tree, other: Tree) -> bool:
    """Return whether two trees differ only in their room, or not at all."""
    return len(one.members) == len(other.members) and all(
        before.traits == after.traits
        and before.aggregates == after.aggregates
        and before.inventories.keys() == after.inventories.keys()
        for before, after in zip(one.members, other.members, strict=True)
    )


def _each(sets: Mapping[frozenset[str], int]) -> dict[str, int]:
    """Return the bits of each name, from the bits of sets of names."""
    bits: dict[str, int] = {}
    for names, trees in sets.items():
        for name in names:
            bits[name] = bits.get(name, 0) | trees
    return bits


def _at(bits: int, things: Sequence[T]) -> Iterator[T]:
    """Return the things at the positions of the bits that are set."""
    chosen = bin(bits)[:1:-1].encode().translate(_VALUES)
    return itertools.compress(things, chosen)


def blocks_of(trees: Mapping[int, Tree], size: int) -> Iterator[Block]:
    """Yield blocks of some trees, given in the order of the ids of their roots."""
    roots: Sequence[int] = tuple(trees)
    for start in range(0, len(roots), size):
        yield block_of({key: trees[key] for key in roots[start : start + size]})
