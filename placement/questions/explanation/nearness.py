"""Unmet constraints of hosts, and the hosts that are nearest to serving a request."""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from placement.model.constraint import (
    Constraint,
    HasInventory,
    InTree,
    Isolate,
    MemberOf,
    NotMemberOf,
    Room,
    RootForbidden,
    RootRequired,
    SameSubtree,
    Together,
    TraitForbidden,
    TraitRequired,
    Unit,
)
from placement.model.tree import Tree
from placement.questions.explanation.alike import Kind
from placement.questions.explanation.finding import Verdict, judge, meeting_of
from placement.questions.explanation.relaxation import Set, weight
from placement.questions.explanation.survey import Deadline, Survey

# The first of these is to blame, if several could be.
TO_BLAME = (
    SameSubtree,
    Isolate,
    Together,
    Room,
    Unit,
    TraitForbidden,
    NotMemberOf,
    MemberOf,
    TraitRequired,
    InTree,
    RootForbidden,
    RootRequired,
    HasInventory,
)
# The most constraints to blame beside those that a host misses by themselves.
MOST_BLAMED = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A host, and the constraints that it does not meet: none, if it serves.

    ``verdicts`` has the providers that meet each constraint, and the closest other one.
    """

    tree: Tree
    unmet: tuple[Constraint, ...]
    verdicts: Mapping[Constraint, Verdict]

    @property
    def lacking(self) -> list[Verdict]:
        """The verdicts on the constraints that it does not meet."""
        return [self.verdicts[each] for each in self.unmet]


class Nearness:
    """Finds what keeps kinds of hosts out, and how much of it there is."""

    def __init__(self, asked: Survey, deadline: Deadline) -> None:
        self._survey = asked
        self._deadline = deadline
        self._relaxations = asked.relaxations
        self._all = asked.relaxations.all
        self._missed: dict[Kind, Set] = {}
        # No provider serves a group that has nothing to be found.
        self._vain = [
            each.suffix
            for each in asked.relaxations.request.groups
            if not (each.resources or each.required or each.member_of)
        ]

    def missed(self, kind: Kind) -> Set:
        """Return the constraints that a kind does not meet, each by itself."""
        if kind not in self._missed:
            tree = kind.example
            reach = self._survey.reach(tree)
            self._missed[kind] = frozenset(
                each
                for each in self._relaxations.constraints
                if each.suffix in self._vain or meeting_of(each, tree, reach) == ()
            )
        return self._missed[kind]

    def nearest(self, kinds: Iterable[Kind], most: int) -> list[Host]:
        """Return the hosts that are nearest to serving.

        These are the hosts that the fewest constraints keep out, then those that lack
        least in proportion.
        """
        places = {tree: at for at, tree in enumerate(self._survey.snapshot.trees)}
        near: list[tuple[int, float, int, Tree, tuple[Constraint, ...]]] = []
        for kind in sorted(kinds, key=self._least_weight):
            is_enough = len(near) >= most
            if is_enough and (not most or self._least_weight(kind) > near[-1][0]):
                break
            if is_enough and self._deadline.has_come():
                break
            unmet = self.unmet(kind)
            near += [
                (weight(unmet), self._lack(tree, unmet), places[tree], tree, unmet)
                for tree in kind.trees
            ]
            near = sorted(near, key=lambda each: each[:3])[:most]
        return [self._host(tree, unmet) for *_, tree, unmet in near]

    def host(self, tree: Tree, kind: Kind) -> Host:
        """Return a host of a kind, with what it does not meet."""
        return self._host(tree, self.unmet(kind))

    def _host(self, tree: Tree, unmet: tuple[Constraint, ...]) -> Host:
        return Host(tree, unmet, judge(self._survey, tree, unmet))

    def _least_weight(self, kind: Kind) -> int:
        return weight(self._listed(self.missed(kind)))

    def _lack(self, tree: Tree, unmet: Iterable[Constraint]) -> float:
        """Return the largest fraction of an amount that a host does not have."""
        reach = self._survey.reach(tree)
        return max(min(map(each.missing, reach)) for each in unmet)

    def unmet(self, kind: Kind) -> tuple[Constraint, ...]:
        """Return the constraints that a kind does not meet; none if it serves.

        These are the constraints that it does not meet by themselves. If those are not
        the reason, as few others as will do are returned, the likeliest reasons first;
        if these are not found in time or are very many, some that will do.
        """
        if self._serves(kind):
            return ()
        missed = self.missed(kind)
        for added in self._blames(self._listed(missed), self._to_blame(missed)):
            unmet = missed.union(added)
            if self._serves(kind, unmet):
                return self._listed(unmet)
            if self._deadline.has_come():
                break
        return self._some_unmet(kind)

    def _some_unmet(self, kind: Kind) -> tuple[Constraint, ...]:
        """Return constraints without which a kind serves.

        These are the likeliest reasons, and as many as will do; those of them that it
        serves with are left out if there is time.
        """
        missed = self.missed(kind)
        if missed and not self._serves(kind, self._all):
            # A group that only forbids is served by nothing, whatever else is dropped.
            return self._listed(missed)
        to_blame = self._to_blame(missed)
        too_few, enough = -1, len(to_blame)
        while enough - too_few > 1 and not self._deadline.has_long_come():
            middle = (too_few + enough) // 2
            if self._serves(kind, missed.union(to_blame[:middle])):
                enough = middle
            else:
                too_few = middle
        unmet = missed.union(to_blame[:enough])
        for each in to_blame[:enough]:
            if self._deadline.has_come():
                break
            if self._serves(kind, unmet - {each}):
                unmet -= {each}
        return self._listed(unmet)

    def _listed(self, unmet: Set) -> tuple[Constraint, ...]:
        """Return constraints, without those that others of them imply."""
        return self._relaxations.listed(unmet - self._relaxations.implied(unmet))

    def _serves(self, kind: Kind, without: Collection[Constraint] = ()) -> bool:
        """Return whether a kind serves the request without some constraints."""
        return bool(self._survey.serving(self._all.difference(without), [kind]))

    def _to_blame(self, missed: Set) -> list[Constraint]:
        """Return the other possible reasons, the likeliest first."""
        return sorted(
            self._relaxations.listed(self._all - missed),
            key=lambda each: TO_BLAME.index(type(each)),
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
