"""The providers of a cloud at one moment, with the names of traits and classes.

A forest never changes. The next one is made from it and the trees that differ, and
shares the rest with it. Its trees are in blocks, each with an index of what they meet.
"""

import bisect
import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from placement.forest.vocabulary import Vocabulary
from placement.model import constraint
from placement.model.constraint import MemberOf, Need
from placement.model.request import Request
from placement.model.tree import Provider, Snapshot, Tree

T = TypeVar("T")

# How many needs a block remembers, with the trees that may meet them.
MOST_NEEDS = 256
# How many trees a block has when it is made; it may grow to twice as many.
BLOCK_SIZE = 256
# Translates the digits of zeros and ones to their values.
_VALUES = bytes(digit == ord("1") for digit in range(256))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some trees in the order of their roots' ids, with an index.

    ``sharing`` are the providers that serve other trees as well. The index has the
    trees that may meet a need, as bits by position: most requests have the same few
    needs.
    """

    roots: tuple[int, ...]
    trees: tuple[Tree, ...]
    sharing: tuple[Provider, ...]
    _index: dict[Need, int] = dataclasses.field(default_factory=dict, repr=False)

    def select(
        self, needs: Iterable[Need], first: int = 0, end: int | None = None
    ) -> Iterator[Tree]:
        """Return the trees that may meet all needs, according to the index.

        :param first: the position of the first one to look at
        :param end: the position after the last one; None means all
        """
        bits = (1 << (len(self.trees) if end is None else end)) - (1 << first)
        for each in needs:
            if not bits:
                break
            bits &= self._meeting(each)
        return _at(bits, self.trees)

    def _meeting(self, need: Need) -> int:
        """Return the trees that may meet a need."""
        bits = self._index.get(need)
        if bits is None:
            digits = ["1" if need.may_be_met(tree) else "0" for tree in self.trees]
            bits = int("".join(reversed(digits)), 2)
            if len(self._index) >= MOST_NEEDS:
                self._index.clear()
            self._index[need] = bits
        return bits

    def replace(self, trees: Mapping[int, Tree]) -> "Block":
        """Return the block with some of its trees replaced, by the ids of their roots.

        The others are not looked at again.
        """
        replaced, index = list(self.trees), self._index.copy()
        for root_id, tree in trees.items():
            position = self.roots.index(root_id)
            replaced[position] = tree
            bit = 1 << position
            for need, bits in index.items():
                index[need] = bits | bit if need.may_be_met(tree) else bits & ~bit
        sharing = self.sharing
        if sharing or _list_sharing(trees.values()):
            sharing = _list_sharing(replaced)
        return Block(self.roots, tuple(replaced), sharing, index)


def block_of(trees: Mapping[int, Tree]) -> Block:
    """Return the block of some trees, given in the order of the ids of their roots."""
    listed = tuple(trees.values())
    return Block(tuple(trees), listed, _list_sharing(listed))


def _list_sharing(trees: Iterable[Tree]) -> tuple[Provider, ...]:
    return tuple(member for tree in trees for member in tree.sharing)


def _at(bits: int, things: Sequence[T]) -> Iterator[T]:
    """Return the things at the positions of the bits that are set."""
    chosen = bin(bits)[:1:-1].encode().translate(_VALUES)
    return itertools.compress(things, chosen)


def blocks_of(trees: Mapping[int, Tree], size: int) -> Iterator[Block]:
    """Yield blocks of some trees, given in the order of the ids of their roots."""
    roots: Sequence[int] = tuple(trees)
    for start in range(0, len(roots), size):
        yield block_of({key: trees[key] for key in roots[start : start + size]})


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """All trees, or those that can matter to the question that they were loaded for.

    ``firsts`` are the ids of the first root of each block but the first one. ``size``
    is how many trees there are. ``uuids`` have the id of the root of the tree that a
    provider is in.
    """

    vocabulary: Vocabulary
    blocks: tuple[Block, ...]
    firsts: tuple[int, ...]
    sharing: tuple[Provider, ...]
    size: int
    uuids: Mapping[str, int]

    @property
    def everything(self) -> Snapshot:
        """A snapshot of all trees."""
        return self._snapshot(Trees(self.blocks))

    def relevant(
        self,
        request: Request,
        aggregates: frozenset[str] | None = None,
    ) -> Snapshot:
        """Return the trees that can matter to a request, and maybe others.

        They are found one by one, while they are iterated over.

        :param aggregates: only trees with a member in one of these; None means all
        """
        named = self._only_tree(request)
        if named is not None:
            return self._snapshot(named)
        needs = constraint.needs_of(request, TreeByUuid(self), self.sharing)
        if aggregates is not None:
            needs.append(Need(MemberOf(None, tuple(aggregates))))
        return self._snapshot(Trees(self.blocks, needs))

    def tree(self, root_id: int) -> Tree | None:
        """Return a tree by the id of its root."""
        if not self.blocks:
            return None
        among = self.blocks[bisect.bisect_right(self.firsts, root_id)]
        at = bisect.bisect_left(among.roots, root_id)
        is_there = at < len(among.roots) and among.roots[at] == root_id
        return among.trees[at] if is_there else None

    def roots_from(self, root_id: int) -> Iterator[int]:
        """Yield the ids of the roots that are not below an id, in order."""
        start = bisect.bisect_right(self.firsts, root_id)
        for each in self.blocks[start:]:
            yield from each.roots[bisect.bisect_left(each.roots, root_id) :]

    def tree_of(self, uuid: str) -> Tree | None:
        """Return the tree that a provider is in, by its UUID."""
        root_id = self.uuids.get(uuid)
        return None if root_id is None else self.tree(root_id)

    def root_id(self, provider: Provider) -> int:
        """Return the id of the root of a provider of this forest."""
        if provider.parent_uuid is None:
            return provider.id
        return self.uuids.get(provider.uuid) or provider.id

    def provider(self, uuid: str) -> Provider | None:
        """Return a provider."""
        tree = self.tree_of(uuid)
        members = tree.members if tree else ()
        return next((each for each in members if each.uuid == uuid), None)

    def replace(
        self,
        vocabulary: Vocabulary,
        root_ids: Collection[int],
        trees: Mapping[int, Tree],
    ) -> "Forest":
        """Return the forest with some trees replaced.

        :param root_ids: the root ids of the trees to remove
        :param trees: the trees to put in their place, by the ids of their roots
        """
        by_block: dict[int, set[int]] = {}
        for root_id in {*root_ids, *trees}:
            which = bisect.bisect_right(self.firsts, root_id)
            by_block.setdefault(which, set()).add(root_id)
        blocks = list(self.blocks) or [block_of({})]
        for which in sorted(by_block, reverse=True):
            blocks[which : which + 1] = _renew(blocks[which], by_block[which], trees)
        gone = _index({key: self.tree(key) for key in {*root_ids, *trees}})
        uuids = _renewed(self.uuids, gone, _index(trees))
        return _assemble(vocabulary, blocks, uuids)

    def _snapshot(self, trees: Sequence[Tree]) -> Snapshot:
        return Snapshot(trees, self.sharing, TreeByUuid(self))

    def _only_tree(self, request: Request) -> Sequence[Tree] | None:
        """Return the only tree that ``in_tree`` allows as an anchor; None if many."""
        for group in request.groups:
            if group.in_tree is None or not group.resources:
                continue
            tree = self.tree_of(group.in_tree)
            if tree is None:
                return ()
            if not group.suffix or not tree.sharing:
                return (tree,)
        return None


def forest_of(vocabulary: Vocabulary, trees: Mapping[int, Tree]) -> Forest:
    """Return the forest of some trees, given in the order of the ids of their roots."""
    blocks = list(blocks_of(trees, BLOCK_SIZE))
    return _assemble(vocabulary, blocks, _index(trees))


def _assemble(
    vocabulary: Vocabulary, blocks: Sequence[Block], uuids: Mapping[str, int]
) -> Forest:
    return Forest(
        vocabulary,
        tuple(blocks),
        tuple(each.roots[0] for each in blocks[1:]),
        tuple(itertools.chain.from_iterable(each.sharing for each in blocks)),
        sum(len(each.roots) for each in blocks),
        uuids,
    )


def _renewed(
    index: Mapping[str, int], gone: Mapping[str, int], there: Mapping[str, int]
) -> Mapping[str, int]:
    """Return an index without some entries, and with others."""
    if gone == there:
        return index
    renewed = dict(index)
    for key, root_id in gone.items():
        if renewed.get(key) == root_id:
            del renewed[key]
    renewed.update(there)
    return renewed


def _renew(old: Block, root_ids: set[int], trees: Mapping[int, Tree]) -> list[Block]:
    """Return the blocks that replace one in which some trees change."""
    if root_ids <= trees.keys() and root_ids.issubset(old.roots):
        return [old.replace({root_id: trees[root_id] for root_id in root_ids})]
    old_trees = dict(zip(old.roots, old.trees, strict=True))
    staying = {key: tree for key, tree in old_trees.items() if key not in root_ids}
    staying |= {key: trees[key] for key in root_ids & trees.keys()}
    renewed = {key: staying[key] for key in sorted(staying)}
    size = BLOCK_SIZE if len(renewed) > 2 * BLOCK_SIZE else 2 * BLOCK_SIZE
    return list(blocks_of(renewed, size))


def _index(trees: Mapping[int, Tree | None]) -> dict[str, int]:
    """Return the ids of the roots of providers' trees, by UUID.

    :param trees: by the ids of their roots
    """
    return {
        member.uuid: root_id
        for root_id, tree in trees.items()
        for member in (tree.members if tree else ())
    }


class Trees(Sequence[Tree]):
    """The trees of some blocks that meet needs, found as they are iterated over."""

    def __init__(self, blocks: Sequence[Block], needs: Sequence[Need] = ()) -> None:
        self._blocks = blocks
        self._needs = needs

    def __iter__(self) -> Iterator[Tree]:
        return self._of(self._blocks)

    def beginning(self, start: float) -> Iterator[Tree]:
        """Yield the trees from a place between 0 and 1 on, and round to it."""
        if not self._blocks:
            return
        which, part = divmod(start * len(self._blocks), 1)
        at = min(int(which), len(self._blocks) - 1)
        block = self._blocks[at]
        split = int(part * len(block.trees))
        yield from block.select(self._needs, split)
        yield from self._of([*self._blocks[at + 1 :], *self._blocks[:at]])
        yield from block.select(self._needs, 0, split)

    def _of(self, blocks: Sequence[Block]) -> Iterator[Tree]:
        return itertools.chain.from_iterable(
            each.select(self._needs) for each in blocks
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, which):  # type: ignore[no-untyped-def]
        """Return one tree or several, by position."""
        return tuple(self)[which]


class TreeByUuid(Mapping[str, Tree]):
    """The trees of a forest by the UUID of each member."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest

    def __getitem__(self, uuid: str) -> Tree:
        tree = self._forest.tree_of(uuid)
        if tree is None:
            raise KeyError(uuid)
        return tree

    def __iter__(self) -> Iterator[str]:
        return iter(self._forest.uuids)

    def __len__(self) -> int:
        return len(self._forest.uuids)
