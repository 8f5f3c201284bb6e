"""The numbers of an explanation: what keeps hosts out, and what would let them in."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping

from placement.model.tree import Tree
from placement.questions.explanation import survey
from placement.questions.explanation.alike import Kind
from placement.questions.explanation.constraint import (
    OF_AMOUNT,
    OF_ROOT,
    Constraint,
    Set,
)
from placement.questions.explanation.smaller import largest_smaller
from placement.questions.explanation.survey import Deadline, Smaller, Survey

# The most constraints to drop at once in search of what would help.
MOST_DROPPED = 4
# Where several kinds of constraints could be to blame, the earliest here is.
TO_BLAME = (
    "same_subtree",
    "isolate",
    "together",
    "room",
    "unit",
    "forbidden",
    "not_member_of",
    "member_of",
    "required",
    "in_tree",
    "root_forbidden",
    "root_required",
    "inventory",
)
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
class Change:
    """Constraints to drop so that more hosts serve, and how many serve then."""

    dropped: tuple[Constraint, ...]
    serves: int


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A host, and the constraints that it does not meet: none, if it serves."""

    tree: Tree
    unmet: tuple[Constraint, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """An explanation. It is not ``complete`` if the time ran out.

    ``changes`` and ``near`` are None if they were not asked for.
    """

    serves: int
    hosts: int
    figures: tuple[Figures, ...]
    changes: tuple[Change, ...] | None
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


class _Reporter:
    def __init__(self, asked: Survey, wanted: Wanted, deadline: Deadline) -> None:
        self._survey = asked
        self._wanted = wanted
        self._deadline = deadline
        self._relaxations = asked.relaxations
        self._all = asked.relaxations.all
        self._serving = asked.serving(self._all)
        self._serves = survey.count(self._serving)
        self._misses: list[Set] | None = None
        self._places: dict[str, int] | None = None
        self._kinds: dict[str, Kind] = {}

    def report(self) -> Report:
        """Return everything, the most important first."""
        figures = tuple(self._complete(each) for each in list(self._funnel()))
        changes = near = None
        asked = tuple(
            Host(tree, self._unmet_of(tree))
            for tree in dict.fromkeys(
                self._survey.snapshot.tree_by_uuid[uuid] for uuid in self._wanted.hosts
            )
        )
        if not self._serves or self._wanted.near is not None:
            changes, near = self._help()
        return Report(
            self._serves,
            len(self._survey.snapshot.trees),
            figures,
            changes,
            near,
            asked,
            not self._deadline.is_missed and self._survey.is_decided,
        )

    def _funnel(self) -> Iterator[Figures]:
        passing = self._survey.kinds
        kept = 0
        for constraint in self._relaxations.constraints:
            kept |= self._relaxations.bit(constraint)
            before = survey.count(passing)
            if constraint.kind in OF_ROOT:
                passing = self._survey.with_root(kept, passing)
            else:
                passing = self._survey.serving(kept, passing, constraint.suffix)
            yield Figures(constraint, before, survey.count(passing))

    def _complete(self, figures: Figures) -> Figures:
        """Add the numbers that are not part of the funnel."""
        constraint = figures.constraint
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

    def _help(self) -> tuple[tuple[Change, ...], tuple[Host, ...]]:
        """Return what to leave out, and which hosts are nearest."""
        most_near = self._wanted.near
        if most_near is None:
            most_near = NEAR_BY_DEFAULT
        changes: list[Change] = []
        sizes: dict[Kind, int] = {}
        waiting = self._refusing()
        for size in range(1, MOST_DROPPED + 1):
            helping = self._helping(size, waiting)
            for kind in set(itertools.chain.from_iterable(helping.values())):
                sizes[kind] = size
            waiting = [kind for kind in waiting if kind not in sizes]
            if not changes:
                changes = self._changes(helping)
            if changes and survey.count(sizes) >= most_near:
                break
            if self._deadline.has_come():
                break
        sizes |= dict.fromkeys(waiting, MOST_DROPPED + 1)
        near = self._nearest(sizes, most_near)
        return tuple(changes[: self._wanted.changes]), tuple(near)

    def _refusing(self) -> list[Kind]:
        serving = set(self._serving)
        return [kind for kind in self._survey.kinds if kind not in serving]

    def _helping(self, size: int, kinds: Iterable[Kind]) -> dict[Set, list[Kind]]:
        """Return the sets of a size without which kinds serve, each with its kinds."""
        candidates: dict[Set, list[Kind]] = {}
        for kind in kinds:
            for dropped in self._candidates(kind, size):
                candidates.setdefault(dropped, []).append(kind)
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
        for base in self._bases(kind):
            more = size - base.bit_count()
            if more < 0:
                continue
            others = [bit for bit in bits if not bit & base]
            for added in itertools.combinations(others, more):
                found.add(base | sum(added))
                if self._deadline.has_come():
                    return found
        return found

    def _bases(self, kind: Kind) -> list[Set]:
        """Return the smallest sets that take away all that a kind does not meet."""
        amounts: dict[Set, Set] = {}
        base = 0
        for each in self._relaxations.listed(self._missed(kind)):
            bit = self._relaxations.bit(each)
            if each.kind in OF_AMOUNT:
                inventory = self._relaxations.about("inventory", each)
                amounts[inventory] = amounts.get(inventory, 0) | bit
            else:
                base |= bit
        bases = [base]
        for inventory, missed in amounts.items():
            if not inventory & base:
                bases = [each | way for each in bases for way in (missed, inventory)]
        return bases

    def _missed(self, kind: Kind) -> Set:
        """Return the constraints that a kind does not meet, each by itself."""
        if self._misses is None:
            self._misses = self._find_misses()
        return self._misses[kind.number]

    def _find_misses(self) -> list[Set]:
        misses = [0] * len(self._survey.kinds)
        for each in self._relaxations.constraints:
            if each.kind in OF_ROOT:
                meeting = self._survey.with_root(self._relaxations.bit(each))
            elif each.suffix is not None:
                bare = self._relaxations.bare(each)
                meeting = self._survey.serving(bare, suffix=each.suffix)
            else:
                continue
            bit = self._relaxations.bit(each)
            for kind in set(self._survey.kinds).difference(meeting):
                misses[kind.number] |= bit
        return misses

    def _changes(self, helping: Iterable[Set]) -> list[Change]:
        """Return the sets that let more hosts serve, the most effective first."""
        counted = []
        for dropped in helping:
            serves = survey.count(self._survey.serving(self._all & ~dropped))
            if serves > self._serves:
                names = self._relaxations.listed(dropped)
                counted.append(Change(names, serves))
        at = {each: place for place, each in enumerate(self._relaxations.constraints)}
        counted.sort(
            key=lambda change: (
                -change.serves,
                sum(each.kind in DRASTIC for each in change.dropped),
                [at[each] for each in change.dropped],
            )
        )
        return counted

    def _nearest(self, sizes: Mapping[Kind, int], most: int) -> list[Host]:
        """Return the hosts that are nearest to serving.

        These are the hosts with the smallest set in their way, then with the fewest
        unmet constraints, then with the smallest lack of room.
        """
        near: list[Host] = []
        for size in sorted(set(sizes.values())):
            if len(near) >= most:
                break
            kinds = [kind for kind in sizes if sizes[kind] == size]
            near += self._in_order(kinds)
        return near[:most]

    def _in_order(self, kinds: Iterable[Kind]) -> list[Host]:
        hosts = [
            (self._lack(tree, unmet), self._place(tree), Host(tree, unmet))
            for kind in kinds
            for unmet in [self._unmet(kind)]
            for tree in kind.trees
        ]
        hosts.sort(key=lambda each: (len(each[2].unmet), *each[:2]))
        return [host for _, _, host in hosts]

    def _lack(self, tree: Tree, unmet: Iterable[Constraint]) -> float:
        """Return the largest fraction of an amount that there is no room for."""
        lacks = [0.0]
        for each in unmet:
            if each.kind == "room":
                amount, name = int(str(each.value)), str(each.resource_class)
                rooms = [
                    provider.stocks[name].free
                    for provider in self._survey.reach(tree)
                    if name in provider.stocks
                ]
                lacks.append(1 - max(0, min(amount, max(rooms))) / amount)
            elif each.kind == "inventory":
                lacks.append(1.0)
        return max(lacks)

    def _place(self, tree: Tree) -> int:
        if self._places is None:
            trees = self._survey.snapshot.trees
            self._places = {tree.root.uuid: at for at, tree in enumerate(trees)}
        return self._places[tree.root.uuid]

    def _unmet_of(self, tree: Tree) -> tuple[Constraint, ...]:
        """Return the constraints that one host does not meet."""
        if not self._kinds:
            self._kinds = {
                each.root.uuid: kind
                for kind in self._survey.kinds
                for each in kind.trees
            }
        return self._unmet(self._kinds[tree.root.uuid])

    def _unmet(self, kind: Kind) -> tuple[Constraint, ...]:
        """Return the constraints that a kind does not meet; none if it serves.

        These are the constraints that it does not meet by themselves. If those are not
        the reason, as few others as will do are returned, the likeliest reasons first.
        """
        if self._survey.serving(self._all, [kind]):
            return ()
        missed = self._missed(kind)
        to_blame = sorted(
            self._relaxations.listed(self._all & ~missed),
            key=lambda each: TO_BLAME.index(each.kind),
        )
        bits = [self._relaxations.bit(each) for each in to_blame]
        for more in range(MOST_DROPPED + 1):
            for added in itertools.combinations(bits, more):
                unmet = missed | sum(added)
                if self._survey.serving(self._all & ~unmet, [kind]):
                    return self._relaxations.listed(self._relaxations.telling(unmet))
                if self._deadline.has_come():
                    break
        return self._relaxations.listed(self._relaxations.telling(missed))
