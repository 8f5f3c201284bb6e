"""The fleet: all providers, with their inventories and their consumers."""

import contextlib
import dataclasses
from collections.abc import Generator, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from placement.forest.forest import Forest
from placement.model.allocation import Holding
from placement.model.tree import Provider

Holdings: TypeAlias = Generator[Holding, None, None]
NO_HOLDINGS: tuple[Holding, ...] = ()
NO_COUNTS: Mapping[int, int] = MappingProxyType({})


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """A provider, its allocations, and the number of consumers of its tree."""

    provider: Provider
    holdings: tuple[Holding, ...]
    tree_consumers: int = 0


def no_holdings() -> Holdings:
    """Yield nothing."""
    yield from ()


def list_members(
    forest: Forest,
    found: Iterable[Provider] | None,
    holdings: Holdings,
    counts: Mapping[int, int] = NO_COUNTS,
) -> Generator[Member, None, None]:
    """Yield providers, each before those below it, with their holdings.

    Neither the forest nor the holdings are read ahead.

    :param found: the providers, by tree; None means all
    :param holdings: allocations, in the order of the ids of their roots; those of other
        providers are skipped; they are closed together with the members
    :param counts: the numbers of consumers of trees, by the ids of their roots
    """
    if found is None:
        trees = forest.everything.trees
        found = (member for tree in trees for member in tree.members)
    with contextlib.closing(holdings):
        yield from _join(forest, found, holdings, counts)


def _join(
    forest: Forest,
    found: Iterable[Provider],
    holdings: Iterator[Holding],
    counts: Mapping[int, int],
) -> Iterator[Member]:
    of_tree: dict[int, list[Holding]] = {}
    current_id, following = None, next(holdings, None)
    for provider in found:
        root_id = forest.root_id(provider)
        if root_id != current_id:
            current_id, of_tree = root_id, {}
        while following and following.root_id <= root_id:
            if following.root_id == root_id:
                of_tree.setdefault(following.provider_id, []).append(following)
            following = next(holdings, None)
        held = tuple(of_tree.get(provider.id, NO_HOLDINGS))
        yield Member(provider, held, counts.get(root_id, 0))
