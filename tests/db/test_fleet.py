"""The fleet, compared with the calls of the Placement API about each provider."""

import errno
import gzip
import json
import tempfile
import tracemalloc
from concurrent import futures
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
import webob

from benchmarks import cloud
from placement import app
from placement.db import models
from placement.forest import loading
from placement.objects import holding
from placement.questions import fleet
from placement.schemas import fleet as wire
from placement_foundation.database.storage import Database
from tests import settings
from tests.client import Client, new_uuid

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

EVERYTHING = "generation,parent,inventories,usages,traits,aggregates,allocations"


def ask(client: Client, **headers: str) -> webob.Response:
    return client.send("GET", f"/ledger/v1/fleet?fields={EVERYTHING}", **headers)


def as_told_elsewhere(client: Client, listed: Any) -> dict[str, Any]:
    """Return the results of the calls about one provider, in the form of the fleet."""
    here = f"/resource_providers/{listed['uuid']}"
    inventories = client.get(f"{here}/inventories")["inventories"]
    allocations = client.get(f"{here}/allocations")["allocations"]
    return {
        "uuid": listed["uuid"],
        "name": listed["name"],
        "generation": listed["generation"],
        "parent_provider_uuid": listed["parent_provider_uuid"],
        "root_provider_uuid": listed["root_provider_uuid"],
        "inventories": inventories,
        "usages": client.usages(listed["uuid"]),
        "traits": sorted(client.get(f"{here}/traits")["traits"]),
        "aggregates": sorted(client.get(f"{here}/aggregates")["aggregates"]),
        "allocations": {
            consumer: {"resources": held["resources"]}
            for consumer, held in allocations.items()
        },
    }


@pytest.mark.parametrize("kind", cloud.KINDS)
def test_it_agrees_with_the_calls_about_each_provider(
    kind: str, client: Client, database: Database
) -> None:
    cloud.plant(database, cloud.KINDS[kind](3))
    listed = client.get("/resource_providers")["resource_providers"]
    told = client.get(f"/ledger/v1/fleet?fields={EVERYTHING}")["providers"]
    assert len(told) == len(listed)
    by_uuid = {
        each["uuid"]: {**each, "traits": sorted(each["traits"])} for each in told
    }
    for each in listed:
        assert by_uuid[each["uuid"]] == as_told_elsewhere(client, each)


def test_inventories_are_shown_to_the_last_digit(client: Client) -> None:
    provider = client.make_provider(VCPU=8)
    body = {
        "resource_provider_generation": 1,
        "inventories": {
            "VCPU": {"total": 9, "reserved": 2, "allocation_ratio": 0.29},
            "DISK_GB": {"total": 100, "min_unit": 10, "max_unit": 50, "step_size": 10},
        },
    }
    here = f"/resource_providers/{provider}/inventories"
    assert client.call("PUT", here, body).status == 200
    [told] = client.get("/ledger/v1/fleet?fields=inventories")["providers"]
    assert told["inventories"] == client.get(here)["inventories"]
    assert told["inventories"]["VCPU"]["allocation_ratio"] == 0.29


def test_parents_come_first_even_if_they_are_younger(client: Client) -> None:
    root, child, late = new_uuid(), new_uuid(), new_uuid()
    for uuid, parent in ((child, None), (late, None), (root, None)):
        body = {"uuid": uuid, "name": uuid, "parent_provider_uuid": parent}
        assert client.call("POST", "/resource_providers", body).status == 200
    for uuid, parent in ((late, root), (child, late)):
        body = {"name": uuid, "parent_provider_uuid": parent}
        path = f"/resource_providers/{uuid}"
        assert client.call("PUT", path, body).status == 200
    told = client.get("/ledger/v1/fleet?fields=")["providers"]
    assert [each["uuid"] for each in told] == [root, late, child]
    some = client.get(f"/ledger/v1/fleet?fields=parent&uuid={child}")["providers"]
    assert some == [
        {
            "uuid": child,
            "name": child,
            "parent_provider_uuid": late,
            "root_provider_uuid": root,
        }
    ]


@pytest.mark.parametrize("most", [0, 1, 10_000])
@pytest.mark.parametrize("kind", cloud.KINDS)
def test_repeats_are_the_numbers_of_their_values(
    kind: str,
    most: int,
    client: Client,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "MOST_NUMBERED", most)
    cloud.plant(database, cloud.KINDS[kind](9))
    question = f"/ledger/v1/fleet?fields={EVERYTHING}"
    numbered = client.get(f"{question}&repeats=number")["providers"]
    values: dict[str, list[Any]] = {"inventories": [], "traits": [], "aggregates": []}
    numbers = 0
    for told in numbered:
        for name, known in values.items():
            if isinstance(told[name], int):
                numbers += 1
                told[name] = known[told[name]]
            else:
                known.append(told[name])
    assert numbered == client.get(question)["providers"]
    assert bool(numbers) == bool(most)


@pytest.mark.damage
@pytest.mark.parametrize("chunk", [2, 1_000])
@pytest.mark.parametrize("kind", ["flat", "shared", "nested", "wide"])
def test_consumers_are_counted_once_in_each_tree(
    kind: str,
    chunk: int,
    client: Client,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud.plant(database, cloud.KINDS[kind](3))
    held = models.Allocation.consumer_id
    with database.engine.begin() as connection:
        ids = connection.execute(sa.select(held).distinct().order_by(held)).scalars()
        first, *others = ids
        same = held.in_(others[::2])
        connection.execute(
            sa.update(models.Allocation).where(same).values(consumer_id=first)
        )
    consumers: dict[str, set[str]] = {}
    listed = client.get("/ledger/v1/fleet?fields=parent,allocations")["providers"]
    for each in listed:
        consumers.setdefault(each["root_provider_uuid"], set()).update(
            each["allocations"]
        )
    expected = {
        each["uuid"]: len(consumers[each["root_provider_uuid"]]) for each in listed
    }
    assert max(expected.values()) > 1
    monkeypatch.setattr("placement_foundation.database.storage.CHUNK", chunk)
    question = "/ledger/v1/fleet?fields=consumer_count"
    for filters in ("", "&resources=VCPU:1"):
        found = client.get(question + filters)["providers"]
        assert found
        for each in found:
            assert each["tree_consumers"] == expected[each["uuid"]]


def test_the_lines_are_the_providers(client: Client, database: Database) -> None:
    cloud.plant(database, cloud.nested(30))
    document = ask(client)
    lines = ask(client, accept="application/x-ndjson")
    assert lines.content_type == "application/x-ndjson"
    *providers, last = [json.loads(line) for line in lines.body.splitlines()]
    assert providers == document.json["providers"]
    assert last == {"cursor": document.json["cursor"]}
    assert len(providers) == 270


@pytest.mark.parametrize("media_type", ["application/json", "application/x-ndjson"])
def test_it_is_compressed_for_clients_that_accept_it(
    client: Client, database: Database, media_type: str
) -> None:
    cloud.plant(database, cloud.flat(3))
    plain = ask(client, accept=media_type, accept_encoding="identity")
    packed = ask(client, accept=media_type, accept_encoding="gzip, deflate")
    assert plain.content_encoding is None
    assert packed.content_encoding == "gzip"
    assert len(packed.body) < len(plain.body) / 3
    unpacked = gzip.decompress(packed.body)
    if media_type == "application/x-ndjson":
        assert unpacked == plain.body
    else:
        assert json.loads(unpacked)["providers"] == plain.json["providers"]


@pytest.mark.damage
def test_a_consumer_without_a_record_does_no_harm(
    client: Client, database: Database
) -> None:
    provider, typeless, stray = client.make_provider(VCPU=8), new_uuid(), new_uuid()
    for consumer in (typeless, stray):
        assert client.claim(consumer, {provider: {"VCPU": 1}}).status == 204
    with database.engine.begin() as connection:
        table = models.Consumer
        connection.execute(sa.delete(table).where(table.uuid == stray))
        bare = {"consumer_type_id": None, "created_at": None}
        connection.execute(sa.update(table).values(**bare))
    [told] = client.get("/ledger/v1/fleet?fields=consumers")["providers"]
    assert told["allocations"][stray] == {"resources": {"VCPU": 1}}
    assert told["allocations"][typeless] == {
        "resources": {"VCPU": 1},
        "project_id": "team-blue",
        "user_id": "robot-7",
        "consumer_type": None,
        "created_at": None,
    }


@pytest.mark.parametrize("media_type", ["application/json", "application/x-ndjson"])
def test_an_answer_needs_no_more_memory_for_more_providers(
    application: "WSGIApplication", database: Database, media_type: str
) -> None:
    cloud.plant(database, cloud.flat(900))

    def measure() -> int:
        body = ask_slowly(application, media_type)
        size = sum(map(len, body))
        body.close()
        return size

    # The first run fills caches that are kept for good; they do not count here.
    assert measure() > 1_800_000
    tracemalloc.start()
    assert measure() > 1_800_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_500_000


def test_what_is_written_meanwhile_is_not_seen(
    client: Client, database: Database
) -> None:
    last, consumer = client.make_provider(VCPU=8), new_uuid()

    def look(connection: sa.Connection) -> list[fleet.Member]:
        grown = loading.load(connection)
        assert client.claim(consumer, {last: {"VCPU": 1}}).status == 204
        holdings = holding.read(connection, grown.vocabulary.classes)
        return list(fleet.list_members(grown, None, holdings))

    [member] = database.read(look)
    assert member.provider.inventories["VCPU"].used == 0
    assert member.holdings == ()
    assert client.usages(last)["VCPU"] == 1


def ask_slowly(application: "WSGIApplication", media_type: str) -> Any:
    """Return the body of a reply that nobody has read yet."""
    request = webob.Request.blank(f"/ledger/v1/fleet?fields={EVERYTHING}")
    request.headers["x-auth-token"] = "admin"
    request.headers["accept"] = media_type
    status, headers, body = request.call_application(application)
    assert status == "200 OK"
    assert int(dict(headers)["Content-Length"]) > 0
    return body


def test_slow_readers_hold_up_no_claims(database: Database) -> None:
    options = {("placement", "max_heavy_requests"): 40}
    application = app.build(settings.make_config(options), database)
    cloud.plant(database, cloud.flat(50))
    host = Client(application).make_provider(VCPU=1000)
    pool: Any = database.engine.pool
    slow = [ask_slowly(application, "application/x-ndjson") for _ in range(40)]

    def claim(number: int) -> int:
        return Client(application).claim(new_uuid(), {host: {"VCPU": 1}}).status

    with futures.ThreadPoolExecutor(4) as threads:
        assert set(threads.map(claim, range(40))) == {204}
    assert pool.checkedout() == 0
    bodies = {b"".join(body) for body in slow}
    for body in slow:
        body.close()
    # Each is of the moment of its request.
    assert len(bodies) == 1
    assert Client(application).usages(host)["VCPU"] == 40


def test_a_full_disk_is_no_fault_of_the_client(
    client: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.plant(database, cloud.flat(300))

    def fail(*unused: object, **unused_too: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    answer = client.call("GET", f"/ledger/v1/fleet?fields={EVERYTHING}")
    assert (answer.status, answer.code) == (503, "placement.busy")
    pool: Any = database.engine.pool
    assert pool.checkedout() == 0
