"""How many times in a row a request could be claimed."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from placement.model.request import Request
from placement.model.tree import Provider, Snapshot, Tree
from placement.questions.explanation.alike import kinds_of
from placement.questions.explanation.survey import Deadline
from placement.search.engine import Candidate, Firsts
from placement.search.search import Budget, Limits


@dataclasses.dataclass(frozen=True, slots=True)
class Count:
    """How many times one host can be claimed, and whether that is known to be exact."""

    tree: Tree
    count: int
    exact: bool


class Effort:
    """How much counting may take: seconds, and picks of the search for all hosts.

    ``is_cut`` says that this was not enough.
    """

    def __init__(
        self,
        seconds: float = math.inf,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._deadline = Deadline(seconds, clock)
        self.budget = Budget(limits)
        self.is_cut = False

    def is_spent(self) -> bool:
        """Return whether the effort is used up although there is work left."""
        spent = self._deadline.has_come() or self.budget.is_used_up
        self.is_cut |= spent
        return spent


def count_all(
    snapshot: Snapshot, request: Request, most: int, effort: Effort
) -> list[Count]:
    """Return how many times each host can be claimed, in the order of the snapshot.

    Hosts are missing if the effort is cut; the counts of the others are lower bounds.

    :param most: where counting stops for each host
    """
    counter = _Counter(snapshot, request, most, effort)
    counted: dict[Tree, Count] = {}
    dependent: set[Tree] = set()
    for kind in kinds_of(snapshot, request, exactly=True):
        if effort.is_spent():
            break
        if counter.is_dependent(kind.example):
            dependent.update(kind.trees)
            continue
        count = counter.count(kind.example)
        for tree in kind.trees:
            counted[tree] = dataclasses.replace(count, tree=tree)
        counter.forget()
    # What these take from a provider that shares is not left for the others.
    for tree in snapshot.trees:
        if tree in dependent and not effort.is_spent():
            counted[tree] = counter.count(tree)
    return [counted[tree] for tree in snapshot.trees if tree in counted]


class _Counter:
    """Claims host by host: what one host takes is not left for the next."""

    def __init__(
        self, snapshot: Snapshot, request: Request, most: int, effort: Effort
    ) -> None:
        self._effort = effort
        self._snapshot = snapshot
        self._request = request
        self._most = most
        self._firsts = Firsts(snapshot, request, effort.budget)
        self._taken: dict[str, Provider] = {}

    def is_dependent(self, tree: Tree) -> bool:
        """Return whether a host may take from a provider that others take from."""
        return _share(self._firsts.domains(tree))

    def forget(self) -> None:
        """Forget all claims."""
        self._taken.clear()

    def count(self, tree: Tree) -> Count:
        """Return how many times one host can be claimed."""
        domains = self._firsts.domains(tree)
        if _share(domains):
            return self._count_by_claiming(tree)
        if len(domains) == 1:
            # Each claim takes from one provider, and all of them are independent.
            [group] = self._request.groups
            times = sum(_times(provider, group.resources) for provider in domains[0])
            return self._certain(tree, times)
        candidate, decided = self._search(self._firsts, tree)
        if candidate is None:
            return Count(tree, 0, decided)
        if all(len(domain) == 1 for domain in domains):
            # There is no other candidate.
            return self._certain(tree, _times_of(candidate.amounts()))
        return self._count_by_claiming(tree)

    def _certain(self, tree: Tree, times: int) -> Count:
        return Count(tree, min(times, self._most), times <= self._most)

    def _count_by_claiming(self, tree: Tree) -> Count:
        """Claim the first candidate until there is none."""
        count, decided = 0, True
        while count < self._most and not self._effort.is_spent():
            candidate, decided = self._first(tree)
            if candidate is None:
                break
            amounts = candidate.amounts()
            times = min(_times_of(amounts), self._most - count)
            self._take(amounts, times)
            count += times
        return Count(tree, count, decided and count == 0)

    def _first(self, tree: Tree) -> tuple[Candidate | None, bool]:
        left = Tree(tuple(self._left(tree.members)))
        sharing = tuple(self._left(self._snapshot.sharing))
        now = dataclasses.replace(self._snapshot, trees=(left,), sharing=sharing)
        return self._search(Firsts(now, self._request, self._effort.budget), left)

    def _search(self, firsts: Firsts, tree: Tree) -> tuple[Candidate | None, bool]:
        candidate, decided = firsts.at(tree)
        self._effort.is_cut |= not decided
        return candidate, decided

    def _left(self, providers: Sequence[Provider]) -> Iterable[Provider]:
        return (self._taken.get(provider.uuid, provider) for provider in providers)

    def _take(self, amounts: Mapping[Provider, Mapping[str, int]], times: int) -> None:
        for provider, resources in amounts.items():
            self._taken[provider.uuid] = provider.taking(resources, times)


def _share(domains: Iterable[Sequence[Provider]]) -> bool:
    return any(provider.shares for domain in domains for provider in domain)


def _times(provider: Provider, amounts: Mapping[str, int]) -> int:
    """Return how many times a provider has these amounts, which is at least once."""
    return min(provider.inventories[name].free // n for name, n in amounts.items())


def _times_of(amounts: Mapping[Provider, Mapping[str, int]]) -> int:
    return min(_times(provider, each) for provider, each in amounts.items())
