"""Requests for placements that arrive together, and are written in one transaction."""

import functools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_db import exception

from placement import app, errors, operation, placing
from placement.db import models
from placement_foundation.database import storage
from placement_foundation.database.storage import Database
from placement_foundation.gathering import Gathering
from tests import backends, settings
from tests.client import Answer, Client, new_uuid

PATIENCE = 30


@pytest.fixture
def gathering(monkeypatch: pytest.MonkeyPatch) -> Gathering[Any, Any]:
    """Give the place where the requests of the service meet."""
    place: Gathering[Any, Any] = Gathering(patience=PATIENCE)
    monkeypatch.setattr(operation, "Gathering", lambda: place)
    return place


@pytest.fixture
def client(gathering: Gathering[Any, Any], database: Database) -> Client:
    return Client(app.build(settings.make_config(), database))


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give how many requests each transaction of several has placed."""
    run, numbers = placing._run_together, list[int]()

    def watch(asked: Any) -> Any:
        outcomes = run(asked)
        numbers.append(len([each for each in outcomes if each]))
        return outcomes

    monkeypatch.setattr(placing, "_run_together", watch)
    return numbers


def uuids(number: int) -> list[str]:
    return [new_uuid() for _ in range(number)]


def together(
    gathering: Gathering[Any, Any], calls: Sequence[Callable[[], Answer]]
) -> list[Answer]:
    """Make calls that arrive while another group is served, and so are the next."""
    held, release = threading.Event(), threading.Event()

    def hold(items: Any) -> list[None]:
        held.set()
        release.wait(PATIENCE)
        return [None for _ in items]

    with ThreadPoolExecutor(len(calls) + 1) as pool:
        pool.submit(gathering.do, None, hold)
        assert held.wait(PATIENCE)
        answers = [pool.submit(call) for call in calls]
        wait_for(lambda: len(gathering._waiting) == len(calls))
        release.set()
        return [answer.result() for answer in answers]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def warm_up(client: Client) -> None:
    """Let the service keep what there is: only then are requests joined."""
    client.get("/resource_providers")


def statuses(answers: list[Answer]) -> list[int]:
    return [answer.status for answer in answers]


def test_each_gets_its_own_answer(
    client: Client, gathering: Gathering[Any, Any]
) -> None:
    providers = {client.make_provider(VCPU=2) for _ in range(3)}
    warm_up(client)
    wanted = [uuids(1), uuids(2), uuids(1)]
    calls = [functools.partial(client.place, each) for each in wanted]
    answers = together(gathering, calls)
    assert statuses(answers) == [201] * 3
    for consumers, answer in zip(wanted, answers, strict=True):
        placements = answer.document["placements"]
        assert [each["consumer"] for each in placements] == consumers
        for each in placements:
            assert each["host"] in providers
            assert each["consumer_generation"] == 1
            assert not each["existed"]
            stored = client.get(f"/allocations/{each['consumer']}")["allocations"]
            assert {uuid: found["resources"] for uuid, found in stored.items()} == {
                uuid: found["resources"] for uuid, found in each["allocations"].items()
            }


def test_together_they_take_no_more_than_there_is(
    client: Client, gathering: Gathering[Any, Any]
) -> None:
    provider = client.make_provider(VCPU=5)
    warm_up(client)
    calls = [functools.partial(client.place, uuids(2)) for _ in range(4)]
    answers = together(gathering, calls)
    assert sorted(statuses(answers)) == [201, 201, 409, 409]
    refused = [answer for answer in answers if answer.status == 409]
    assert {answer.code for answer in refused} == {"placement.no_room"}
    assert client.usages(provider) == {"VCPU": 4}


def test_different_wishes_see_what_the_others_take(
    client: Client, gathering: Gathering[Any, Any]
) -> None:
    provider = client.make_provider(VCPU=8, MEMORY_MB=4)
    client.make_provider(DISK_GB=1)
    warm_up(client)
    queries = [
        "resources=VCPU:5",
        "resources=VCPU:3,MEMORY_MB:1",
        "resources=MEMORY_MB:3",
        "resources=DISK_GB:1",
    ]
    calls = [functools.partial(client.place, uuids(1), query) for query in queries]
    assert statuses(together(gathering, calls)) == [201] * 4
    assert client.usages(provider) == {"VCPU": 8, "MEMORY_MB": 4}


def test_what_is_wrong_with_one_harms_no_other(
    client: Client, gathering: Gathering[Any, Any], joined: list[int]
) -> None:
    provider = client.make_provider(VCPU=8)
    warm_up(client)
    existing = uuids(1)
    assert client.place(existing).status == 201
    calls = [
        functools.partial(client.place, uuids(1)),
        functools.partial(client.place, uuids(1), "resources=CUSTOM_NOWHERE:1"),
        functools.partial(client.place, uuids(1), "resources=VCPU:9"),
        functools.partial(client.place, existing),
        functools.partial(client.place, existing, user_id="somebody-else"),
        functools.partial(client.place, uuids(1)),
    ]
    answers = together(gathering, calls)
    assert joined == [3]
    assert statuses(answers) == [201, 400, 409, 200, 409, 201]
    assert "CUSTOM_NOWHERE" in answers[1].detail
    assert answers[2].code == "placement.no_room"
    assert answers[4].code == "placement.concurrent_update"
    assert client.usages(provider) == {"VCPU": 3}


def test_what_is_left_behind_of_a_consumer_is_replaced(
    client: Client, gathering: Gathering[Any, Any], database: Database
) -> None:
    provider = client.make_provider(VCPU=8)
    warm_up(client)
    assert client.place(uuids(1)).status == 201
    again, other = uuids(1), uuids(1)

    def leave_behind(connection: sa.Connection) -> None:
        # As another service does that is killed at the wrong moment.
        row = models.Allocation
        known = connection.execute(
            sa.select(row.resource_provider_id, row.resource_class_id)
        ).one()
        values = dict(known._mapping) | {"consumer_id": again[0], "used": 5}
        connection.execute(sa.insert(row), values)

    database.write(leave_behind)
    calls = [functools.partial(client.place, each) for each in (again, other)]
    assert statuses(together(gathering, calls)) == [201, 201]
    assert client.usages(provider) == {"VCPU": 3}


def test_what_cannot_be_looked_up_is_refused_to_its_own_request_only(
    client: Client, gathering: Gathering[Any, Any]
) -> None:
    client.make_provider(VCPU=8)
    warm_up(client)
    calls = [
        functools.partial(client.place, uuids(1)),
        functools.partial(client.place, uuids(1), project_id="team\0blue"),
        functools.partial(client.place, uuids(1)),
    ]
    assert statuses(together(gathering, calls)) == [201, 400, 201]


@pytest.mark.skipif(backends.KIND == "sqlite", reason="it has one writer at a time")
def test_who_waits_for_a_lock_holds_up_others_for_one_attempt_at_most(
    client: Client,
    gathering: Gathering[Any, Any],
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    locked, free = client.make_provider(VCPU=8), client.make_provider(VCPU=8)
    warm_up(client)
    monkeypatch.setattr(storage, "PATIENCE", 20)
    lock = sa.select(models.ResourceProvider.id).with_for_update()
    calls = [
        functools.partial(client.place, uuids(1), f"resources=VCPU:1&in_tree={each}")
        for each in (locked, free)
    ]
    released = threading.Event()
    with database.engine.connect() as connection:
        connection.execute(lock.where(models.ResourceProvider.uuid == locked)).all()

        def give_up_the_lock() -> None:
            # The other one was placed while this one was locked.
            wait_for(lambda: client.usages(free) == {"VCPU": 1})
            connection.rollback()
            released.set()

        thread = threading.Thread(target=give_up_the_lock)
        thread.start()
        answers = together(gathering, calls)
        thread.join()
    assert released.is_set()
    assert statuses(answers)[1] == 201
    assert statuses(answers)[0] in (201, 503)


def test_one_consumer_of_two_requests_is_placed_once(
    client: Client, gathering: Gathering[Any, Any]
) -> None:
    provider = client.make_provider(VCPU=8)
    warm_up(client)
    same = uuids(1)
    calls = [functools.partial(client.place, same) for _ in range(3)]
    answers = together(gathering, calls)
    assert sorted(statuses(answers)) == [200, 200, 201]
    assert client.usages(provider) == {"VCPU": 1}


def test_the_journal_says_which_request_placed_whom(
    client: Client, gathering: Gathering[Any, Any], joined: list[int]
) -> None:
    client.make_provider(VCPU=8)
    warm_up(client)
    # The user of each is who asks.
    asking = {f"user-{number}": uuids(1)[0] for number in range(4)}
    calls = [
        functools.partial(client.known_as(user).place, [consumer])
        for user, consumer in asking.items()
    ]
    assert statuses(together(gathering, calls)) == [201] * 4
    assert joined == [4]
    for user, consumer in asking.items():
        query = f"since=oldest&consumer={consumer}"
        [found] = client.get(f"/ledger/v1/changes?{query}")["changes"]
        assert found["type"] == "allocations.changed"
        assert found["user_id"] == user
        assert found["request"] == "POST /ledger/v1/placements"


@pytest.mark.parametrize("is_away", [False, True])
def test_a_lost_race_is_tried_again_by_each_and_an_outage_by_none(
    client: Client,
    gathering: Gathering[Any, Any],
    monkeypatch: pytest.MonkeyPatch,
    is_away: bool,
) -> None:
    provider = client.make_provider(VCPU=8)
    warm_up(client)

    def fail(asked: Any) -> None:
        if not is_away:
            raise errors.ConcurrentUpdate("Please retry.")
        lost = exception.DBConnectionError()
        raise errors.DatabaseUnavailable("Please retry.") from lost

    monkeypatch.setattr(placing, "_run_together", fail)
    calls = [functools.partial(client.place, uuids(1)) for _ in range(3)]
    answers = together(gathering, calls)
    assert statuses(answers) == [503 if is_away else 201] * 3
    assert client.usages(provider) == {"VCPU": 0 if is_away else 3}


def test_a_host_that_others_fill_meanwhile_is_left_for_another(
    client: Client, gathering: Gathering[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = client.make_provider(VCPU=3)
    warm_up(client)
    choose, others = placing._choose, list[str]()

    def choose_slowly(*args: Any) -> Any:
        parts = choose(*args)
        client.claim(new_uuid(), {full: {"VCPU": 2}})
        others.append(client.make_provider(VCPU=3))
        return parts

    monkeypatch.setattr(placing, "_choose", choose_slowly)
    calls = [functools.partial(client.place, uuids(1)) for _ in range(3)]
    assert statuses(together(gathering, calls)) == [201] * 3
    used = [client.usages(each)["VCPU"] for each in (full, *others)]
    assert sum(used) == 5
    assert used[0] <= 3
