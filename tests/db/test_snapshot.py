"""What is loaded for a search, compared with a search through everything."""

import random
from typing import Any

import pytest
import sqlalchemy as sa

from placement.db import models
from placement.forest import loading, reading
from placement.model.request import Group, Request
from placement.model.tree import Snapshot, Tree
from placement.search import engine
from placement_foundation.database.storage import Database
from tests.property import forest, oracle
from tests.property.test_search import as_found

pytestmark = pytest.mark.damage

CUSTOM_CLASS_ID = 10000


def plant_in(database: Database, cloud: list[forest.Node]) -> None:
    database.write(lambda connection: plant(connection, cloud))


def plant(connection: sa.Connection, cloud: list[forest.Node]) -> None:
    """Store a cloud, in place of whatever is there."""
    for table in (
        models.Allocation,
        models.Inventory,
        models.ResourceProviderTrait,
        models.ResourceProviderAggregate,
        models.Aggregate,
    ):
        connection.execute(sa.delete(table))
    providers = models.ResourceProvider
    connection.execute(
        sa.update(providers).values(root_provider_id=None, parent_provider_id=None)
    )
    connection.execute(sa.delete(providers))
    ids = {node: number for number, node in enumerate(cloud, 1)}
    connection.execute(
        sa.insert(providers),
        [
            {
                "id": key,
                "uuid": node.name,
                "name": node.name,
                "generation": 0,
                "parent_provider_id": node.parent and ids[node.parent],
                "root_provider_id": ids[node.root],
            }
            for node, key in ids.items()
        ],
    )
    for model_class, rows in associations(connection, ids).items():
        if rows:
            connection.execute(sa.insert(model_class), rows)


def associations(
    connection: sa.Connection, ids: dict[forest.Node, int]
) -> dict[type[models.Base], list[dict[str, Any]]]:
    """Return the rows that refer to providers."""
    words = loading.load_vocabulary(connection)
    class_ids, trait_ids = words.class_ids, words.trait_ids
    aggregates = {name: number for number, name in enumerate(forest.AGGREGATES, 1)}
    inventories = [
        (key, class_ids[name], vars(inventory))
        for node, key in ids.items()
        for name, inventory in node.inventories.items()
    ]
    return {
        models.Inventory: [
            {
                "resource_provider_id": key,
                "resource_class_id": class_id,
                **{name: value for name, value in fields.items() if name != "used"},
            }
            for key, class_id, fields in inventories
        ],
        # In two parts, for sums.
        models.Allocation: [
            {
                "resource_provider_id": key,
                "resource_class_id": class_id,
                "consumer_id": consumer,
                "used": used,
            }
            for key, class_id, fields in inventories
            for consumer, used in (("c1", 1), ("c2", fields["used"] - 1))
            if fields["used"] and used
        ],
        models.ResourceProviderTrait: [
            {"resource_provider_id": key, "trait_id": trait_ids[name]}
            for node, key in ids.items()
            for name in node.traits
        ],
        models.Aggregate: [
            {"id": key, "uuid": name} for name, key in aggregates.items()
        ],
        models.ResourceProviderAggregate: [
            {"resource_provider_id": key, "aggregate_id": aggregates[name]}
            for node, key in ids.items()
            for name in node.aggregates
        ],
    }


@pytest.fixture
def planted(database: Database) -> Database:
    """Give a database with the classes and traits of the random clouds."""

    def name_things(connection: sa.Connection) -> None:
        row = {"id": CUSTOM_CLASS_ID, "name": "CUSTOM_VF"}
        connection.execute(sa.insert(models.ResourceClass), [row])
        names = [name for name in forest.TRAITS if name.startswith("CUSTOM")]
        connection.execute(sa.insert(models.Trait), [{"name": each} for each in names])

    database.write(name_things)
    return database


def everything(connection: sa.Connection) -> Snapshot:
    """Return a snapshot of what is loaded."""
    return loading.load(connection).everything


def search(connection: sa.Connection, request: Request) -> set[oracle.Found]:
    loaded = loading.load(connection).relevant(request)
    found = list(engine.search(loaded, request))
    for candidate in found:
        # Whole trees of the providers that give something are there for the summaries.
        for provider in candidate.providers_used():
            assert provider in loaded.tree_by_uuid[provider.uuid].members
    return {as_found(candidate) for candidate in found}


def ask(database: Database, request: Request) -> set[oracle.Found]:
    return database.read(lambda connection: search(connection, request))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_left_out_does_not_change_the_answer(
    seed: int, planted: Database
) -> None:
    rng = random.Random(seed)
    for _ in range(25):
        cloud = forest.random_forest(rng, size=9)
        plant_in(planted, cloud)
        for _ in range(8):
            request = forest.random_request(rng, cloud)
            found = ask(planted, request)
            assert found == oracle.candidates(cloud, request), (cloud, request)


def test_a_loaded_snapshot_is_what_was_stored(planted: Database) -> None:
    rng = random.Random(39)
    for _ in range(20):
        cloud = forest.random_forest(rng, size=9)
        plant_in(planted, cloud)
        loaded = planted.read(everything)
        expected = forest.snapshot_of(cloud)
        assert [describe(tree) for tree in loaded.trees] == [
            describe(tree) for tree in expected.trees
        ]


def describe(tree: Tree) -> Any:
    return tree.aggregates, [
        (
            member.uuid,
            member.parent_uuid,
            member.root_uuid,
            dict(member.inventories),
            sorted(member.trait_names),
            member.traits,
            member.aggregates,
            member.position,
            member.end,
        )
        for member in tree.members
    ]


def hosts(count: int) -> list[forest.Node]:
    """Return hosts of which the second half has no DISK_GB."""
    return [
        forest.Node(
            f"host{number}",
            None,
            {
                name: forest.Inventory(8, used=number % 3)
                for name in ("VCPU", "DISK_GB")[: 2 if number < count / 2 else 1]
            },
            frozenset(forest.TRAITS[:2]),
            frozenset({"A"}),
        )
        for number in range(count)
    ]


def test_more_trees_than_can_be_listed_are_loaded_as_well(
    planted: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_LISTED_ROOTS", 3)
    plant_in(planted, hosts(10))

    def load(connection: sa.Connection) -> list[int]:
        words = loading.load_vocabulary(connection)
        return list(reading.load(connection, words, {2, 4, 6, 8, 9}))

    assert planted.read(load) == [2, 4, 6, 8, 9]


def test_traits_are_in_the_order_of_their_making_standard_ones_first(
    planted: Database,
) -> None:
    cloud = [
        forest.Node(
            "host",
            None,
            {},
            frozenset({"CUSTOM_T2", "CUSTOM_T1", "HW_NUMA_ROOT", "CUSTOM_T3"}),
            frozenset(),
        )
    ]

    def rename(connection: sa.Connection) -> None:
        plant(connection, cloud)
        trait = models.Trait
        names = {"CUSTOM_T1": "CUSTOM_Z", "CUSTOM_T2": "CUSTOM_A"}
        for old, new in names.items():
            connection.execute(
                sa.update(trait).where(trait.name == old).values(name=new)
            )

    planted.write(rename)
    loaded = planted.read(everything)
    assert loaded.trees[0].root.trait_names == (
        "HW_NUMA_ROOT",
        "CUSTOM_Z",
        "CUSTOM_A",
        "CUSTOM_T3",
    )


def test_a_provider_may_have_more_traits_than_mysql_joins_by_default(
    planted: Database,
) -> None:
    def plant_traits(connection: sa.Connection) -> None:
        plant(connection, hosts(1))
        ids = loading.load_vocabulary(connection).traits
        rows = [{"resource_provider_id": 1, "trait_id": key} for key in list(ids)[:300]]
        connection.execute(sa.delete(models.ResourceProviderTrait))
        connection.execute(sa.insert(models.ResourceProviderTrait), rows)

    planted.write(plant_traits)
    loaded = planted.read(everything)
    assert len(loaded.trees[0].root.traits) == 300


@pytest.mark.parametrize("ratio", [1.234567, 1.0000049, 16.12345678, 9.9999949])
def test_the_last_unit_there_is_can_be_had_whatever_digits_a_ratio_loses(
    planted: Database, ratio: float
) -> None:
    inventory = forest.Inventory(total=10**7, allocation_ratio=ratio)
    plant_in(
        planted,
        [forest.Node("host", None, {"VCPU": inventory}, frozenset(), frozenset())],
    )
    loaded = planted.read(everything)
    last = loaded.trees[0].root.inventories["VCPU"].capacity
    for amount, count in ((last, 1), (last + 1, 0)):
        request = Request((Group("", {"VCPU": amount}),))
        assert len(ask(planted, request)) == count
