"""Placements on a database: what is written, and what is not."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeAlias

import pytest

from placement import errors, placing
from placement.schemas import placing as wire
from placement_foundation.database import storage
from placement_foundation.database.storage import Database
from placement_foundation.http import query_string, thread_limit
from tests.client import Answer, Client, new_uuid
from tests.threads import at_once

Meanwhile: TypeAlias = Callable[[Callable[[], object]], None]


def uuids(number: int) -> list[str]:
    return [new_uuid() for _ in range(number)]


def hosts(answer: Answer) -> Counter[str]:
    assert answer.status in (200, 201), answer
    return Counter(each["host"] for each in answer.document["placements"])


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Give a function that lets something happen once, after the first choice."""
    choose = placing._choose

    def set_up(happen: Callable[[], object]) -> None:
        waiting = [happen]

        def choose_slowly(*args: Any) -> Any:
            chosen = choose(*args)
            if waiting:
                waiting.pop()()
            return chosen

        monkeypatch.setattr(placing, "_choose", choose_slowly)

    return set_up


def test_a_provider_that_turns_out_fuller_is_left_for_another(
    client: Client, meanwhile: Meanwhile
) -> None:
    provider = client.make_provider(VCPU=2)
    others: list[str] = []

    def happen() -> None:
        client.claim(new_uuid(), {provider: {"VCPU": 1}})
        others.append(client.make_provider(VCPU=2))

    meanwhile(happen)
    assert hosts(client.place(uuids(2))) == {provider: 1, others[0]: 1}


def test_a_provider_that_is_deleted_meanwhile_is_left_for_another(
    client: Client, meanwhile: Meanwhile
) -> None:
    gone = client.make_provider(VCPU=9)
    left: list[str] = []

    def happen() -> None:
        assert client.call("DELETE", f"/resource_providers/{gone}").status == 204
        left.append(client.make_provider(VCPU=9))

    meanwhile(happen)
    assert hosts(client.place(uuids(3))) == {left[0]: 3}


def test_a_provider_that_is_made_again_meanwhile_is_not_the_one_that_was_chosen(
    client: Client, meanwhile: Meanwhile
) -> None:
    again = client.make_provider(VCPU=2)

    def happen() -> None:
        assert client.call("DELETE", f"/resource_providers/{again}").status == 204
        # With the same generation, and, on SQLite, the same id.
        client.make_provider_again(again, VCPU=1)

    meanwhile(happen)
    refused = client.place(uuids(2))
    assert (refused.status, refused.code) == (409, "placement.no_room")
    assert client.usages(again) == {"VCPU": 0}


def test_a_consumer_that_goes_meanwhile_does_no_harm(
    client: Client, meanwhile: Meanwhile
) -> None:
    provider, gone = client.make_provider(VCPU=2), new_uuid()
    client.claim(gone, {provider: {"VCPU": 1}})
    meanwhile(lambda: client.call("DELETE", f"/allocations/{gone}"))
    assert hosts(client.place(uuids(1))) == {provider: 1}
    assert client.usages(provider) == {"VCPU": 1}


def test_room_that_was_taken_is_missing(client: Client, meanwhile: Meanwhile) -> None:
    provider = client.make_provider(VCPU=2)
    meanwhile(lambda: client.claim(new_uuid(), {provider: {"VCPU": 1}}))
    refused = client.place(uuids(2))
    assert (refused.status, refused.code) == (409, "placement.no_room")
    assert "2 of 2 consumers must be placed, and 1 could be." in refused.detail
    assert client.usages(provider) == {"VCPU": 1}


def test_a_consumer_that_another_request_places_meanwhile_has_existed(
    client: Client, meanwhile: Meanwhile
) -> None:
    client.make_provider(VCPU=9)
    consumers = uuids(2)
    meanwhile(lambda: client.place(consumers[:1]))
    answer = client.place(consumers)
    assert [each["existed"] for each in answer.document["placements"]] == [True, False]


@pytest.fixture
def returner(client: Client, meanwhile: Meanwhile) -> tuple[str, str, str]:
    """Let a consumer go meanwhile, and come back on another host.

    Return its UUID, and the hosts. As a new one it has the generation that it had.
    """
    first, second = client.make_provider(VCPU=9), client.make_provider(VCPU=9)
    uuid = new_uuid()
    client.claim(uuid, {first: {"VCPU": 1}})

    def happen() -> None:
        assert client.call("DELETE", f"/allocations/{uuid}").status == 204
        client.claim(uuid, {second: {"VCPU": 2}})

    meanwhile(happen)
    return uuid, first, second


def test_a_consumer_that_comes_back_on_another_host_is_kept_away_from(
    client: Client, returner: tuple[str, str, str]
) -> None:
    one, first, _ = returner
    spread = {"per": "host", "at_most": 1, "with": [one]}
    assert hosts(client.place(uuids(1), spread=spread)) == {first: 1}


def test_a_consumer_that_comes_back_is_reported_as_it_is_now(
    client: Client, returner: tuple[str, str, str]
) -> None:
    one, _, second = returner
    answer = client.place([one, new_uuid()])
    told = answer.document["placements"][0]
    assert (told["host"], told["allocations"]) == (
        second,
        {second: {"resources": {"VCPU": 2}}},
    )


def lose_races(
    database: Database, monkeypatch: pytest.MonkeyPatch, times: int
) -> list[str]:
    """Let transactions lose race after race, as many of each kind as said."""
    lost: list[str] = []
    for kind in ("read", "write"):
        run = getattr(database, kind)

        def lose(work: Any, kind: str = kind, run: Any = run, **options: int) -> Any:
            if lost.count(kind) < times:
                lost.append(kind)
                raise errors.ConcurrentUpdate("Other requests kept changing it.")
            return run(work, **options)

        monkeypatch.setattr(database, kind, lose)
    return lost


def test_whoever_loses_races_is_placed_all_the_same(
    client: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.make_provider(VCPU=9)
    consumers = uuids(2)
    with monkeypatch.context() as patch:
        lost = lose_races(database, patch, 2)
        answer = client.place(consumers)
    assert answer.status == 201
    assert sorted(lost) == ["read"] * 2 + ["write"] * 2
    assert client.get(f"/allocations/{consumers[0]}")["allocations"]


def test_whoever_loses_all_races_may_try_again_and_hears_nothing_of_room(
    client: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.make_provider(VCPU=9)
    consumers = uuids(2)
    with monkeypatch.context() as patch:
        patch.setattr(storage, "PATIENCE", 0.05)
        lose_races(database, patch, 1_000_000)
        answer = client.place(consumers)
    assert answer.status == 503
    assert "retry" in answer.detail
    assert not client.get(f"/allocations/{consumers[0]}")["allocations"]


def test_those_beside_are_counted_as_they_are_committed(client: Client) -> None:
    first, second = client.make_provider(VCPU=9), client.make_provider(VCPU=9)
    one, other = new_uuid(), new_uuid()
    spread = {"per": "host", "at_most": 1, "with": [one]}
    assert client.place([one]).status == 201
    answer = client.place([other], spread=spread)
    taken = {next(iter(client.get(f"/allocations/{one}")["allocations"]))}
    assert set(hosts(answer)) == {first, second} - taken
    assert client.place(uuids(2), spread=spread).status == 409


def test_placers_who_avoid_each_other_do(client: Client) -> None:
    for _ in range(3):
        client.make_provider(VCPU=9)
    consumers = uuids(6)

    def one(consumer: str) -> Answer:
        beside = [each for each in consumers if each != consumer]
        spread = {"per": "host", "at_most": 2, "with": beside}
        return client.place([consumer], spread=spread)

    answers = at_once([partial(one, each) for each in consumers])
    assert [answer.status for answer in answers] == [201] * 6
    found = sum((hosts(answer) for answer in answers), Counter())
    assert sorted(found.values()) == [2, 2, 2]


def test_placers_side_by_side_get_all_there_is(client: Client) -> None:
    providers = [client.make_provider(VCPU=5) for _ in range(8)]

    answers = at_once([lambda: client.place(uuids(5))] * 8)
    assert [answer.status for answer in answers] == [201] * 8
    assert [client.usages(each)["VCPU"] for each in providers] == [5] * 8
    assert client.place(uuids(1)).code == "placement.no_room"


def test_only_some_threads_find_out_why_there_is_no_room(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_limit, "_own_count", 8)
    client.make_provider(VCPU=1)
    explaining, may_end = threading.Semaphore(0), threading.Event()
    find_reasons = placing._explain

    def explain(asked: Any) -> Any:
        explaining.release()
        assert may_end.wait(60)
        return find_reasons(asked)

    monkeypatch.setattr(placing, "_explain", explain)

    def refused() -> Answer:
        return client.place(uuids(1), "resources=VCPU:2")

    with ThreadPoolExecutor(2) as pool:
        first = [pool.submit(refused) for _ in range(2)]
        assert all(explaining.acquire(timeout=60) for _ in first)
        last = refused()
        may_end.set()
        told = [each.result() for each in first]
    assert {each.code for each in (last, *told)} == {"placement.no_room"}
    assert not explaining.acquire(blocking=False)
    has_told = ["explanation" in each.document for each in (last, *told)]
    assert has_told == [False, True, True]


@pytest.mark.parametrize(
    ("consumers", "more", "is_heavy"),
    [
        (100, {}, False),
        (101, {}, True),
        (10, {"together": "host"}, False),
        (11, {"together": "host"}, True),
    ],
)
def test_which_placements_count_as_heavy(
    consumers: int, more: dict[str, Any], is_heavy: bool
) -> None:
    assert wire.is_heavy(None, {"consumers": uuids(consumers), **more}) is is_heavy


@pytest.mark.parametrize("path", ["placements", "what-if"])
def test_a_query_in_a_body_is_no_longer_than_one_in_an_address(
    client: Client, path: str
) -> None:
    query = "resources=VCPU:1&required=" + "A" * query_string.LONGEST
    if path == "placements":
        answer = client.place(uuids(1), query)
    else:
        body = {"query": query, "ask": "capacity"}
        answer = client.call("POST", "/ledger/v1/what-if", body)
    assert answer.status == 400
    assert "query" in answer.detail
    assert "too long" in answer.detail
    assert len(answer.detail) < 1000
