"""Which hosts serve a request without some of its constraints."""

import functools
import time
from collections.abc import Callable, Iterable, Sequence

from placement.model.constraint import Constraint
from placement.model.request import Request
from placement.model.tree import Provider, Snapshot, Tree
from placement.questions.explanation.alike import Kind, kinds_of
from placement.questions.explanation.relaxation import Relaxations, Set
from placement.search import engine

# How long the indispensable parts of a report may take once its time is up, in seconds.
GRACE = 1


class Deadline:
    """The time limit of a report: parts that would take longer are left out."""

    def __init__(
        self, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self.is_missed = False
        self._grace_ends: float | None = None

    def has_come(self) -> bool:
        """Return whether the time is up."""
        self.is_missed = self.is_missed or self._clock() > self._end
        return self.is_missed

    def has_long_come(self) -> bool:
        """Return whether even the indispensable parts take too long.

        Their time begins with the first call: the earlier parts may have been late.
        """
        now = self._clock()
        if self._grace_ends is None:
            self._grace_ends = max(now, self._end) + GRACE
        return now > self._grace_ends


class Survey:
    """Determines which hosts serve a request, by one of each kind, once per question.

    ``is_decided`` says that no search was given up.
    """

    def __init__(self, snapshot: Snapshot, request: Request) -> None:
        self.snapshot = snapshot
        self.relaxations = Relaxations(request, snapshot)
        self.kinds = kinds_of(snapshot, request)
        self.is_decided = True
        self._known: dict[tuple[object, Set], dict[Kind, bool]] = {}
        self._sharing_with = functools.cache(snapshot.sharing_with)

    def serving(
        self,
        kept: Set,
        among: Iterable[Kind] | None = None,
        about: Constraint | None = None,
    ) -> list[Kind]:
        """Return the kinds that serve the request with only some of its constraints.

        :param among: the kinds to examine; None means all
        :param about: only the subject of this constraint is requested: the root, or a
            group
        """
        kinds = self.kinds if among is None else list(among)
        scope = about and (about.of_root or about.suffix)
        serves = self._known.setdefault((scope, kept), {})
        left = [kind for kind in kinds if kind not in serves]
        if left:
            serves.update(dict.fromkeys(left, False))
            for request in self.relaxations.requests(kept, about):
                left = self.serving_request(request, left)
            serves.update(dict.fromkeys(left, True))
        return [kind for kind in kinds if serves[kind]]

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

    def reach(self, tree: Tree) -> Sequence[Provider]:
        """Return the providers of a tree, and those that share with it."""
        root_uuid = tree.root.uuid
        return [
            *tree.members,
            *(
                provider
                for provider in self._sharing_with(tree.aggregates)
                if provider.root_uuid != root_uuid
            ),
        ]


def count(kinds: Iterable[Kind]) -> int:
    """Return how many hosts some kinds have."""
    return sum(len(kind.trees) for kind in kinds)
