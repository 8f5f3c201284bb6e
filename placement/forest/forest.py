"""The providers of a cloud at one moment, with the names of traits and classes.

A forest never changes. The next one is made from it and the trees that differ, and
shares the rest with it.
"""

import bisect
import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from placement.forest import block, index
from placement.forest.block import Block, Need
from placement.forest.index import Entry, Index
from placement.forest.vocabulary import Vocabulary
from placement.model import constraint
from placement.model.constraint import Amount, Constraint, MemberOf
from placement.model.request import Request
from placement.model.tree import Provider, Snapshot, Tree

# The aggregates of no provider.
UNHELPED: frozenset[str] = frozenset()
# How many trees a block has when it is made; it may grow to twice as many.
BLOCK_SIZE = 256


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """All trees, or those that can matter to the question that they were loaded for.

    ``firsts`` are the ids of the first root of each block but the first one.
    """

    vocabulary: Vocabulary
    blocks: tuple[Block, ...]
    firsts: tuple[int, ...]
    sharing: tuple[Provider, ...]
    uuids: Index
    names: Index

    @property
    def everything(self) -> Snapshot:
        """A snapshot of all trees."""
        return self._snapshot(Trees(self.blocks))

    @property
    def size(self) -> int:
        """How many trees there are."""
        return sum(len(each.roots) for each in self.blocks)

    def relevant(self, request: Request) -> Snapshot:
        """Return the trees that can matter to a request, and maybe others.

        They are found one by one, while they are iterated over.
        """
        named = self._only_tree(request)
        if named is not None:
            return self._snapshot(named)
        return self._snapshot(Trees(self.blocks, _needs(request, self)))

    def around(
        self,
        request: Request,
        start: float = 0.0,
        aggregates: frozenset[str] | None = None,
    ) -> Snapshot:
        """Return the trees of ``relevant``, from some place on and round to it.

        :param start: the place, from 0 to 1
        :param aggregates: only trees with a member in one of these; None means all
        """
        named = self._only_tree(request)
        if named is not None:
            return self._snapshot(named)
        needs = _needs(request, self)
        if aggregates is not None:
            needs.append((MemberOf(None, tuple(aggregates)), UNHELPED))
        return self._snapshot(Trees(self.blocks, needs, start))

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
        root_id = self.uuids.find(uuid)
        return None if root_id is None else self.tree(root_id)

    def tree_named(self, name: str) -> Tree | None:
        """Return the tree that a provider is in, by its name."""
        root_id = self.names.find(name)
        return None if root_id is None else self.tree(root_id)

    def root_id(self, provider: Provider) -> int:
        """Return the id of the root of a provider of this forest."""
        if provider.parent_uuid is None:
            return provider.id
        return self.uuids.find(provider.uuid) or provider.id

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
        blocks = list(self.blocks) or [block.block_of({})]
        for which in sorted(by_block, reverse=True):
            blocks[which : which + 1] = _renew(blocks[which], by_block[which], trees)
        gone = _members({key: self.tree(key) for key in {*root_ids, *trees}})
        there = _members(trees)
        return _assemble(
            vocabulary,
            blocks,
            self.uuids.replace(set(_by_uuid(gone)), set(_by_uuid(there))),
            self.names.replace(set(_by_name(gone)), set(_by_name(there))),
        )

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
            if not group.suffix or not any(each.shares for each in tree.members):
                return (tree,)
        return None


def forest_of(vocabulary: Vocabulary, trees: Mapping[int, Tree]) -> Forest:
    """Return the forest of some trees, given in the order of the ids of their roots."""
    members = _members(trees)
    return _assemble(
        vocabulary,
        list(block.blocks_of(trees, BLOCK_SIZE)),
        index.index_of(_by_uuid(members)),
        index.index_of(_by_name(members)),
    )


def _assemble(
    vocabulary: Vocabulary, blocks: Sequence[Block], uuids: Index, names: Index
) -> Forest:
    return Forest(
        vocabulary,
        tuple(blocks),
        tuple(each.roots[0] for each in blocks[1:]),
        tuple(itertools.chain.from_iterable(each.sharing for each in blocks)),
        uuids,
        names,
    )


def _renew(old: Block, root_ids: set[int], trees: Mapping[int, Tree]) -> list[Block]:
    """Return the blocks that replace one in which some trees change."""
    if root_ids <= trees.keys() and root_ids.issubset(old.roots):
        return [old.replace({root_id: trees[root_id] for root_id in root_ids})]
    old_trees = dict(zip(old.roots, old.trees, strict=True))
    staying = {key: tree for key, tree in old_trees.items() if key not in root_ids}
    staying |= {key: trees[key] for key in root_ids & trees.keys()}
    renewed = {key: staying[key] for key in sorted(staying)}
    size = BLOCK_SIZE if len(renewed) > 2 * BLOCK_SIZE else 2 * BLOCK_SIZE
    return list(block.blocks_of(renewed, size))


def _members(trees: Mapping[int, Tree | None]) -> list[tuple[Provider, int]]:
    """Return the members of trees, each with the id of its root.

    :param trees: by the ids of their roots
    """
    return [
        (member, root_id)
        for root_id, tree in trees.items()
        if tree
        for member in tree.members
    ]


def _by_uuid(members: Iterable[tuple[Provider, int]]) -> Iterator[Entry]:
    return ((member.uuid, root_id) for member, root_id in members)


def _by_name(members: Iterable[tuple[Provider, int]]) -> Iterator[Entry]:
    return ((member.name, root_id) for member, root_id in members)


class Trees(Sequence[Tree]):
    """The trees of some blocks that meet needs, found as they are iterated over.

    They come in the order of the blocks, or round from a place between 0 and 1.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        needs: Sequence[Need] | None = None,
        start: float = 0.0,
    ) -> None:
        self._blocks = blocks
        self._needs = needs
        self._start = start

    def __iter__(self) -> Iterator[Tree]:
        if not self._start or not self._blocks:
            return self._of(self._blocks)
        return self._round()

    def _round(self) -> Iterator[Tree]:
        which, part = divmod(self._start * len(self._blocks), 1)
        at = min(int(which), len(self._blocks) - 1)
        split = int(part * len(self._blocks[at].trees))
        yield from self._within(self._blocks[at], split, None)
        yield from self._of(self._blocks[at + 1 :])
        yield from self._of(self._blocks[:at])
        yield from self._within(self._blocks[at], 0, split)

    def beginning(self, start: float) -> "Trees":
        """Return the same trees, from another place on."""
        return Trees(self._blocks, self._needs, start)

    def _within(self, block: Block, first: int, end: int | None) -> Iterator[Tree]:
        if self._needs:
            return block.select(self._needs, first, end)
        return iter(block.trees[first:end])

    def _of(self, blocks: Sequence[Block]) -> Iterator[Tree]:
        return itertools.chain.from_iterable(
            each.select(self._needs) if self._needs else each.trees for each in blocks
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


def _needs(request: Request, forest: Forest) -> list[Need]:
    """Return what a tree must have to be an anchor of any candidate.

    Constraints that are quick to look up come first.
    """
    trees = TreeByUuid(forest)
    needs: dict[Constraint, frozenset[str]] = {}
    for each in constraint.of_root(request):
        # The root itself must meet the constraint; no provider that shares helps.
        needs[each] = UNHELPED
    for group in request.groups:
        for each in constraint.of_provider(group, trees):
            needs[each] = _helping(each, forest.sharing)
    for group in request.groups:
        for name, amount in group.resources.items():
            each = Amount(None, amount, name)
            needs[each] = _helping(each, forest.sharing)
    return list(needs.items())


def _helping(each: Constraint, sharing: Iterable[Provider]) -> frozenset[str]:
    """Return the aggregates of the sharing providers that meet a constraint."""
    return frozenset().union(
        *(provider.aggregates for provider in sharing if each.meets(provider))
    )
