"""What a host does not meet, and which hosts are nearest to serving a request."""

import dataclasses
import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence

from placement.model.tree import Tree
from placement.questions.explanation.alike import Kind
from placement.questions.explanation.constraint import (
    OF_AMOUNT,
    OF_ROOT,
    TO_BLAME,
    Constraint,
    weight,
)
from placement.questions.explanation.relaxation import Set
from placement.questions.explanation.survey import Deadline, Survey

# The most constraints to blame beside those that a host misses by themselves.
MOST_BLAMED = 4
# Of how many kinds it is found out at first, and at least, what they miss.
FIRST_TO_LEARN = 16


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A host, and the constraints that it does not meet: none, if it serves."""

    tree: Tree
    unmet: tuple[Constraint, ...]


class Nearness:
    """Finds what keeps kinds of hosts out, and how much of it there is."""

    def __init__(self, asked: Survey, deadline: Deadline) -> None:
        self._survey = asked
        self._deadline = deadline
        self._relaxations = asked.relaxations
        self._all = asked.relaxations.all
        self._misses: dict[Kind, Set] = {}
        self._places: dict[str, int] | None = None
        self._kinds: dict[str, Kind] = {}

    def missed(self, kind: Kind) -> Set:
        """Return the constraints that a kind does not meet, each by itself."""
        if kind not in self._misses:
            self._misses |= self._find_misses([kind])
        return self._misses[kind]

    def learn(self, kinds: Sequence[Kind]) -> list[Kind]:
        """Find out what each of some kinds misses; return those that time was left for.

        That takes as long as there are kinds and constraints, and may take half of the
        time. The first kinds come first, and at least a few of them are returned.
        """
        learned = 0
        chunk = FIRST_TO_LEARN
        while learned < len(kinds) and not (learned and self._deadline.is_half_over()):
            some = kinds[learned : learned + chunk]
            self._misses |= self._find_misses(some)
            learned += len(some)
            chunk *= 2
        if learned < len(kinds):
            self._survey.is_decided = False
        return list(kinds[:learned])

    def _find_misses(self, kinds: Sequence[Kind]) -> dict[Kind, Set]:
        misses = dict.fromkeys(kinds, 0)
        for each in self._relaxations.constraints:
            bit = self._relaxations.bit(each)
            if each.kind in OF_ROOT:
                meeting = self._survey.with_root(bit, kinds)
            elif each.suffix is not None:
                bare = self._relaxations.bare(each)
                meeting = self._survey.serving(bare, kinds, each.suffix)
            else:
                continue
            for kind in set(kinds).difference(meeting):
                misses[kind] |= bit
        return misses

    def nearest(self, kinds: Sequence[Kind], most: int) -> list[Host]:
        """Return the hosts that are nearest to serving.

        These are the hosts that the fewest constraints keep out, then those that lack
        least in proportion.
        """
        self._prepare(kinds)
        by_weight: dict[int, list[tuple[Kind, tuple[Constraint, ...]]]] = {}
        late: list[Kind] = []
        for kind in kinds if most else ():
            unmet = self._least_unmet(kind)
            if unmet is None:
                if self._deadline.has_come():
                    late.append(kind)
                    continue
                unmet = self._some_unmet(kind)
            by_weight.setdefault(weight(unmet), []).append((kind, unmet))
        near: list[Host] = []
        for size in sorted(by_weight):
            if len(near) >= most:
                break
            near += self._in_order(by_weight[size], most - len(near))
        for kind in sorted(late, key=self._least_weight):
            if len(near) >= most or self._deadline.has_long_come():
                break
            unmet = self._some_unmet(kind)
            near += self._in_order([(kind, unmet)], most - len(near))
        return near

    def _least_weight(self, kind: Kind) -> int:
        return weight(self._listed(self.missed(kind)))

    def _prepare(self, kinds: Iterable[Kind]) -> None:
        """Ask about kinds that miss the same constraints at once."""
        by_missed: dict[Set, list[Kind]] = {}
        for kind in kinds:
            by_missed.setdefault(self.missed(kind), []).append(kind)
        for missed, alike in by_missed.items():
            self._survey.serving(self._all & ~missed, alike)

    def _in_order(
        self, kinds: Iterable[tuple[Kind, tuple[Constraint, ...]]], most: int
    ) -> list[Host]:
        hosts = (
            (self._lack(tree, unmet), self._place(tree), Host(tree, unmet))
            for kind, unmet in kinds
            for tree in kind.trees
        )
        nearest = heapq.nsmallest(most, hosts, key=lambda each: each[:2])
        return [host for _, _, host in nearest]

    def _lack(self, tree: Tree, unmet: Iterable[Constraint]) -> float:
        """Return the largest fraction of an amount that a host does not have."""
        lacks = [0.0]
        for each in unmet:
            if each.kind in OF_AMOUNT:
                amount, name = int(str(each.value)), str(each.resource_class)
                most = max(
                    provider.inventories[name].free
                    if each.kind == "room"
                    else provider.inventories[name].max_unit
                    for provider in self._survey.reach(tree)
                    if name in provider.inventories
                )
                lacks.append(1 - max(0, min(amount, most)) / amount)
            elif each.kind == "inventory":
                lacks.append(1.0)
        return max(lacks)

    def _place(self, tree: Tree) -> int:
        if self._places is None:
            trees = self._survey.snapshot.trees
            self._places = {tree.root.uuid: at for at, tree in enumerate(trees)}
        return self._places[tree.root.uuid]

    def unmet_of(self, tree: Tree) -> tuple[Constraint, ...]:
        """Return the constraints that one host does not meet."""
        if not self._kinds:
            self._kinds = {
                each.root.uuid: kind
                for kind in self._survey.kinds
                for each in kind.trees
            }
        return self.unmet(self._kinds[tree.root.uuid])

    def unmet(self, kind: Kind) -> tuple[Constraint, ...]:
        """Return the constraints that a kind does not meet; none if it serves.

        These are the constraints that it does not meet by themselves. If those are not
        the reason, as few others as will do are returned, the likeliest reasons first;
        if these are not found in time or are very many, some that will do.
        """
        unmet = self._least_unmet(kind)
        return self._some_unmet(kind) if unmet is None else unmet

    def _least_unmet(self, kind: Kind) -> tuple[Constraint, ...] | None:
        """Return the least that a kind does not meet; None if that is not found."""
        if self._serves(kind, 0):
            return ()
        missed = self.missed(kind)
        for added in self._blames(self._listed(missed), self._to_blame(missed)):
            unmet = missed | sum(map(self._relaxations.bit, added))
            if self._serves(kind, unmet):
                return self._listed(unmet)
            if self._deadline.has_come():
                break
        return None

    def _some_unmet(self, kind: Kind) -> tuple[Constraint, ...]:
        """Return constraints without which a kind serves.

        These are the likeliest reasons, and as many as will do; those of them that it
        serves with are left out if there is time.
        """
        missed = self.missed(kind)
        if missed and not self._serves(kind, self._all):
            # A group that only forbids is served by nothing, whatever else is dropped.
            return self._listed(missed)
        bits = [self._relaxations.bit(each) for each in self._to_blame(missed)]
        too_few, enough = -1, len(bits)
        while enough - too_few > 1 and not self._deadline.has_long_come():
            middle = (too_few + enough) // 2
            if self._serves(kind, missed | sum(bits[:middle])):
                enough = middle
            else:
                too_few = middle
        unmet = missed | sum(bits[:enough])
        for bit in bits[:enough]:
            if self._deadline.has_come():
                break
            if self._serves(kind, unmet & ~bit):
                unmet &= ~bit
        return self._listed(unmet)

    def _listed(self, unmet: Set) -> tuple[Constraint, ...]:
        """Return constraints, without those that others of them imply."""
        return self._relaxations.listed(self._relaxations.unimplied(unmet))

    def _serves(self, kind: Kind, without: Set) -> bool:
        """Return whether a kind serves the request without some constraints."""
        return bool(self._survey.serving(self._all & ~without, [kind]))

    def _to_blame(self, missed: Set) -> list[Constraint]:
        """Return what else may be the reason, the likeliest first."""
        return sorted(
            self._relaxations.listed(self._all & ~missed),
            key=lambda each: TO_BLAME.index(each.kind),
        )

    def _blames(
        self, missed: Sequence[Constraint], others: Sequence[Constraint]
    ) -> Iterator[tuple[Constraint, ...]]:
        """Yield what may have to be dropped as well, the least first."""
        yield ()
        least = weight(missed)
        for more in range(2 * MOST_BLAMED + 1):
            for number in range(1, MOST_BLAMED + 1):
                for added in itertools.combinations(others, number):
                    if weight((*missed, *added)) == least + more:
                        yield added
                    if self._deadline.has_come():
                        return
