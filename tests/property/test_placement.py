"""Placements of small clouds, compared with every way to place the consumers."""

import collections
import random

import pytest

from placement.forest import forest as forests
from placement.forest import vocabulary
from placement.model.tree import SHARING
from placement.questions.placing import choosing
from placement.questions.placing.choosing import Present
from placement.questions.placing.filling import Choice
from placement.questions.placing.query import (
    Domains,
    Preference,
    Quality,
    Spread,
    Wish,
)
from placement.search.search import Limits
from tests.property import forest, oracle
from tests.property.forest import Node
from tests.property.test_capacity import TooMany, claimed
from tests.property.test_forest_index import trees_of

BATCHES = 4
CASES = 60
# Clouds with more ways to place consumers are left to others.
MOST_STATES = 150
WORDS = vocabulary.of_names(
    dict(enumerate(forest.CLASSES)), dict(enumerate(forest.TRAITS))
)


def hosts_of(cloud: list[Node], taken: frozenset[tuple[str, str, int]]) -> list[Node]:
    """Return the roots of what serves its own tree only, or else of all."""
    by_name = {node.name: node for node in cloud}
    used = [by_name[name] for name in sorted({name for name, _, _ in taken})]
    own = [node for node in used if SHARING not in node.traits]
    return list({node.root.name: node.root for node in own or used}.values())


def domains_of(host: Node, domains: Domains) -> list[str]:
    if domains.aggregates is None:
        return [host.name]
    return [each for each in domains.aggregates if each in host.aggregates]


class Rules:
    """What a sequence of placements has to keep to."""

    def __init__(self, wish: Wish) -> None:
        self.spread = wish.spread
        self.is_together = wish.together

    def allow(self, placed: list[list[Node]]) -> bool:
        if self.spread:
            counts: collections.Counter[str] = collections.Counter()
            for hosts in placed:
                if not all(domains_of(host, self.spread.domains) for host in hosts):
                    return False
                counts.update(
                    {
                        name
                        for host in hosts
                        for name in domains_of(host, self.spread.domains)
                    }
                )
            if any(count > self.spread.at_most for count in counts.values()):
                return False
        if self.is_together and placed:
            common = [
                set(domains_of(host, self.is_together))
                for hosts in placed
                for host in hosts
            ]
            return bool(set.intersection(*common))
        return True


def most_placed(
    cloud: list[Node],
    wish: Wish,
    wanted: int,
    placed: list[list[Node]],
    steps: list[int],
) -> int:
    """Return how many more consumers can be placed, in any way."""
    steps[0] += 1
    if steps[0] > MOST_STATES:
        raise TooMany
    if len(placed) >= wanted:
        return 0
    best = 0
    for taken in sorted(
        {taken for taken, _ in oracle.candidates(cloud, wish.request)}, key=sorted
    ):
        now = [*placed, hosts_of(cloud, taken)]
        if Rules(wish).allow(now):
            after = claimed(cloud, taken)
            best = max(best, 1 + most_placed(after, wish, wanted, now, steps))
            if len(placed) + best >= wanted:
                break
    return best


def random_wish(rng: random.Random, cloud: list[Node]) -> Wish:
    """Return a wish; spreads and togetherness are about hosts or known aggregates."""
    known = sorted({name for node in cloud for name in node.aggregates})
    kinds = [Domains(), *([Domains(tuple(known))] if known else [])]
    spread = together = None
    if rng.random() < 0.5:
        spread = Spread(rng.choice(kinds), rng.choice([1, 1, 2]))
    elif rng.random() < 0.5:
        together = rng.choice(kinds)
    prefer = [
        Preference(Quality.TRAIT, rng.choice(forest.TRAITS), rng.choice([-1, 2])),
        Preference(Quality.FREE, rng.choice(forest.CLASSES), rng.choice([-1, 1])),
    ]
    return Wish(
        forest.random_request(rng, cloud),
        spread,
        together,
        tuple(prefer[: rng.choice([0, 0, 1, 2])]),
        rng.choice([1, 2, 500]),
    )


@pytest.mark.parametrize("seed", range(BATCHES))
def test_as_many_are_placed_as_can_be(seed: int) -> None:
    rng = random.Random(seed)
    exact = partly = 0
    for _ in range(CASES):
        cloud = forest.random_forest(rng, size=5)
        wish, wanted = random_wish(rng, cloud), rng.choice([1, 2, 3])
        if not any(group.resources for group in wish.request.groups):
            # The API does not take it.
            continue
        if any(group.in_tree == "nobody" for group in wish.request.groups):
            continue
        try:
            most = most_placed(cloud, wish, wanted, [], [0])
        except TooMany:
            continue
        grown = forests.forest_of(WORDS, trees_of(cloud))
        nowhere = Present({}, {})
        chosen = choosing.choose(grown, wish, wanted, nowhere, Limits(), rng=rng)
        context = (seed, cloud, wish, wanted)
        found = len(chosen.choices)
        assert found <= most, context
        if chosen.exact:
            assert found == most, context
            exact += 1
        # With one consumer, there is nothing to spoil.
        if wanted == 1 and not wish.spread and not wish.together:
            assert found == most, context
        partly += 0 < found < wanted
        check(cloud, wish, chosen.choices, context)
    assert exact > CASES / 4
    assert partly


def check(
    cloud: list[Node],
    wish: Wish,
    choices: tuple[Choice, ...],
    context: object,
) -> None:
    """Check that choices are possible, one after the other in some order."""
    placed = []
    for choice in choices:
        taken = frozenset(
            (uuid, name, amount)
            for uuid, resources in choice.amounts.items()
            for name, amount in resources.items()
        )
        assert taken in {each for each, _ in oracle.candidates(cloud, wish.request)}, (
            context
        )
        placed.append(hosts_of(cloud, taken))
        cloud = claimed(cloud, taken)
    assert Rules(wish).allow(placed), context
