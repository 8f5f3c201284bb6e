"""How many consumers each domain has, and how many more it may take."""

import collections
import sys
from collections.abc import Iterable, Sequence

from placement.model.tree import Provider
from placement.questions.placing.query import Domains, Spread


def domains_of(host: Provider, domains: Domains) -> tuple[str, ...]:
    """Return the domains that a host is in, by UUID."""
    if domains.aggregates is None:
        return (host.uuid,)
    return tuple(each for each in domains.aggregates if each in host.aggregates)


def common_domains(hosts: Sequence[Provider], domains: Domains) -> frozenset[str]:
    """Return the domains that all of some hosts are in."""
    each = [frozenset(domains_of(host, domains)) for host in hosts]
    return frozenset.intersection(*each) if each else frozenset()


class Occupied:
    """The consumers in each domain of a spread; without one, there is no bound."""

    def __init__(self, spread: Spread | None) -> None:
        self._spread = spread
        self._counts: collections.Counter[str] = collections.Counter()

    def copy(self) -> "Occupied":
        """Return the same counts, to go on from."""
        other = Occupied(self._spread)
        other._counts = self._counts.copy()
        return other

    def add(self, hosts: Iterable[Provider], times: int = 1) -> None:
        """Count consumers, each of them on some hosts."""
        if self._spread:
            domains = self._spread.domains
            for name in {each for host in hosts for each in domains_of(host, domains)}:
                self._counts[name] += times

    def room(self, hosts: Iterable[Provider]) -> int:
        """Return how many more consumers may be on some hosts, all on each of them."""
        if self._spread is None:
            return sys.maxsize
        most = sys.maxsize
        for host in hosts:
            names = domains_of(host, self._spread.domains)
            left = [self._spread.at_most - self._counts[name] for name in names]
            most = min(most, *left) if left else 0
        return max(most, 0)

    def left(self) -> dict[str, int]:
        """Return how many more consumers each of some listed domains may have."""
        spread = self._spread
        names = (spread and spread.domains.aggregates) or ()
        most = spread.at_most if spread else 0
        return {name: max(0, most - self._counts[name]) for name in names}

    def overlap_at(self, host: Provider) -> bool:
        """Return whether a host counts in several domains."""
        spread = self._spread
        return spread is not None and len(domains_of(host, spread.domains)) > 1
