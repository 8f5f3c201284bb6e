"""Choosing where consumers go, on clouds small enough to know the answer."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest

from placement import errors
from placement.forest import forest as forests
from placement.forest import vocabulary
from placement.forest.forest import Forest
from placement.model.request import Group, Request
from placement.questions.candidates import CandidateQuery
from placement.questions.placing import choosing, packing
from placement.questions.placing.choosing import Chosen, Present
from placement.questions.placing.query import (
    Domains,
    Preference,
    Quality,
    Spread,
    Wish,
)
from placement.schemas import placing as wire
from placement.search.search import Limits
from placement_foundation.http import schema
from tests.property import forest
from tests.property.forest import Inventory, Node
from tests.property.test_forest_index import trees_of

NOWHERE = Present({}, {})
ONE_CPU = Request((Group("", {"VCPU": 1}),))


def forest_of(cloud: list[Node]) -> Forest:
    """Return a cloud as it is kept."""
    classes = dict(enumerate(forest.CLASSES))
    traits = dict(enumerate((*forest.TRAITS, "CUSTOM_SSD")))
    words = vocabulary.of_names(classes, traits)
    return forests.forest_of(words, trees_of(cloud))


def host(
    name: str,
    vcpu: int,
    *,
    used: int = 0,
    traits: tuple[str, ...] = (),
    aggregates: tuple[str, ...] = (),
) -> Node:
    inventories = {"VCPU": Inventory(vcpu, used=used)} if vcpu else {}
    return Node(name, None, inventories, frozenset(traits), frozenset(aggregates))


def choose(
    cloud: list[Node],
    wanted: int,
    *,
    request: Request = ONE_CPU,
    present: Present = NOWHERE,
    **wish: object,
) -> Chosen:
    return choosing.choose(
        forest_of(cloud),
        Wish(request, **wish),  # type: ignore[arg-type]
        wanted,
        present,
        Limits(),
        rng=random.Random(0),
    )


def hosts(chosen: Chosen) -> dict[str, int]:
    return dict(Counter(choice.host.uuid for choice in chosen.choices))


def test_requests_begin_at_random_places() -> None:
    cloud = [host(f"h{number}", 1) for number in range(600)]
    wish, grown = Wish(ONE_CPU), forest_of(cloud)
    rng = random.Random(0)
    found = {
        choosing.choose(grown, wish, 1, NOWHERE, Limits(), rng=rng).choices[0].host.uuid
        for _ in range(100)
    }
    assert len(found) > 80


@pytest.mark.parametrize("seed", range(100))
def test_a_packing_is_the_largest_there_is(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"d{number}" for number in range(rng.randint(1, 4))]
    left = {name: rng.randint(0, 3) for name in names}
    kinds = {
        tuple(sorted(rng.sample(names, rng.randint(1, len(names))))): rng.randint(0, 3)
        for _ in range(rng.randint(1, 5))
    }

    def totals() -> Iterator[int]:
        for numbers in itertools.product(*(range(room + 1) for room in kinds.values())):
            counts = dict(zip(kinds, numbers, strict=True))
            if fits(counts):
                yield sum(numbers)

    def fits(counts: Mapping[tuple[str, ...], int]) -> bool:
        taken = Counter[str]()
        for kind, number in counts.items():
            taken.update(dict.fromkeys(kind, number))
        return all(taken[name] <= left[name] for name in names)

    most = max(totals())
    for wanted in (most + 1, max(most - 1, 0)):
        numbers, is_exact = packing.pack(kinds, left, wanted)
        assert is_exact
        assert fits(numbers)
        assert sum(numbers.values()) >= min(most, wanted)


def test_a_packing_that_takes_too_long_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: dict[packing.Kind, int] = {("a", "b"): 3, ("b", "c"): 3, ("a", "c"): 3}
    left = dict.fromkeys("abc", 3)
    assert not packing.pack(kinds, left, 9, budget=2)[1]
    # As many as are wanted are enough, whatever else there may be.
    assert packing.pack(kinds, left, 3, budget=5)[1]
    monkeypatch.setattr(packing.pack, "__defaults__", (1,))
    cloud = [host("ab", 8, aggregates=("A", "B")), host("ac", 8, aggregates=("A", "C"))]
    chosen = choose(cloud, 9, spread=Spread(Domains(("A", "B", "C")), 2))
    assert chosen.exhausted
    assert not chosen.exact


@pytest.mark.parametrize(
    ("preference", "expected"),
    [
        (Preference(Quality.TRAIT, "CUSTOM_SSD", 1), "fast"),
        (Preference(Quality.AGGREGATE, "A", 1), "near"),
        (Preference(Quality.HOST, "third", 1), "third"),
        (Preference(Quality.FREE, "VCPU", 1), "empty"),
        (Preference(Quality.FREE, "VCPU", -1), "full"),
    ],
    ids=lambda each: each.quality.value if isinstance(each, Preference) else each,
)
def test_preferences(preference: Preference, expected: str) -> None:
    cloud = [
        host("fast", 8, used=4, traits=("CUSTOM_SSD",)),
        host("near", 8, used=4, aggregates=("A",)),
        host("third", 8, used=4),
        host("empty", 8),
        host("full", 8, used=7),
    ]
    chosen = choose(cloud, 1, prefer=(preference,))
    assert hosts(chosen) == {expected: 1}
    assert chosen.considered == 5


def test_free_parts_are_those_after_the_placement() -> None:
    [choice] = choose(
        [host("a", 8, used=3)], 1, prefer=(Preference(Quality.FREE, "VCPU", 2),)
    ).choices
    assert choice.score == pytest.approx(1.0)


def test_hosts_that_are_equally_good_are_chosen_at_random() -> None:
    cloud = [host(f"h{number}", 8) for number in range(20)]
    prefer = (Preference(Quality.TRAIT, "CUSTOM_SSD", 1),)
    wish, grown, rng = Wish(ONE_CPU, prefer=prefer), forest_of(cloud), random.Random(0)
    found = {
        choosing.choose(grown, wish, 1, NOWHERE, Limits(), rng=rng).choices[0].host.uuid
        for _ in range(200)
    }
    assert len(found) == 20


def test_only_so_many_hosts_are_considered() -> None:
    cloud = [host(f"h{number}", 8) for number in range(50)]
    prefer = (Preference(Quality.FREE, "VCPU", -1),)
    chosen = choose(cloud, 1, prefer=prefer, consider=7)
    assert chosen.considered == 7


BODY: dict[str, object] = {
    "query": "resources=VCPU:1",
    "consumers": ["6f3d3c1a-90a2-4b4e-8e0e-0d4f6a1f7b01"],
    "project_id": "blue",
    "user_id": "ann",
    "consumer_type": "INSTANCE",
}
PREFERENCE = {"trait": "CUSTOM_SSD", "weight": 1}


def several(number: int) -> list[str]:
    return [f"6f3d3c1a-90a2-4b4e-8e0e-{each:012}" for each in range(number)]


def spread(at_most: int) -> dict[str, object]:
    return {"per": "host", "at_most": at_most}


@pytest.mark.parametrize(
    ("member", "good", "bad"),
    [
        ("consumers", [several(1), several(1000)], [several(0), several(1001)]),
        ("at_least", [1], [0, 1.5]),
        ("spread", [spread(1)], [spread(0), {"per": "rack", "at_most": 1}]),
        ("prefer", [[PREFERENCE] * 50], [[PREFERENCE] * 51, [{"weight": 1}]]),
        (
            "prefer",
            [[{**PREFERENCE, "weight": each}] for each in (-1000, 0.5, 1000)],
            [[{**PREFERENCE, "weight": each}] for each in (-1001, 0, 1001)],
        ),
        ("consider", [1, 10_000], [0, 10_001]),
        ("lease_seconds", [1, 31_536_000], [0, 31_536_001]),
        ("dry_run", [True, False], [1]),
        ("together", ["host"], ["rack", {"aggregates": []}]),
    ],
)
def test_members_of_a_request_have_bounds(
    member: str, good: list[object], bad: list[object]
) -> None:
    for value in good:
        schema.parse_json(json.dumps({**BODY, member: value}).encode(), wire.BODY)
    for value in bad:
        with pytest.raises(errors.BadRequest, match="JSON does not validate"):
            schema.parse_json(json.dumps({**BODY, member: value}).encode(), wire.BODY)


def test_five_hundred_hosts_are_considered_unless_it_is_said() -> None:
    query = CandidateQuery(ONE_CPU, None)

    def considered(**members: object) -> int:
        return wire.parse({**BODY, **members}, lambda _: query).wish.consider

    assert considered() == 500
    assert considered(consider=7) == 7


def test_overlapping_racks_that_have_consumers_already() -> None:
    cloud = [
        host("a", 8, aggregates=("A", "B")),
        host("b", 1, aggregates=("A",)),
        host("c", 8, used=7, aggregates=("B",)),
    ]
    spread = Spread(Domains(("A", "B")), 2, ("other",))
    present = Present({}, {"other": ["b"]})
    for _ in range(12):
        chosen = choose(cloud, 3, spread=spread, present=present)
        assert (len(chosen.choices), chosen.exact) == (2, True)
