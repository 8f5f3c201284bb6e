"""The numbers of an explanation: what keeps hosts out, and what would let them in."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from placement.model.allocation import Holder
from placement.model.constraint import Constraint, HasInventory, Together
from placement.model.request import Request
from placement.model.tree import Snapshot
from placement.questions.explanation import survey
from placement.questions.explanation.alike import Kind
from placement.questions.explanation.nearness import Host, Nearness
from placement.questions.explanation.reason import Reason, Step, reasons_of
from placement.questions.explanation.relaxation import Set, Target, target_of
from placement.questions.explanation.smaller import Offer, Smaller, largest, offer_for
from placement.questions.explanation.survey import Deadline, Survey

# The consumers that hold most of each inventory, by UUID of the provider and class.
Holders: TypeAlias = Mapping[tuple[str, str], Sequence[Holder]]

# The most constraints that a change drops.
MOST_DROPPED = 2
# The kinds to give up last.
DRASTIC = (HasInventory, Together)


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

    ``changes`` and ``near`` are None if they were not requested.
    """

    serves: int
    hosts: int
    figures: tuple[Figures, ...]
    reasons: tuple[Reason, ...]
    changes: tuple[QueryChange, ...] | None
    near: tuple[Host, ...] | None
    asked: tuple[Host, ...]
    complete: bool

    def with_holders(
        self, list_holders: Callable[[Mapping[int, str]], Holders]
    ) -> "Report":
        """Return this with the consumers that hold most of what has too little room.

        :param list_holders: reads those of some providers, whose UUIDs it gets by id
        """
        hosts = (*(self.near or ()), *self.asked)
        verdicts = [each for host in hosts for each in host.verdicts.values()]
        holders = list_holders(
            {
                each.closest.id: each.closest.uuid
                for each in verdicts
                if each.closest and each.room
            }
        )
        return dataclasses.replace(
            self,
            near=self.near
            and tuple(_with_holders(each, holders) for each in self.near),
            asked=tuple(_with_holders(each, holders) for each in self.asked),
        )


def _with_holders(host: Host, holders: Holders) -> Host:
    verdicts = dict(host.verdicts)
    for constraint, each in verdicts.items():
        if each.closest and each.room:
            key = each.closest.uuid, str(constraint.resource_class)
            verdicts[constraint] = dataclasses.replace(
                each, holders=holders.get(key, ())
            )
    return dataclasses.replace(host, verdicts=verdicts)


@dataclasses.dataclass(frozen=True, slots=True)
class ExplanationQuery:
    """A request to explain, and how much to report.

    ``near`` is None for: only if no host serves. ``hosts`` are UUIDs or names, as they
    were sent.
    """

    request: Request
    changes: int = 10
    near: int | None = None
    seconds: float = 2
    hosts: tuple[str, ...] = ()
    holders: bool = False


NEAR_BY_DEFAULT = 5


def report(
    snapshot: Snapshot, question: ExplanationQuery, deadline: Deadline
) -> Report:
    """Return the report on what keeps hosts from serving a request.

    :param question: its hosts are UUIDs
    """
    return _Reporter(snapshot, question, deadline).report()


class _Reporter:
    def __init__(
        self, snapshot: Snapshot, question: ExplanationQuery, deadline: Deadline
    ) -> None:
        self._survey = Survey(snapshot, question.request)
        self._question = question
        self._deadline = deadline
        self._relaxations = self._survey.relaxations
        self._constraints = self._relaxations.constraints
        self._all = self._relaxations.all
        self._serves = survey.count(self._survey.serving(self._all))
        self._nearness = Nearness(self._survey, deadline)
        self._smaller: dict[Target, Smaller | None] = {}

    def report(self) -> Report:
        """Return everything, the most important first."""
        steps = list(self._funnel())
        figures = tuple(self._complete(*step) for step in steps)
        reasons = reasons_of(self._survey, steps, self._deadline)
        changes = near = None
        trees = self._survey.snapshot.tree_by_uuid
        kinds = {tree: kind for kind in self._survey.kinds for tree in kind.trees}
        hosts = tuple(
            self._nearness.host(tree, kinds[tree])
            for tree in dict.fromkeys(trees[uuid] for uuid in self._question.hosts)
        )
        if not self._serves or self._question.near is not None:
            changes, near = self._changes(), self._near()
        return Report(
            self._serves,
            len(kinds),
            figures,
            reasons,
            changes,
            near,
            hosts,
            not self._deadline.is_missed and self._survey.is_decided,
        )

    def _funnel(self) -> Iterator[Step]:
        passing: Sequence[Kind] = self._survey.kinds
        kept: Set = frozenset()
        for _, run in itertools.groupby(
            self._constraints, key=lambda each: (each.of_root, each.suffix)
        ):
            steps = []
            for constraint in run:
                kept |= {constraint}
                steps.append((constraint, kept))
            out_at = dict(self._drop_outs(passing, steps))
            for constraint, _ in steps:
                after = [kind for kind in passing if out_at.get(kind) != constraint]
                yield constraint, passing, after
                passing = after

    def _drop_outs(
        self, kinds: Sequence[Kind], steps: Sequence[tuple[Constraint, Set]]
    ) -> Iterator[tuple[Kind, Constraint]]:
        """Yield the kinds that drop out of the funnel, each with the constraint.

        Each step keeps all constraints of those before it, so what passes the last one
        passes all: where others drop out is found by halving.
        """
        constraint, kept = steps[-1]
        serving = set(self._survey.serving(kept, kinds, constraint))
        out = [kind for kind in kinds if kind not in serving]
        if not out or len(steps) == 1:
            yield from ((kind, constraint) for kind in out)
            return
        middle = len(steps) // 2
        early = dict(self._drop_outs(out, steps[:middle]))
        yield from early.items()
        late = [kind for kind in out if kind not in early]
        yield from self._drop_outs(late, steps[middle:])

    def _complete(
        self, constraint: Constraint, before: Sequence[Kind], after: Sequence[Kind]
    ) -> Figures:
        """Return the numbers of the funnel, and those that are not part of it."""
        figures = Figures(constraint, survey.count(before), survey.count(after))
        if self._deadline.has_come():
            return figures
        only = self._relaxations.basis | {constraint}
        alone = self._survey.serving(only, about=constraint)
        without = self._survey.serving(self._all - {constraint})
        return dataclasses.replace(
            figures,
            alone=survey.count(alone),
            gain=survey.count(without) - self._serves,
            smaller=self._largest(constraint) if constraint.of_amount else None,
        )

    def _largest(self, constraint: Constraint) -> Smaller | None:
        target = target_of(constraint)
        if target not in self._smaller:
            self._smaller[target] = largest(self._survey, target, self._deadline)
        return self._smaller[target]

    def _near(self) -> tuple[Host, ...]:
        """Return the hosts that are nearest to serving."""
        most = NEAR_BY_DEFAULT if self._question.near is None else self._question.near
        return tuple(self._nearness.nearest(self._refusing(), most))

    def _refusing(self) -> list[Kind]:
        serving = set(self._survey.serving(self._all))
        return [kind for kind in self._survey.kinds if kind not in serving]

    def _changes(self) -> tuple[QueryChange, ...]:
        """Return the smallest sets that let more hosts serve, the best first."""
        changes: list[QueryChange] = []
        for size in range(1, MOST_DROPPED + 1):
            changes = list(self._changes_of(size))
            if changes or self._deadline.has_come():
                break
        at = {each: place for place, each in enumerate(self._constraints)}
        changes.sort(
            key=lambda change: (
                -change.serves,
                sum(isinstance(each, DRASTIC) for each in change.dropped),
                [at[each] for each in change.dropped],
            )
        )
        changes = changes[: self._question.changes]
        named = {
            target_of(each)
            for change in changes
            for each in change.dropped
            if each.of_amount
        }
        return tuple(
            dataclasses.replace(each, offer=self._offer(each, named))
            for each in changes
        )

    def _changes_of(self, size: int) -> Iterator[QueryChange]:
        """Yield the sets of a size without which more hosts serve.

        A set may help a kind if it has all that the kind misses by itself, or the
        inventories that this is about.
        """
        refusing = [(kind, self._nearness.missed(kind)) for kind in self._refusing()]
        for dropped in itertools.combinations(self._constraints, size):
            if self._deadline.has_come():
                return
            gone = self._relaxations.implied(dropped).union(dropped)
            hoping = [kind for kind, missed in refusing if missed <= gone]
            without = self._all.difference(dropped)
            if hoping and self._survey.serving(without, hoping):
                serves = survey.count(self._survey.serving(without))
                if serves > self._serves:
                    yield QueryChange(dropped, serves)

    def _offer(self, change: QueryChange, named: set[Target]) -> Offer | None:
        """Return amounts to request instead of those that a change drops, if any.

        A class of which no amount will do is left out, and the others changed.
        """
        about = [
            each
            for each in change.dropped
            if each.of_amount
            or (isinstance(each, HasInventory) and target_of(each) not in named)
        ]
        offer = self._offer_of(change, about)
        if offer:
            return offer
        some = [
            each for each in about if each.of_amount or self._offer_of(change, [each])
        ]
        return self._offer_of(change, some)

    def _offer_of(
        self, change: QueryChange, about: Sequence[Constraint]
    ) -> Offer | None:
        if not about or self._deadline.has_come():
            return None
        return offer_for(self._survey, change.dropped, about, self._deadline)
