"""Which hosts serve a request without some of its constraints."""

import dataclasses
import functools
import time
from collections.abc import Callable, Hashable, Iterable, Sequence

from placement.model.request import Request
from placement.model.tree import Provider, Snapshot, Tree
from placement.questions.explanation.alike import Kind, kinds_of
from placement.questions.explanation.constraint import Constraint
from placement.questions.explanation.relaxation import Relaxations, Set
from placement.search import engine

# How long what must not be left out may take once the time of a report is up, in
# seconds.
GRACE = 1


class Deadline:
    """The time limit of a report: what would take longer is left out."""

    def __init__(
        self, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._half = self._end - seconds / 2
        self.is_missed = False
        self._grace_ends: float | None = None

    def has_come(self) -> bool:
        """Return whether the time is up."""
        self.is_missed = self.is_missed or self._clock() > self._end
        return self.is_missed

    def is_half_over(self) -> bool:
        """Return whether so much time is up that more should be left for the rest."""
        return self.has_come() or self._clock() > self._half

    def has_long_come(self) -> bool:
        """Return whether even what must not be left out takes too long.

        Its time begins when this is asked first: what came before may have been late.
        """
        now = self._clock()
        if self._grace_ends is None:
            self._grace_ends = max(now, self._end) + GRACE
        return now > self._grace_ends


@dataclasses.dataclass(frozen=True, slots=True)
class Smaller:
    """An amount, and how many hosts serve if it is asked for."""

    amount: int
    serves: int


class Survey:
    """Asks which hosts serve a request: one of each kind, and each question once.

    ``is_decided`` says that no search was given up; ``smaller`` has the smaller amounts
    that will do, by suffix and class.
    """

    def __init__(self, snapshot: Snapshot, request: Request) -> None:
        self.snapshot = snapshot
        self.relaxations = Relaxations(request, snapshot)
        self.kinds = kinds_of(snapshot, request)
        self.is_decided = True
        self.smaller: dict[tuple[str, str], Smaller | None] = {}
        self._known: dict[tuple[str | None, Set], dict[int, bool]] = {}
        self._hopes: dict[Hashable, Callable[[Tree], tuple[int, ...]]] = {}
        self._sharing_with = functools.cache(snapshot.sharing_with)

    def serving(
        self, kept: Set, among: Iterable[Kind] | None = None, suffix: str | None = None
    ) -> list[Kind]:
        """Return the kinds that serve the request with only some of its constraints.

        :param among: the kinds to ask; None means all
        :param suffix: the only group to ask for; None means all
        """
        if among is not None and not (among := list(among)):
            return []
        relaxations = self.relaxations
        if suffix is None:
            kept = relaxations.essence(kept)
            requests = relaxations.requests(kept)
        else:
            kept = relaxations.essence_of_one(suffix, kept)
            requests = (relaxations.of_one(suffix, kept),)
        return self._ask((suffix, kept), requests, among)

    def with_root(self, kept: Set, among: Iterable[Kind] | None = None) -> list[Kind]:
        """Return the kinds whose root has the traits in some constraints."""
        kept &= self.relaxations.of_root
        return self._ask((None, ~kept), (self.relaxations.of_none(kept),), among)

    def _ask(
        self,
        key: tuple[str | None, Set],
        requests: Iterable[Request],
        among: Iterable[Kind] | None,
    ) -> list[Kind]:
        kinds = self.kinds if among is None else list(among)
        known = self._known.setdefault(key, {})
        asked = [kind for kind in kinds if kind.number not in known]
        if asked:
            known.update(dict.fromkeys((kind.number for kind in asked), False))
            for request in requests:
                asked = self.serving_request(request, asked)
            known.update(dict.fromkeys((kind.number for kind in asked), True))
        return [kind for kind in kinds if known[kind.number]]

    def serving_request(self, request: Request, kinds: list[Kind]) -> list[Kind]:
        """Return the kinds among some that serve a request."""
        examples = [kind.example for kind in kinds]
        answers = engine.serving(self.snapshot, request, examples)
        serving = []
        for kind, (_, serves) in zip(kinds, answers, strict=True):
            if serves:
                serving.append(kind)
            elif serves is None:
                self.is_decided = False
        return serving

    def meeting(
        self, constraint: Constraint, trees: list[Tree]
    ) -> list[Sequence[Provider]]:
        """Return the providers that meet a constraint of a group, for each tree."""
        request = self._bare(constraint)
        found = engine.domains(self.snapshot, request, trees)
        return [domains[0] if domains else () for domains in found]

    def reach(self, tree: Tree) -> Sequence[Provider]:
        """Return the providers of a tree, and those that share with it."""
        sharing = self._sharing_with(tree.aggregates)
        if not sharing:
            return tree.members
        root_uuid = tree.root.uuid
        return [
            *tree.members,
            *(provider for provider in sharing if provider.root_uuid != root_uuid),
        ]

    def hope(
        self,
        key: tuple[tuple[str, str], *tuple[Hashable, ...]],
        finder: Callable[[tuple[str, str]], Callable[[Tree], tuple[int, ...]]],
    ) -> Callable[[Tree], tuple[int, ...]]:
        """Return a function that finds amounts that a tree may serve, and remembers."""
        if key not in self._hopes:
            self._hopes[key] = functools.cache(finder(key[0]))
        return self._hopes[key]

    def _bare(self, constraint: Constraint) -> Request:
        suffix = constraint.suffix or ""
        request = self.relaxations.of_one(suffix, self.relaxations.bare(constraint))
        # No provider serves a group that asks for nothing to be found, but each has
        # what is asked of it, or not.
        groups = [dataclasses.replace(each, relaxed=True) for each in request.groups]
        return dataclasses.replace(request, groups=tuple(groups))


def count(kinds: Iterable[Kind]) -> int:
    """Return how many hosts some kinds have."""
    return sum(len(kind.trees) for kind in kinds)
