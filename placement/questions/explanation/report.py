"""The numbers of an explanation: what keeps hosts out, and what would let them in."""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from placement.questions.explanation import survey
from placement.questions.explanation.alike import Kind
from placement.questions.explanation.constraint import (
    OF_AMOUNT,
    OF_ROOT,
    Constraint,
)
from placement.questions.explanation.nearness import Host, Nearness
from placement.questions.explanation.reason import Reason, Step, reasons_of
from placement.questions.explanation.relaxation import Set
from placement.questions.explanation.smaller import (
    Offer,
    Target,
    largest_smaller,
    offer_for,
    target_of,
)
from placement.questions.explanation.survey import Deadline, Smaller, Survey

# The most constraints that a change drops.
MOST_DROPPED = 2
# The most sets of constraints to look at, of a size: they take memory until the end.
MOST_CANDIDATES = 200_000
# With more steps than this, the funnel does not ask all hosts at each of them.
FEW_STEPS = 16
# The kinds to give up last.
DRASTIC = ("inventory", "together")


@dataclasses.dataclass(frozen=True, slots=True)
class Figures:
    """The numbers of hosts for a constraint. None means: not determined in time.

    ``before`` and ``after`` are left before and after this step of the funnel;
    ``alone`` meet this constraint by itself; ``gain`` are kept out by nothing else.
    ``smaller`` is the largest amount that would do.
    """

    constraint: Constraint
    before: int
    after: int
    alone: int | None = None
    gain: int | None = None
    smaller: Smaller | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class QueryChange:
    """Constraints to drop so that more hosts serve, and how many serve then.

    ``offer`` has the amounts to lower instead of dropping them, if that is enough.
    """

    dropped: tuple[Constraint, ...]
    serves: int
    offer: Offer | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """An explanation. It is not ``complete`` if the time ran out.

    ``changes`` and ``near`` are None if they were not asked for.
    """

    serves: int
    hosts: int
    figures: tuple[Figures, ...]
    reasons: tuple[Reason, ...]
    changes: tuple[QueryChange, ...] | None
    near: tuple[Host, ...] | None
    asked: tuple[Host, ...]
    complete: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How much to report. ``near`` is None for: only if no host serves."""

    changes: int = 10
    near: int | None = None
    seconds: float = 2
    hosts: tuple[str, ...] = ()


NEAR_BY_DEFAULT = 5


def report(asked: Survey, wanted: Wanted, deadline: Deadline) -> Report:
    """Return the report on what keeps hosts from serving a request.

    :param asked: the request, and the snapshot that it is about
    """
    return _Reporter(asked, wanted, deadline).report()


class _Run(NamedTuple):
    """Constraints that follow each other and only refuse more, on the same group.

    A class that is added to the others gives them more to say: it is ``alone``.
    """

    suffix: str | None
    is_of_root: bool
    alone: Constraint | None


def _run_of(constraint: Constraint) -> _Run:
    is_of_root = constraint.kind in OF_ROOT
    is_alone = constraint.suffix is None or constraint.kind == "inventory"
    alone = constraint if is_alone and not is_of_root else None
    return _Run(constraint.suffix, is_of_root, alone)


class _Reporter:
    def __init__(self, asked: Survey, wanted: Wanted, deadline: Deadline) -> None:
        self._survey = asked
        self._wanted = wanted
        self._deadline = deadline
        self._relaxations = asked.relaxations
        self._all = asked.relaxations.all
        self._serving = asked.serving(self._all)
        self._serves = survey.count(self._serving)
        self._nearness = Nearness(asked, deadline)

    def report(self) -> Report:
        """Return everything, the most important first."""
        steps = list(self._funnel())
        figures = tuple(self._complete(*step) for step in steps)
        reasons = reasons_of(self._survey, steps, self._deadline)
        changes = near = None
        asked = tuple(
            Host(tree, self._nearness.unmet_of(tree))
            for tree in dict.fromkeys(
                self._survey.snapshot.tree_by_uuid[uuid] for uuid in self._wanted.hosts
            )
        )
        if not self._serves or self._wanted.near is not None:
            changes, near = self._help(steps)
        return Report(
            self._serves,
            len(self._survey.snapshot.trees),
            figures,
            reasons,
            changes,
            near,
            asked,
            not self._deadline.is_missed and self._survey.is_decided,
        )

    def _funnel(self) -> Iterator[Step]:
        passing: Sequence[Kind] = self._survey.kinds
        kept = 0
        for run, some in itertools.groupby(self._relaxations.constraints, _run_of):
            constraints = list(some)
            sets = []
            for constraint in constraints:
                kept |= self._relaxations.bit(constraint)
                sets.append(kept)
            narrowed = self._narrow(passing, sets, run)
            for constraint, after in zip(constraints, narrowed, strict=True):
                yield constraint, passing, after
                passing = after

    def _narrow(
        self, passing: Sequence[Kind], sets: Sequence[Set], run: _Run
    ) -> Iterator[Sequence[Kind]]:
        """Yield the kinds that are left after each of some sets of constraints.

        Each set has all of those before it, so what passes the last passes all: where
        others drop out of many sets is found by halving.
        """
        if len(sets) <= FEW_STEPS:
            for each in sets:
                passing = self._passing(each, passing, run)
                yield passing
            return
        out_at: dict[int, set[Kind]] = {}
        last = self._passing(sets[-1], passing, run)
        waiting = [(0, len(sets) - 1, set(passing).difference(last))]
        while waiting:
            first, end, out = waiting.pop()
            if not out or first == end:
                out_at[first] = out
                continue
            middle = (first + end) // 2
            left = set(self._passing(sets[middle], out, run))
            waiting += [(first, middle, out - left), (middle + 1, end, left)]
        for at in range(len(sets)):
            gone = out_at.get(at)
            if gone:
                passing = [kind for kind in passing if kind not in gone]
            yield passing

    def _passing(self, kept: Set, among: Iterable[Kind], run: _Run) -> list[Kind]:
        if run.is_of_root:
            return self._survey.with_root(kept, among)
        return self._survey.serving(kept, among, run.suffix)

    def _complete(
        self, constraint: Constraint, before: Sequence[Kind], after: Sequence[Kind]
    ) -> Figures:
        """Return the numbers of the funnel, and those that are not part of it."""
        figures = Figures(constraint, survey.count(before), survey.count(after))
        if self._deadline.has_come():
            return figures
        without = self._survey.serving(self._all & ~self._relaxations.bit(constraint))
        return dataclasses.replace(
            figures,
            alone=survey.count(self._alone(constraint)),
            gain=survey.count(without) - self._serves,
            smaller=largest_smaller(self._survey, constraint, self._deadline)
            if constraint.kind in OF_AMOUNT
            else None,
        )

    def _alone(self, constraint: Constraint) -> list[Kind]:
        bit = self._relaxations.bit(constraint)
        if constraint.kind in OF_ROOT:
            return self._survey.with_root(bit)
        if constraint.suffix is not None:
            inventories = self._relaxations.inventories_of(constraint.suffix)
            return self._survey.serving(bit | inventories, suffix=constraint.suffix)
        together = self._relaxations.of_kinds("together")
        return self._survey.serving(bit | together | self._relaxations.inventories)

    def _help(
        self, steps: Iterable[Step]
    ) -> tuple[tuple[QueryChange, ...], tuple[Host, ...]]:
        """Return what to leave out, and which hosts are nearest."""
        most_near = self._wanted.near
        if most_near is None:
            most_near = NEAR_BY_DEFAULT
        refusing = self._nearness.learn(_furthest_first(steps))
        changes: list[QueryChange] = []
        for size in range(1, MOST_DROPPED + 1):
            changes = self._changes(self._helping(size, refusing))
            if changes or self._deadline.has_come():
                break
        near = self._nearness.nearest(refusing, most_near)
        return self._with_offers(changes[: self._wanted.changes]), tuple(near)

    def _with_offers(self, changes: Sequence[QueryChange]) -> tuple[QueryChange, ...]:
        """Add to changes what to ask for instead of the amounts that they drop."""
        named = {
            target_of(each)
            for change in changes
            for each in change.dropped
            if each.kind in OF_AMOUNT
        }
        return tuple(self._with_offer(change, named) for change in changes)

    def _with_offer(
        self, change: QueryChange, named: Collection[Target]
    ) -> QueryChange:
        about = [
            each
            for each in change.dropped
            if each.kind in OF_AMOUNT
            or (each.kind == "inventory" and target_of(each) not in named)
        ]
        offer = self._offer(change, about)
        if not offer:
            # A class of which no amount will do is left out, and the others changed.
            some = [
                each
                for each in about
                if each.kind in OF_AMOUNT or self._offer(change, [each])
            ]
            offer = self._offer(change, some)
        return dataclasses.replace(change, offer=offer)

    def _offer(self, change: QueryChange, about: Sequence[Constraint]) -> Offer | None:
        if not about or self._deadline.has_come():
            return None
        return offer_for(self._survey, change.dropped, about, self._deadline)

    def _helping(self, size: int, kinds: Iterable[Kind]) -> dict[Set, list[Kind]]:
        """Return the sets of a size without which kinds serve, each with its kinds."""
        candidates: dict[Set, list[Kind]] = {}
        for kind in kinds:
            for dropped in self._candidates(kind, size):
                candidates.setdefault(dropped, []).append(kind)
            if len(candidates) > MOST_CANDIDATES:
                self._survey.is_decided = False
                break
        helping = {}
        for dropped, hoping in candidates.items():
            if self._deadline.has_come():
                break
            serving = self._survey.serving(self._all & ~dropped, hoping)
            if serving:
                helping[dropped] = serving
        return helping

    def _candidates(self, kind: Kind, size: int) -> set[Set]:
        """Return the sets of a size without which a kind may serve.

        Each constraint that the kind does not meet by itself has to be in them, or else
        the inventory that the constraint is about.
        """
        bits = [self._relaxations.bit(each) for each in self._relaxations.constraints]
        found = set()
        for base in self._bases(kind, size):
            more = size - base.bit_count()
            others = [bit for bit in bits if not bit & base]
            for added in itertools.combinations(others, more):
                found.add(base | sum(added))
                if self._deadline.has_come():
                    return found
                if len(found) > MOST_CANDIDATES:
                    self._survey.is_decided = False
                    return found
        return found

    def _bases(self, kind: Kind, size: int) -> list[Set]:
        """Return the smallest sets that take away all that a kind does not meet.

        Those of more than a size are left out: each amount doubles their number.
        """
        amounts: dict[Set, Set] = {}
        base = 0
        for each in self._relaxations.listed(self._nearness.missed(kind)):
            bit = self._relaxations.bit(each)
            if each.kind in OF_AMOUNT:
                inventory = self._relaxations.about("inventory", each)
                amounts[inventory] = amounts.get(inventory, 0) | bit
            else:
                base |= bit
        bases = [base] if base.bit_count() <= size else []
        for inventory, missed in amounts.items():
            if not inventory & base:
                ways = (each | way for each in bases for way in (missed, inventory))
                bases = [each for each in ways if each.bit_count() <= size]
        return bases

    def _changes(self, helping: Iterable[Set]) -> list[QueryChange]:
        """Return the sets that let more hosts serve, the most effective first."""
        counted = []
        for dropped in helping:
            serves = survey.count(self._survey.serving(self._all & ~dropped))
            if serves > self._serves:
                names = self._relaxations.listed(dropped)
                counted.append(QueryChange(names, serves))
        at = {each: place for place, each in enumerate(self._relaxations.constraints)}
        counted.sort(
            key=lambda change: (
                -change.serves,
                sum(each.kind in DRASTIC for each in change.dropped),
                [at[each] for each in change.dropped],
            )
        )
        return counted


def _furthest_first(steps: Iterable[Step]) -> list[Kind]:
    """Return the kinds that drop out of the funnel, those that came furthest first."""
    dropped = []
    for _, before, after in steps:
        if len(before) > len(after):
            left = set(after)
            dropped.append([kind for kind in before if kind not in left])
    return [kind for some in reversed(dropped) for kind in some]
