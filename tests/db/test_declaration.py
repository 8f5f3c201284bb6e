"""Declared hardware on a database: right, whole, and in few statements."""

import dataclasses
import random
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from placement.db import models
from placement.declaration import applying, remembered
from placement.declaration.plan import Declaration, Outcome, Terms
from placement.forest import loading, reading
from placement.model.declaration import Part
from placement.model.inventory import Inventory
from placement.model.tree import Provider
from placement.objects import (
    aggregate,
    inventory,
    resource_class,
    resource_provider,
    trait,
)
from placement_foundation.database.storage import Database
from tests import declarer
from tests.backends import KIND
from tests.client import Client, new_uuid
from tests.declarer import apply, foresee
from tests.property import declaring
from tests.property.declaring import Apply, Slow, Touch, Unit
from tests.statements import statements
from tests.threads import at_once

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

STEPS = 12
SEQUENCES = 4


def providers_of(database: Database) -> dict[str, Provider]:
    def work(connection: sa.Connection) -> dict[str, Provider]:
        trees = reading.load(connection, loading.load_vocabulary(connection))
        return {p.name: p for tree in trees.values() for p in tree.members}

    return database.read(work)


def there(database: Database) -> dict[Unit, Any]:
    units: dict[Unit, Any] = {}
    for name, each in providers_of(database).items():
        for kind, stock in each.stocks.items():
            units[name, "inventories", kind] = Inventory(
                stock.total,
                stock.reserved,
                stock.min_unit,
                stock.max_unit,
                stock.step_size,
                stock.allocation_ratio,
            )
        units |= {(name, "traits", trait): True for trait in each.traits}
        units |= {(name, "aggregates", uuid): True for uuid in each.aggregates}
    return units


def touch(database: Database, what: Touch) -> None:
    """Change a unit with what the Placement API uses."""
    name, kind, key = what.unit
    known = providers_of(database).get(name)
    if known is None:
        return

    def work(connection: sa.Connection) -> None:
        provider = resource_provider.get_by_uuid(connection, known.uuid)
        if kind == "inventories":
            resource_class.ensure(connection, [key])
            kept = inventory.list_by_provider(connection, provider.id)
            kept.pop(key, None)
            if what.value is not None:
                kept[key] = what.value
            inventory.replace_all(connection, provider, kept)
            return
        names = set(known.traits if kind == "traits" else known.aggregates) - {key}
        if what.value:
            names.add(key)
        if kind == "traits":
            trait.ensure(connection, names)
            trait.replace_all(connection, provider, names)
        else:
            aggregate.replace_all(connection, provider, sorted(names), bump=True)

    database.write(work)


def declaration_of(asked: Apply) -> Declaration:
    terms = Terms(asked.owner, asked.force, asked.prune, asked.complete)
    return Declaration(asked.trees, terms)


@pytest.mark.parametrize("number", range(SEQUENCES))
def test_two_owners_and_an_agent_never_undo_each_other_silently(
    database: Database, number: int
) -> None:
    rng = random.Random(number)
    slow = Slow()
    for step in range(STEPS):
        what = declaring.a_step(rng)
        if isinstance(what, Touch):
            touch(database, what)
            slow.touch(what.unit, what.value)
        else:
            asked = declaration_of(what)
            foreseen = foresee(database, asked)
            done = applying.apply(database, asked, foreseen)
            # A dry run says exactly what happens.
            assert [(p.name, p.result, p.changes, p.drift) for p in foreseen.plans] == [
                (p.name, p.result, p.changes, p.drift) for p in done.plans
            ]
            results = {p.name: str(p.result) for p in done.plans[: len(what.trees)]}
            assert results == slow.apply(what), (number, step, what)
        assert there(database) == slow.there, (number, step, what)
        assert providers_of(database).keys() == slow.providers.keys()


def fleet(count: int, width: int = 20) -> list[tuple[Part, ...]]:
    """Return hosts with a child each, of 3 classes and 20 traits."""
    inventories = {"VCPU": Inventory(64), "MEMORY_MB": Inventory(2**18)}
    traits = frozenset(f"CUSTOM_RACK_{number}" for number in range(width))
    aggregates = frozenset(declaring.AGGREGATES)
    return [
        (
            Part(f"host{number}", None, None, inventories, traits, aggregates),
            Part(f"host{number}-gpu", None, 0, {"CUSTOM_GPU": Inventory(8)}),
        )
        for number in range(count)
    ]


def counts(database: Database, asked: Declaration) -> int:
    with statements(database) as executed:
        apply(database, asked)
    return len(executed)


def test_statements_do_not_grow_with_the_number_of_trees(database: Database) -> None:
    terms = Terms("fleet")
    few, many = fleet(130)[:5], fleet(130)[5:95]
    apply(database, Declaration([], terms, frozenset(few[0][0].traits)))
    assert counts(database, Declaration(few, terms)) >= counts(
        database, Declaration(many, terms)
    )
    # Nothing differs, so nothing is written.
    unchanged = counts(database, Declaration(few + many, terms))
    assert unchanged <= 12
    changed = [
        (dataclasses.replace(tree[0], traits=frozenset(["CUSTOM_RACK_1"])), tree[1])
        for tree in few + many
    ]
    one = counts(database, Declaration(changed[:1], terms))
    assert counts(database, Declaration(changed[1:], terms)) <= one + 2
    gone = Declaration([], dataclasses.replace(terms, prune=True, complete=True))
    assert counts(database, gone) <= 40
    assert providers_of(database) == {}


def one_host(total: int = 8) -> Declaration:
    part = Part("host", inventories={"VCPU": Inventory(total)})
    return Declaration([(part,)], Terms("fleet"))


def result_of(outcome: Outcome, number: int = 0) -> tuple[str, str | None]:
    each = outcome.plans[number]
    return str(each.result), each.reason


def host_uuid(database: Database) -> str:
    return providers_of(database)["host"].uuid


@pytest.fixture
def client(application: "WSGIApplication") -> Client:
    return Client(application)


def test_what_is_in_use_is_refused_and_the_tree_untouched(
    client: Client, database: Database
) -> None:
    apply(database, one_host())
    client.claim(new_uuid(), {host_uuid(database): {"VCPU": 5}})
    before = providers_of(database)["host"]
    smaller = Part(
        "host", inventories={"VCPU": Inventory(4)}, traits=frozenset(["CUSTOM_A"])
    )
    for parts, reason in (
        ((smaller,), "5 VCPU of host are in use: a capacity of 4 is too small."),
        ((Part("host", traits=smaller.traits),), "the inventory cannot be removed"),
        ((Part("host", inventories={"VCPU": None}),), "5 VCPU of host are in use"),
    ):
        outcome = apply(database, Declaration([parts], Terms("fleet")))
        result, why = result_of(outcome)
        assert result == "refused"
        assert reason in str(why)
    terms = Terms("fleet", prune=True, complete=True)
    assert result_of(apply(database, Declaration([], terms)))[0] == "refused"
    after = providers_of(database)["host"]
    assert (after.generation, after.traits) == (before.generation, before.traits)
    assert result_of(apply(database, one_host(16))) == ("changed", None)


def test_a_host_is_renamed_and_its_parts_are_moved(database: Database) -> None:
    terms = Terms("fleet")
    uuids = [new_uuid() for _ in range(3)]
    before = (
        Part("host", uuids[0]),
        Part("numa0", uuids[1], 0),
        Part("gpu", uuids[2], 1),
    )
    apply(database, Declaration([before], terms))
    after = (
        Part("HOST", uuids[0]),
        Part("gpu", uuids[2], 0),
        Part("numa1", uuids[1], 1),
    )
    outcome = apply(database, Declaration([after], terms))
    assert result_of(outcome) == ("changed", None)
    found = providers_of(database)
    assert found["gpu"].parent_uuid == uuids[0]
    assert found["numa1"].parent_uuid == uuids[2]
    assert found["HOST"].uuid == uuids[0]
    assert not apply(database, Declaration([after], terms)).plans[0].writes


def test_names_that_the_database_does_not_distinguish(database: Database) -> None:
    terms = Terms("fleet")
    apply(database, Declaration([(Part("host"),)], terms))
    alike = [(Part("Host"),), (Part("other"),)]
    asked = Declaration(alike, terms)
    foreseen = [str(each.result) for each in foresee(database, asked).plans]
    done = [str(each.result) for each in apply(database, asked).plans]
    expected = "refused" if KIND == "mysql" else "created"
    assert foreseen == done == [expected, "created"]


def test_what_the_database_cannot_store_prevents_its_tree_only(
    database: Database,
) -> None:
    trees = [(Part("good"),), (Part("bad\0name"),)]
    done = apply(database, Declaration(trees, Terms("fleet"))).plans
    assert str(done[0].result) == "created"
    if KIND == "postgresql":
        assert str(done[1].result) == "refused"


def test_claims_go_on_beside_applying(client: Client, database: Database) -> None:
    """Neither side sees that the other was faster."""
    apply(database, one_host(1000))
    uuid = host_uuid(database)

    def claim() -> str:
        return str(client.claim(new_uuid(), {uuid: {"VCPU": 1}}).status)

    def declare(total: int) -> str:
        return result_of(apply(database, one_host(total)))[0]

    calls = [claim] * 8 + [partial(declare, 2000 + number) for number in range(8)]
    results = at_once(calls)
    assert results[:8] == ["204"] * 8
    assert set(results[8:]) <= {"changed", "unchanged"}
    stock = providers_of(database)["host"].stocks["VCPU"]
    assert (stock.used, stock.total // 8) == (8, 250)


def test_those_who_create_the_same_hosts_at_once_all_succeed(
    database: Database,
) -> None:
    asked = Declaration(fleet(6, width=3), Terms("fleet"))
    others = Declaration(fleet(6, width=3), Terms("gpu-team"))
    outcomes = at_once([partial(apply, database, each) for each in (asked, others) * 2])
    results = {str(each.result) for outcome in outcomes for each in outcome.plans}
    assert results <= {"created", "unchanged"}
    assert len(providers_of(database)) == 12
    for each in (asked, others):
        assert not any(plan.writes for plan in foresee(database, each).plans)


def test_every_tree_is_done_or_untouched_when_the_process_is_killed(
    database: Database,
) -> None:
    chance = random.Random(4711)
    url = database.engine.url.render_as_string(hide_password=False)
    number = 1
    for _ in range(3):
        number = declare_and_die(url, number, chance)
        found = providers_of(database)
        for which in range(declarer.HOSTS):
            host, gpu = found[f"host{which}"], found[f"host{which}-gpu"]
            totals = {s.total for p in (host, gpu) for s in p.stocks.values()}
            assert len(totals) == 1
            assert host.traits == gpu.traits == {f"CUSTOM_TURN_{totals.pop() % 2}"}
        drift = database.read(
            lambda connection: remembered.list_declared(connection, None, drift=True)
        )
        assert drift == []


def declare_and_die(url: str, first: int, chance: random.Random) -> int:
    """Let a process declare turns and kill it; return a turn after its last one."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.declarer", url, str(first)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        done = [process.stdout.readline() for _ in range(2)]
        time.sleep(chance.uniform(0, 0.2))
        process.kill()
        done += process.stdout.readlines()
    return max(int(line) for line in done if line.endswith("\n")) + 2


DECLARED = {"trees": [{"name": "host"}]}


def test_without_the_table_the_placement_api_goes_on(
    client: Client, database: Database
) -> None:
    provider = client.make_provider(VCPU=4)
    with database.engine.begin() as connection:
        models.DECLARATIONS.drop(connection)
    try:
        answer = client.call("POST", "/ledger/v1/apply", DECLARED)
        assert answer.status == 503
        assert "run placement-manage db sync" in answer.detail
        assert client.call("GET", "/ledger/v1/declared").status == 503
        deleted = client.make_provider()
        assert client.call("DELETE", f"/resource_providers/{deleted}").status == 204
        assert client.claim(new_uuid(), {provider: {"VCPU": 1}}).status == 204
    finally:
        with database.engine.begin() as connection:
            models.DECLARATIONS.create(connection)
    assert client.call("POST", "/ledger/v1/apply", DECLARED).status == 200


def test_what_was_declared_of_a_deleted_provider_is_forgotten(
    client: Client, database: Database
) -> None:
    apply(database, one_host())
    path = f"/resource_providers/{host_uuid(database)}"
    assert client.call("DELETE", path).status == 204
    assert client.get("/ledger/v1/declared") == {"declared": []}
    # What an agent creates afterwards is not ours to remove.
    client.call("POST", "/resource_providers", {"name": "host"})
    terms = Terms("fleet", prune=True, complete=True)
    assert list(apply(database, Declaration([], terms)).plans) == []


def test_ratios_that_a_database_rounds_are_no_change(database: Database) -> None:
    part = Part("host", inventories={"VCPU": Inventory(8, allocation_ratio=1.23456789)})
    asked = Declaration([(part,)], Terms("fleet"))
    apply(database, asked)
    assert not apply(database, asked).plans[0].writes
