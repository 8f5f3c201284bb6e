"""Declared hardware on a database: right, whole, and in few statements."""

import dataclasses
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from placement.db import models
from placement.declaration import applying, naming
from placement.declaration import reading as declarations
from placement.declaration.outcome import Declaration, Outcome, Terms
from placement.forest import loading, reading
from placement.model.declaration import Change, DeclaredProvider, Names
from placement.model.inventory import Inventory
from placement.model.tree import Provider
from placement.objects import (
    aggregate,
    inventory,
    resource_class,
    resource_provider,
    trait,
)
from placement.objects.ledger import Ledger
from placement.objects.transaction import Transaction
from placement_foundation.database.storage import Database
from tests import backends, declarer
from tests.client import Client, new_uuid
from tests.declarer import apply, foresee
from tests.property import declaring
from tests.property.declaring import Apply, Slow, Touch, Unit
from tests.threads import at_once

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
        for kind, found in each.inventories.items():
            units[name, "inventories", kind] = Inventory(
                found.total,
                found.reserved,
                found.min_unit,
                found.max_unit,
                found.step_size,
                found.allocation_ratio,
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

    def work(tx: Transaction) -> None:
        provider = resource_provider.get_by_uuid(tx.connection, known.uuid)
        if kind == "inventories":
            resource_class.ensure(tx, [key])
            kept = inventory.list_by_provider(tx.connection, provider)
            kept.pop(key, None)
            if what.value is not None:
                kept[key] = what.value
            inventory.replace_all(tx, provider, kept)
            return
        names = set(known.traits if kind == "traits" else known.aggregates) - {key}
        if what.value:
            names.add(key)
        if kind == "traits":
            trait.ensure(tx, names)
            trait.replace_all(tx, provider, names)
        else:
            aggregate.replace_all(tx, provider, sorted(names), bump=True)

    Ledger(database).write(work)


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
            done = applying.apply(Ledger(database), asked, foreseen)
            # A dry run says exactly what happens.
            assert [(p.name, p.result, p.changes, p.drift) for p in foreseen.plans] == [
                (p.name, p.result, p.changes, p.drift) for p in done.plans
            ]
            results = {p.name: str(p.result) for p in done.plans[: len(what.trees)]}
            assert results == slow.apply(what), (number, step, what)
        assert there(database) == slow.there, (number, step, what)
        assert providers_of(database).keys() == slow.providers.keys()


def fleet(count: int, width: int = 20) -> list[tuple[DeclaredProvider, ...]]:
    """Return hosts with a child each, of 3 classes and 20 traits."""
    inventories = {"VCPU": Inventory(64), "MEMORY_MB": Inventory(2**18)}
    traits = frozenset(f"CUSTOM_RACK_{number}" for number in range(width))
    aggregates = frozenset(declaring.AGGREGATES)
    return [
        (
            DeclaredProvider(
                f"host{number}", None, None, inventories, traits, aggregates
            ),
            DeclaredProvider(
                f"host{number}-gpu", None, 0, {"CUSTOM_GPU": Inventory(8)}
            ),
        )
        for number in range(count)
    ]


def one_host(total: int = 8) -> Declaration:
    part = DeclaredProvider("host", inventories={"VCPU": Inventory(total)})
    return Declaration([(part,)], Terms("fleet"))


def result_of(outcome: Outcome, number: int = 0) -> tuple[str, str | None]:
    each = outcome.plans[number]
    return str(each.result), each.reason


def host_uuid(database: Database) -> str:
    return providers_of(database)["host"].uuid


def post(client: Client, *trees: Any, **terms: Any) -> Any:
    """Apply trees; return what became of each of them."""
    answer = client.call("POST", "/ledger/v1/apply", {"trees": trees, **terms})
    assert answer.status == 200, answer
    return answer.document["trees"]


def host_with(kind: str, *keys: str, total: int = 4) -> dict[str, Any]:
    """Return a declared host with some units of a kind."""
    if kind == "inventories":
        return {"name": "host", kind: {key: {"total": total} for key in keys}}
    return {"name": "host", kind: list(keys)}


def test_what_is_declared_absent_is_removed_and_drifts_if_it_comes_back(
    client: Client, database: Database
) -> None:
    unit = ("host", "inventories", "VCPU")
    client.call("POST", "/resource_providers", {"name": "host"})
    touch(database, Touch(unit, Inventory(8)))
    absent = {"name": "host", "inventories": {"VCPU": None}}
    [tree] = post(client, absent)
    assert (tree["result"], tree["changes"][0]["after"]) == ("changed", None)
    assert there(database) == {}
    assert client.get("/ledger/v1/declared?drift=true") == {"declared": []}
    touch(database, Touch(unit, Inventory(8)))
    [declared] = client.get("/ledger/v1/declared?drift=true&owner=fleet")["declared"]
    [drift] = declared["drift"]
    assert (drift["path"], drift["before"]) == ("host/inventories/VCPU", None)
    assert drift["after"]["total"] == 8
    assert client.get("/ledger/v1/declared?owner=gpu-team") == {"declared": []}
    assert [tree["result"] for tree in post(client, absent)] == ["changed"]


def test_a_dry_run_answers_as_the_request_and_writes_nothing(
    client: Client, database: Database
) -> None:
    inventory = {"inventories": {"CUSTOM_FPGA": 4}}
    names = ("unchanged", "changed", "conflict", "refused", "removed")
    post(client, *({"name": name, **inventory} for name in names))
    host = providers_of(database)["refused"].uuid
    assert client.claim(new_uuid(), {host: {"CUSTOM_FPGA": 3}}).status == 204
    more = {"name": "conflict", "inventories": {"CUSTOM_FPGA": 8}}
    post(client, more, owner="gpu-team", force=True)
    asked: dict[str, Any] = {
        "trees": [
            {"name": "unchanged", **inventory},
            {"name": "changed", "traits": ["CUSTOM_NEW"]},
            {"name": "conflict", **inventory},
            {"name": "refused", "inventories": {"CUSTOM_FPGA": 2}},
            {"name": "created", **inventory, "children": [{"name": "gpu"}]},
        ],
        "resource_classes": ["CUSTOM_SPARE"],
        "aggregates": {"rack-17": declaring.AGGREGATES[0]},
        "projects": {"web": "9f31"},
        "prune": True,
        "complete": True,
    }
    before = database.read(backends.rows_of)
    dry = client.call("POST", "/ledger/v1/apply", {**asked, "dry_run": True})
    assert database.read(backends.rows_of) == before
    done = client.call("POST", "/ledger/v1/apply", asked)
    assert dry.status == done.status == 200
    assert database.read(backends.rows_of) != before
    for answer in (dry, done):
        results = {each["name"]: each["result"] for each in answer.document["trees"]}
        assert results == {name: name for name in (*names, "created")}
        [created] = [e for e in answer.document["trees"] if e["name"] == "created"]
        del created["uuid"]
    assert dry.document == done.document


COMPLETE = Terms("fleet", prune=True, complete=True)


@pytest.mark.parametrize(
    "asked",
    [
        Declaration([], COMPLETE),
        one_host(4),
        Declaration([(DeclaredProvider("host"),)], Terms("fleet")),
    ],
    ids=["prune", "shrink", "remove"],
)
def test_a_claim_between_the_plan_and_the_writing_counts(
    client: Client, database: Database, asked: Declaration
) -> None:
    apply(database, one_host())
    foreseen = foresee(database, asked)
    assert result_of(foreseen)[0] in ("changed", "removed")
    host, consumer = host_uuid(database), new_uuid()
    assert client.claim(consumer, {host: {"VCPU": 6}}).status == 204
    result, reason = result_of(applying.apply(Ledger(database), asked, foreseen))
    assert result == "refused"
    assert "6 VCPU of host are in use" in str(reason)
    assert client.usages(host) == {"VCPU": 6}
    assert providers_of(database)["host"].inventories["VCPU"].total == 8


@pytest.mark.parametrize("what", ["child", "trait", "inventory", "aggregate"])
def test_what_an_agent_adds_before_a_host_is_pruned_stays(
    client: Client, database: Database, what: str
) -> None:
    apply(database, one_host())
    asked = Declaration([], COMPLETE)
    foreseen = foresee(database, asked)
    assert result_of(foreseen)[0] == "removed"
    nic = {"name": "nic", "parent_provider_uuid": host_uuid(database)}
    if what == "child":
        assert client.call("POST", "/resource_providers", nic).status == 200
    else:
        units: dict[str, tuple[str, str, Any]] = {
            "trait": ("traits", "HW_CPU_X86_VMX", True),
            "inventory": ("inventories", "MEMORY_MB", Inventory(64)),
            "aggregate": ("aggregates", declaring.AGGREGATES[0], True),
        }
        kind, key, value = units[what]
        touch(database, Touch(("host", kind, key), value))
    assert result_of(applying.apply(Ledger(database), asked, foreseen))[0] == "changed"
    left = there(database)
    assert len(left) == (what != "child")
    assert ("host", "inventories", "VCPU") not in left
    assert providers_of(database).keys() >= {"host"}


def names_of(database: Database) -> dict[str, tuple[str, str | None]]:
    """Return the name of each provider, and that of its parent, by UUID."""
    there = providers_of(database).values()
    names = {each.uuid: each.name for each in there}
    return {each.uuid: (each.name, names.get(each.parent_uuid or "")) for each in there}


def hosts(*trees: Sequence[tuple[str, str]]) -> list[tuple[DeclaredProvider, ...]]:
    """Return trees of a root and its children, each with a UUID and a name."""
    return [
        tuple(
            DeclaredProvider(name, uuid, 0 if number else None)
            for number, (uuid, name) in enumerate(tree)
        )
        for tree in trees
    ]


def declared_names(
    trees: Iterable[Sequence[DeclaredProvider]],
) -> dict[str | None, tuple[str, str | None]]:
    return {
        part.uuid: (part.name, None if part.parent is None else tree[part.parent].name)
        for tree in trees
        for part in tree
    }


A, B, C, D = (f"{each * 8}-0000-4000-8000-000000000000" for each in "abcd")


@pytest.mark.parametrize("seed", range(4))
def test_any_file_comes_true_in_one_run(database: Database, seed: int) -> None:
    rng = random.Random(seed)
    uuids = [new_uuid() for _ in range(12)]
    names = [f"p{number}" for number in range(10)]
    for _ in range(6):
        chosen = list(zip(rng.sample(uuids, 8), rng.sample(names, 8), strict=True))
        cuts = sorted(rng.sample(range(1, 8), 3))
        bounds = zip([0, *cuts], [*cuts, 8], strict=True)
        trees = hosts(*(chosen[first:last] for first, last in bounds))
        asked = Declaration(trees, COMPLETE)
        assert {each.reason for each in apply(database, asked).plans} == {None}
        assert names_of(database) == declared_names(trees)
        assert not any(plan.writes for plan in foresee(database, asked).plans)


def test_a_child_without_a_uuid_moves_with_what_it_has(
    client: Client, database: Database
) -> None:
    gpu = {"name": "gpu", "inventories": {"CUSTOM_GPU": 2}}
    post(client, {"name": "a", "children": [gpu]}, {"name": "b"})
    [uuid] = [p.uuid for p in providers_of(database).values() if p.name == "gpu"]
    consumer = new_uuid()
    assert client.claim(consumer, {uuid: {"CUSTOM_GPU": 1}}).status == 204
    results = post(client, {"name": "a"}, {"name": "b", "children": [gpu]})
    assert [each["result"] for each in results] == ["unchanged", "changed"]
    assert names_of(database)[uuid] == ("gpu", "b")
    assert client.get(f"/allocations/{consumer}")["allocations"].keys() == {uuid}
    [entry] = client.get(f"/ledger/v1/history?provider={uuid}&type=provider.updated")[
        "history"
    ]
    parents = [entry[side]["parent"] for side in ("before", "after")]
    assert [names_of(database)[each][0] for each in parents] == ["a", "b"]


def test_what_belongs_together_is_done_together_or_not(
    client: Client, database: Database
) -> None:
    apply(database, Declaration(hosts([(A, "a")], [(B, "b")]), COMPLETE))
    before = names_of(database)
    exchanged = {"name": "a", "uuid": B, "traits": ["HW_CPU_NOWHERE"]}
    first, second = post(client, {"name": "b", "uuid": A}, exchanged)
    assert second["reason"].startswith("No such trait(s): HW_CPU_NOWHERE.")
    assert (first["result"], second["result"]) == ("refused", "refused")
    assert names_of(database) == before
    host = {A: {"VCPU": 1}}
    touch(database, Touch(("a", "inventories", "VCPU"), Inventory(8)))
    assert client.claim(new_uuid(), host).status == 204
    # The machine that is to be replaced is in use.
    replaced = ({"name": "a", "uuid": C}, {"name": "b", "uuid": B})
    results = post(client, *replaced, prune=True, complete=True)
    assert results[0]["reason"] == f"The name a is taken by resource provider {A}."
    assert names_of(database) == before


def plans_of(client: Client, *trees: Any, **terms: Any) -> list[str]:
    return [each["plan"] for each in post(client, *trees, dry_run=True, **terms)]


def test_only_what_was_shown_is_done(client: Client, database: Database) -> None:
    whole = {"prune": True, "complete": True}
    both = [host_with("inventories", "VCPU"), {"name": "other"}]
    post(client, *both)
    used, used_again = new_uuid(), new_uuid()
    host = host_uuid(database)
    assert client.claim(used, {host: {"VCPU": 1}}).status == 204
    # In use when it is planned, and free afterwards.
    planned = plans_of(client, {"name": "other"}, **whole)
    client.call("DELETE", f"/allocations/{used}")
    other, pruned = post(client, {"name": "other"}, planned=planned, **whole)
    assert (other["result"], pruned["result"]) == ("unchanged", "stale")
    assert "host" in providers_of(database)
    # A value that another program has changed meanwhile is not set back.
    more = {"name": "host", "inventories": {"VCPU": 16}}
    planned = plans_of(client, more, {"name": "new"})
    touch(database, Touch(("host", "inventories", "VCPU"), Inventory(5)))
    changed, created = post(client, more, {"name": "new"}, planned=planned)
    assert (changed["result"], created["result"]) == ("stale", "created")
    assert there(database)["host", "inventories", "VCPU"] == Inventory(5)
    # Planned anew, it is; and a claim in between does not matter.
    planned = plans_of(client, more)
    assert client.claim(used_again, {host: {"VCPU": 1}}).status == 204
    assert post(client, more, planned=planned)[0]["result"] == "changed"


def test_names_are_exchanged_only_if_both_are_as_they_were_shown(
    client: Client, database: Database
) -> None:
    apply(database, Declaration(hosts([(A, "a")], [(B, "b")]), COMPLETE))
    exchange = ({"name": "b", "uuid": A}, {"name": "a", "uuid": B, "traits": []})
    planned = plans_of(client, *exchange)
    touch(database, Touch(("b", "traits", "CUSTOM_NEW"), True))
    more = ({**exchange[0], "traits": ["CUSTOM_MORE"]}, exchange[1])
    results = post(client, *more, planned=planned)
    assert [each["result"] for each in results] == ["stale", "stale"]
    assert names_of(database) == {A: ("a", None), B: ("b", None)}


def test_owners_who_name_a_provider_otherwise_are_in_conflict(
    client: Client, database: Database
) -> None:
    uuid = new_uuid()
    ours = Declaration([(DeclaredProvider("host", uuid),)], Terms("fleet"))
    theirs = Declaration([(DeclaredProvider("gpus", uuid),)], Terms("gpu-team"))

    def conflicts(asked: Declaration) -> list[str | None]:
        [plan] = apply(database, asked).plans
        assert plan.result == "conflict"
        return [change.owner for change in plan.changes]

    apply(database, ours)
    assert conflicts(theirs) == ["fleet"]
    # Even if a person has given it that name.
    client.call("PUT", f"/resource_providers/{uuid}", {"name": "gpus"})
    assert conflicts(theirs) == ["fleet"]
    forced = dataclasses.replace(theirs, terms=Terms("gpu-team", force=True))
    assert result_of(apply(database, forced))[0] == "unchanged"
    assert conflicts(ours) == ["gpu-team"]


def test_what_is_declared_no_longer_and_has_changed_is_left_and_reported_once(
    client: Client, database: Database
) -> None:
    apply(database, one_host(8))
    touch(database, Touch(("host", "inventories", "VCPU"), Inventory(16)))
    child = {"name": "nic", "parent_provider_uuid": host_uuid(database)}
    client.call("POST", "/resource_providers", child)
    bare = Declaration([(DeclaredProvider("host"),)], Terms("fleet"))
    [plan] = apply(database, bare).plans
    assert plan.result == "unchanged"
    [drift] = plan.drift
    assert drift == Change("host/inventories/VCPU", Inventory(8), Inventory(16))
    assert providers_of(database)["host"].inventories["VCPU"].total == 16
    assert apply(database, bare).plans[0].drift == ()


def test_whole_numbers_are_amounts_also_with_a_point(
    client: Client, database: Database
) -> None:
    body = {"trees": [{"name": "host", "inventories": {"VCPU": 8.0}}]}
    assert client.call("POST", "/ledger/v1/apply", body).status == 200
    assert providers_of(database)["host"].inventories["VCPU"].total == 8


def test_what_was_renamed_and_moved_has_drifted(
    client: Client, database: Database
) -> None:
    parts = (
        DeclaredProvider("host"),
        DeclaredProvider("numa", None, 0),
        DeclaredProvider("gpu", None, 1),
    )
    apply(database, Declaration([parts], Terms("fleet")))
    host, gpu = (providers_of(database)[name].uuid for name in ("host", "gpu"))
    body = {"name": "card", "parent_provider_uuid": host}
    assert client.call("PUT", f"/resource_providers/{gpu}", body).status == 200
    [declared] = client.get("/ledger/v1/declared?drift=true")["declared"]
    assert [(each["path"], each["after"]) for each in declared["drift"]] == [
        ("card/name", "card"),
        ("card/parent", host),
    ]
    assert client.get("/ledger/v1/declared?drift=true&owner=gpu-team") == {
        "declared": []
    }


def test_names_that_the_database_does_not_distinguish(database: Database) -> None:
    terms = Terms("fleet")
    apply(database, Declaration([(DeclaredProvider("host"),)], terms))
    alike = [(DeclaredProvider("Host"),), (DeclaredProvider("other"),)]
    asked = Declaration(alike, terms)
    foreseen = [str(each.result) for each in foresee(database, asked).plans]
    done = [str(each.result) for each in apply(database, asked).plans]
    expected = "refused" if backends.KIND == "mysql" else "created"
    assert foreseen == done == [expected, "created"]


def test_what_the_database_cannot_store_prevents_its_tree_only(
    database: Database,
) -> None:
    trees = [(DeclaredProvider("good"),), (DeclaredProvider("bad\0name"),)]
    done = apply(database, Declaration(trees, Terms("fleet"))).plans
    assert str(done[0].result) == "created"
    if backends.KIND == "postgresql":
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
    inventory = providers_of(database)["host"].inventories["VCPU"]
    assert (inventory.used, inventory.total // 8) == (8, 250)


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
            totals = {s.total for p in (host, gpu) for s in p.inventories.values()}
            assert len(totals) == 1
            assert host.traits == gpu.traits == {f"CUSTOM_TURN_{totals.pop() % 2}"}
        drift = database.read(
            lambda connection: declarations.list_declared(connection, None, drift=True)
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


def test_without_the_table_for_names_hardware_is_declared(
    client: Client, database: Database
) -> None:
    with database.engine.begin() as connection:
        models.NOTES.drop(connection)
    try:
        assert client.call("POST", "/ledger/v1/apply", DECLARED).status == 200
        # Those of aggregates are for people: what is declared is the same without.
        aggregate = new_uuid()
        [tree] = DECLARED["trees"]
        grouped = {
            **DECLARED,
            "aggregates": {"rack-17": aggregate},
            "trees": [{**tree, "aggregates": [aggregate]}],
            "complete": True,
            "prune": True,
        }
        assert client.call("POST", "/ledger/v1/apply", grouped).status == 200
        [host] = client.get("/ledger/v1/fleet?fields=aggregates")["providers"]
        assert host["aggregates"] == [aggregate]
        named = {**DECLARED, "projects": {"web": "9f31"}}
        for answer in (
            client.call("POST", "/ledger/v1/apply", named),
            client.call("GET", "/ledger/v1/names"),
        ):
            assert (answer.status, answer.code) == (503, "placement.table_unusable")
            assert "table notes is missing: run placement-manage db" in answer.detail
    finally:
        with database.engine.begin() as connection:
            models.NOTES.create(connection)
    assert client.call("POST", "/ledger/v1/apply", named).status == 200
    assert client.get("/ledger/v1/names")["projects"] == {"9f31": "web"}


def _execute(database: Database, statement: sa.Update | sa.Delete) -> None:
    def work(connection: sa.Connection) -> None:
        connection.execute(statement)

    database.write(work)


@pytest.mark.parametrize("damage", ["{", "[]", '{"inventories": {"VCPU": {"a": 1}}}'])
def test_a_damaged_document_is_no_fault_of_the_service(
    client: Client, database: Database, damage: str
) -> None:
    names = {"aggregates": {"rack": new_uuid()}}
    post(client, host_with("traits", "CUSTOM_A"), **names)
    for table, paths in (
        (models.DECLARATIONS, ["/ledger/v1/declared"]),
        (models.NOTES, ["/ledger/v1/names"]),
    ):
        clear = sa.delete(table)
        update = sa.update(table).values(document=damage)
        _execute(database, update)
        body = {"trees": [{"name": "host"}], **names}
        answers = [client.call("GET", path) for path in paths]
        for answer in [*answers, client.call("POST", "/ledger/v1/apply", body)]:
            assert answer.status == 503, answer
            [error] = answer.document["errors"]
            assert error["code"] == "placement.table_unusable"
        _execute(database, clear)


def test_names_given_at_the_same_time_are_all_kept(database: Database) -> None:
    def name(owner: str, number: int) -> None:
        names = Names({}, {f"{owner}-{number}": f"project {owner}-{number}"})
        apply(database, Declaration([], Terms(owner), names=names))

    owners = [f"owner{number}" for number in range(6)]
    for owner in owners:
        at_once([partial(name, owner, number) for number in range(6)])
    kept = database.read(naming.list_names).projects
    each = [f"{owner}-{number}" for owner in owners for number in range(6)]
    assert kept == {identifier: f"project {identifier}" for identifier in each}


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


@pytest.mark.parametrize("parent", ["host", "host-gpu"])
def test_a_host_with_a_child_of_an_agent_is_not_removed(
    client: Client, database: Database, parent: str
) -> None:
    parts = [
        {"name": f"host-{each}", "inventories": {"VGPU": 1}} for each in ("gpu", "fpga")
    ]
    declared = {"trees": [{"name": "host", "children": parts}]}
    assert client.call("POST", "/ledger/v1/apply", declared).status == 200
    known = providers_of(database)[parent].uuid
    nic = {"name": "nic", "uuid": new_uuid(), "parent_provider_uuid": known}
    assert client.call("POST", "/resource_providers", nic).status == 200
    complete = {"trees": [], "prune": True, "complete": True}

    def prune() -> list[str]:
        answer = client.call("POST", "/ledger/v1/apply", complete).document
        return [tree["result"] for tree in answer["trees"]]

    assert prune() == ["changed"]
    left = providers_of(database)
    assert left.keys() == {"host", parent, "nic"}
    assert not any(each.inventories for each in left.values())
    # What stays is still this owner's, and goes after the child.
    path = f"/resource_providers/{nic['uuid']}"
    assert client.call("DELETE", path).status == 204
    assert prune() == ["removed"]
    assert providers_of(database) == {}


def test_a_host_is_pruned_although_a_child_is_shared_with_another_owner(
    client: Client, database: Database
) -> None:
    gpu: Any = {"name": "host-gpu", "traits": ["CUSTOM_A"]}
    host = {"name": "host", "inventories": {"VGPU": 1}, "children": [gpu]}
    assert client.call("POST", "/ledger/v1/apply", {"trees": [host]}).status == 200
    gpu = {"name": "host-gpu", "inventories": {"VGPU": 2}}
    shared = {"owner": "other", "trees": [{"name": "host", "children": [gpu]}]}
    assert client.call("POST", "/ledger/v1/apply", shared).status == 200
    complete = {"trees": [], "prune": True, "complete": True}
    foreseen = client.call("POST", "/ledger/v1/apply", {**complete, "dry_run": True})
    done = client.call("POST", "/ledger/v1/apply", complete)
    assert done == foreseen
    [tree] = done.document["trees"]
    assert (tree["name"], tree["uuid"]) == ("host", host_uuid(database))
    assert tree["result"] == "changed"
    left = providers_of(database)
    assert not left["host"].inventories
    assert not left["host-gpu"].traits
    assert set(left["host-gpu"].inventories) == {"VGPU"}


@pytest.mark.damage
def test_what_another_program_deleted_has_drifted(
    client: Client, database: Database
) -> None:
    apply(database, one_host())
    uuid = host_uuid(database)
    with database.engine.begin() as connection:
        connection.execute(sa.delete(models.Inventory))
        connection.execute(
            sa.update(models.ResourceProvider).values(root_provider_id=None)
        )
        connection.execute(sa.delete(models.ResourceProvider))
    [declared] = client.get("/ledger/v1/declared?drift=true")["declared"]
    [drift] = declared["drift"]
    assert (declared["uuid"], drift["path"], drift["after"]) == (uuid, "host", None)
    terms = Terms("fleet", prune=True, complete=True)
    assert list(apply(database, Declaration([], terms)).plans) == []
    assert result_of(apply(database, one_host())) == ("created", None)


def test_ratios_that_a_database_rounds_are_no_change(database: Database) -> None:
    part = DeclaredProvider(
        "host", inventories={"VCPU": Inventory(8, allocation_ratio=1.23456789)}
    )
    asked = Declaration([(part,)], Terms("fleet"))
    apply(database, asked)
    assert not apply(database, asked).plans[0].writes
