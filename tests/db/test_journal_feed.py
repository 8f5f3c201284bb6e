"""Whoever follows the feed misses nothing, or is told so."""

import datetime
import json
import random
import re
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
import webob

from placement import app
from placement.db import models
from placement.model.journal import render_time
from placement.objects import clock
from placement.objects.journal import filing, reading, tidying
from placement.objects.journal.keeping import Keeper
from placement_foundation.database.storage import Database
from tests import backends, settings
from tests.client import Client, new_uuid, wants
from tests.instances import NOTICED_AFTER, Backup, Instances
from tests.property.foreign import ForeignWriter

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

CHANGES = "/ledger/v1/changes"
FREE = "/allocation_candidates?resources=VCPU:1"
TURNS = 12


@pytest.fixture
def provider(client: Client) -> str:
    return client.make_provider(VCPU=1000)


def now(client: Client) -> str:
    return str(client.get(f"{CHANGES}?since=now")["cursor"])


def pages(client: Client, cursor: str, query: str = "") -> Iterator[Any]:
    """Give pages from a cursor to the end."""
    more = True
    while more:
        page = client.get(f"{CHANGES}?since={cursor}{query}")
        yield page
        cursor, more = page["cursor"], page["more"]


def follow(client: Client, cursor: str, query: str = "") -> list[Any]:
    return [each for page in pages(client, cursor, query) for each in page["changes"]]


def claim(client: Client, provider: str, amount: int = 1) -> str:
    consumer = new_uuid()
    assert client.claim(consumer, {provider: {"VCPU": amount}}).status == 204
    return consumer


def test_filters_choose_entries(client: Client, provider: str) -> None:
    cursor, other = now(client), client.make_provider(VCPU=10)
    consumer = claim(client, provider)
    claim(client, other)

    def found(query: str) -> list[str]:
        return [each["type"] for each in follow(client, cursor, f"&{query}")]

    assert found(f"consumer={consumer}") == ["allocations.changed"]
    assert found(f"provider={provider}") == ["allocations.changed"]
    assert found(f"root={other}") == [
        "provider.created",
        "inventory.changed",
        "allocations.changed",
    ]
    assert found("type=provider,inventory.changed") == [
        "provider.created",
        "inventory.changed",
    ]
    assert found("project_id=team-blue") == ["allocations.changed"] * 2
    assert found(f"provider={provider}&type=traits&limit=1") == []


def test_what_commits_late_with_a_small_number_comes_all_the_same(
    client: Client, database: Database, provider: str
) -> None:
    if backends.KIND == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    cursor = now(client)
    slow = database.engine.connect()
    late = {
        "id": new_uuid(),
        "type": "trait.created",
        "subject": "CUSTOM_LATE",
        "root": None,
    }
    text = json.dumps({"by": {}, "entries": [late]})
    row = {"time": sa.func.current_timestamp(), "entries": text}
    slow.execute(sa.insert(models.JOURNAL_INBOX).values(row))
    consumer = claim(client, provider)
    page = client.get(f"{CHANGES}?since={cursor}")
    assert [each["subject"] for each in page["changes"]] == [consumer]
    slow.commit()
    slow.close()
    then = client.get(f"{CHANGES}?since={page['cursor']}")
    assert [each["subject"] for each in then["changes"]] == ["CUSTOM_LATE"]


class Writer(threading.Thread):
    """Changes what some consumers use, again and again."""

    def __init__(self, client: Client, providers: list[str], seed: int) -> None:
        super().__init__()
        self._client = client
        self._providers = providers
        self._random = random.Random(seed)
        self._consumers = [new_uuid() for _ in range(3)]

    def run(self) -> None:
        for _ in range(TURNS):
            consumer = self._random.choice(self._consumers)
            if self._random.random() < 0.2:
                self._client.call("DELETE", f"/allocations/{consumer}")
                continue
            some = self._random.sample(self._providers, 2)
            amounts = {each: {"VCPU": self._random.randint(1, 5)} for each in some}
            known = self._client.get(f"/allocations/{consumer}")
            body = wants(amounts, known.get("consumer_generation"))
            self._client.call("PUT", f"/allocations/{consumer}", body)


def test_replaying_the_feed_ends_in_the_state_of_the_ledger(database: Database) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    # Each has its own keeper and caches, as if it were another process.
    clients = [Client(app.build(settings.make_config(), database)) for _ in range(3)]
    providers = [clients[0].make_provider(VCPU=100) for _ in range(4)]
    cursor = now(clients[0])
    writers = [Writer(client, providers, chance.randrange(2**32)) for client in clients]
    for writer in writers:
        writer.start()
    state: dict[str, Any] = {}
    is_over = False
    while not is_over:
        is_over = not any(writer.is_alive() for writer in writers)
        query = f"&limit={chance.randint(1, 20)}"
        for page in pages(chance.choice(clients), cursor, query):
            for each in page["changes"]:
                if each["type"] == "allocations.changed":
                    assert state.get(each["subject"], {}) == each["before"]
                    state[each["subject"]] = each["after"]
            cursor = page["cursor"]
    for writer in writers:
        writer.join()
    for consumer, amounts in state.items():
        found = clients[0].get(f"/allocations/{consumer}")["allocations"]
        assert {uuid: each["resources"] for uuid, each in found.items()} == amounts
    assert state


def test_waiting_ends_as_soon_as_there_is_news(client: Client, provider: str) -> None:
    cursor = now(client)
    later = threading.Timer(0.3, claim, [client, provider])
    later.start()
    began = time.monotonic()
    page = client.get(f"{CHANGES}?since={cursor}&wait=20")
    later.join()
    assert len(page["changes"]) == 1
    assert time.monotonic() - began < 10


def test_waiting_ends_without_news_when_the_time_is_over(client: Client) -> None:
    cursor = now(client)
    assert client.get(f"{CHANGES}?since={cursor}&wait=1")["changes"] == []


def test_not_more_readers_wait_than_may(database: Database) -> None:
    config = settings.make_config({("ledger", "waiting_readers"): 0})
    client = Client(app.build(config, database))
    began = time.monotonic()
    client.get(f"{CHANGES}?since={now(client)}&wait=20")
    assert time.monotonic() - began < 10


def test_nothing_is_waited_for_where_one_request_is_answered_at_a_time(
    client: Client, application: "WSGIApplication"
) -> None:
    request = webob.Request.blank(f"{CHANGES}?since={now(client)}&wait=20")
    request.headers["x-auth-token"] = "admin"
    began = time.monotonic()
    assert request.get_response(application).json["changes"] == []
    assert time.monotonic() - began < 10


def gone(client: Client, cursor: str) -> str:
    answer = client.call("GET", f"{CHANGES}?since={cursor}")
    assert (answer.status, answer.code) == (410, "placement.cursor_gone"), answer
    assert "/ledger/v1/fleet" in answer.detail
    return answer.detail


def test_an_expired_cursor_is_gone(
    client: Client, database: Database, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tidying, "BATCH", 1)

    def count_mentions() -> int:
        query = sa.select(sa.func.count()).select_from(models.JOURNAL_MENTIONS)
        return database.read(lambda connection: connection.scalars(query).one())

    cursor, other = now(client), client.make_provider(VCPU=10)
    both = {each: {"VCPU": 1} for each in (provider, other)}
    assert client.claim(new_uuid(), both).status == 204
    last = follow(client, cursor)[-1]["cursor"]
    assert count_mentions() == 2
    assert tidying.expire(database, days=-1) > 0
    assert count_mentions() == 0
    assert "no longer kept" in gone(client, cursor)
    assert follow(client, last) == []
    consumer = claim(client, provider)
    assert [each["subject"] for each in follow(client, last)] == [consumer]


def test_a_restore_never_passes_for_nothing_new(
    client: Client, database: Database, provider: str
) -> None:
    claim(client, provider)
    before = now(client)
    backup = Backup(database, *filing.TABLES)
    claim(client, provider)
    after = now(client)
    backup.restore()
    assert "restored" in gone(client, after)
    claim(client, provider)
    now(client)
    assert "restored" in gone(client, after)
    assert len(follow(client, before)) == 1


def test_history_does_not_go_on_in_a_database_that_was_restored(
    client: Client, database: Database, provider: str
) -> None:
    backup = Backup(database, *filing.TABLES)
    claim(client, provider)
    claim(client, provider)
    path = "/ledger/v1/history?limit=1"
    marker = client.get(path)["marker"]
    assert client.get(f"{path}&marker={marker}")["history"]
    backup.restore()
    for _ in range(3):
        claim(client, provider)
    client.get(path)
    answer = client.call("GET", f"{path}&marker={marker}")
    assert (answer.status, answer.code) == (410, "placement.cursor_gone"), answer
    assert "restored since this marker was given" in answer.detail


def test_a_journal_that_was_switched_off_is_another_one(
    client: Client, database: Database, provider: str
) -> None:
    cursor = now(client)
    off = settings.make_config({("ledger", "keep_journal_days"): 0})
    without = Client(app.build(off, database))
    answer = without.call("GET", f"{CHANGES}?since={cursor}")
    assert answer.status == 404
    assert "keep_journal_days = 0" in answer.detail
    claim(without, provider)
    client = Client(app.build(settings.make_config(), database))
    gone(client, cursor)
    assert follow(client, "oldest") == []


def test_a_journal_begins_when_it_is_switched_on_again(
    client: Client, database: Database, provider: str
) -> None:
    consumer = claim(client, provider)
    off = settings.make_config({("ledger", "keep_journal_days"): 0})
    without = Client(app.build(off, database))
    moment = render_time(clock.now())
    without.claim(consumer, {provider: {"VCPU": 2}}, generation=1)
    client, again = (
        Client(app.build(settings.make_config(), database)) for _ in range(2)
    )
    begins = client.get("/ledger/v1/history")["begins"]
    assert moment < begins
    # It goes on, if the service merely starts again.
    assert again.get("/ledger/v1/history")["begins"] == begins
    past = f"/ledger/v1/history/allocations?consumer={consumer}&at="
    refused = client.call("GET", f"{past}{moment}")
    assert (refused.status, begins in refused.detail) == (400, True)
    held = client.get(f"{past}{render_time(clock.now())}")
    assert held["allocations"] == {provider: {"resources": {"VCPU": 2}}}


def test_a_journal_begins_when_it_is_switched_on_for_the_first_time(
    client: Client, database: Database
) -> None:
    off = settings.make_config({("ledger", "keep_journal_days"): 0})
    without = Client(app.build(off, database))
    # As "db sync" does, and an import.
    with database.engine.begin() as connection:
        connection.execute(sa.delete(models.JOURNAL_STATE))
    provider = without.make_provider(VCPU=1)
    before = render_time(clock.now())
    client = Client(app.build(settings.make_config(), database))
    assert before < client.get("/ledger/v1/history")["begins"]
    assert follow(client, "oldest", f"&provider={provider}") == []


def test_a_journal_goes_on_after_another_process_was_without_one(
    client: Client, database: Database, journal: Keeper, provider: str
) -> None:
    # As a process does that starts without a journal.
    filing.switch(database, on=False)
    before = render_time(clock.now())
    tidying.tidy(journal)
    after = render_time(clock.now())
    assert before < client.get("/ledger/v1/history")["begins"] < after
    consumer = claim(client, provider)
    now = render_time(clock.now())
    past = f"/ledger/v1/history/allocations?consumer={consumer}&at={now}"
    assert client.call("GET", past).status == 200


@pytest.mark.parametrize("lost", [False, True])
def test_a_gap_is_recorded_once_even_if_the_commit_is_lost(
    lost: bool, client: Client, database: Database, journal: Keeper, provider: str
) -> None:
    cursor = now(client)
    journal.miss()
    if lost:
        backends.fail_next_commit(database)
    claim(client, provider)
    claim(client, provider)
    found = [each["type"] for each in follow(client, cursor)]
    assert found == ["journal.gap", "allocations.changed", "allocations.changed"]


def test_what_is_missed_meanwhile_is_another_gap(
    client: Client, database: Database, journal: Keeper, provider: str
) -> None:
    cursor = now(client)
    journal.miss()
    sa.event.listen(
        database.engine, "commit", lambda connection: journal.miss(), once=True
    )
    claim(client, provider)
    claim(client, provider)
    found = [each["type"] for each in follow(client, cursor)]
    assert found == ["journal.gap", "allocations.changed"] * 2


def test_the_feed_goes_on_where_the_fleet_ends(client: Client, provider: str) -> None:
    cursor = client.get("/ledger/v1/fleet")["cursor"]
    consumer = claim(client, provider)
    assert [each["subject"] for each in follow(client, cursor)][-1] == consumer
    fleet = client.get("/ledger/v1/fleet")
    assert follow(client, fleet["cursor"]) == []


@pytest.mark.damage
@pytest.mark.parametrize("since", ["oldest", "fleet", "claim"])
def test_an_emptied_journal_is_not_nothing_new(
    since: str, client: Client, database: Database, provider: str
) -> None:
    filing.file_all(database)
    tidying.expire(database, days=-1)
    cursors = {"fleet": client.get("/ledger/v1/fleet")["cursor"]}
    claim(client, provider)
    cursors["claim"] = follow(client, cursors["fleet"])[-1]["cursor"]
    cursors["oldest"] = client.get(f"{CHANGES}?since=oldest&limit=1")["cursor"]
    for _ in range(2):
        claim(client, provider)
    end = now(client)
    with database.engine.begin() as connection:
        connection.execute(sa.delete(models.JOURNAL_ENTRIES))
    gone(client, cursors[since])
    assert follow(client, end) == []
    backup = Backup(database, models.JOURNAL_STATE)
    with database.engine.begin() as connection:
        for table in filing.TABLES:
            connection.execute(sa.delete(table))
    try:
        assert "another journal" in gone(client, end)
    finally:
        backup.restore()


def test_another_service_is_a_gap(instances: Instances) -> None:
    one, plain = instances.start(), instances.start(keeps=False)
    hosts = [one.client.make_provider(VCPU=8) for _ in range(2)]
    claim(one.client, hosts[0])
    one.client.get(FREE)
    cursor = now(one.client)
    foreign = ForeignWriter(random.Random(1), plain.database)
    with plain.database.engine.begin() as foreign.connection:
        assert foreign.change_inventory()
    assert follow(one.client, cursor) == []
    one.clock.now += NOTICED_AFTER
    one.client.get(FREE)
    keeper = one.context.journal
    assert keeper
    tidying.record_gap(keeper)
    found = follow(one.client, cursor, f"&type=traits&provider={hosts[1]}")
    assert [(each["type"], each["subject"]) for each in found] == [
        ("journal.gap", None)
    ]
    # Said once.
    tidying.record_gap(keeper)
    assert follow(one.client, found[0]["cursor"]) == []
    at = found[0]["time"].replace("Z", "")
    early = datetime.datetime.fromisoformat(at) - datetime.timedelta(seconds=1)
    past = f"/ledger/v1/history/allocations?provider={hosts[0]}&at={early.isoformat()}Z"
    refused = one.client.call("GET", past)
    assert (refused.status, found[0]["time"] in refused.detail) == (400, True)


def test_events_that_are_all_left_out_lead_on(
    client: Client, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_SCANNED", 2)
    cursor = now(client)
    for _ in range(5):
        claim(client, provider)
    assert client.call("PUT", "/traits/CUSTOM_LAST").status == 201
    address, pages_read = f"{CHANGES}?since={cursor}&type=trait&limit=7", 0
    found: list[Any] = []
    while not found:
        pages_read += 1
        assert pages_read < 9
        accept = "application/cloudevents-batch+json"
        answer = client.send("GET", address, accept=accept)
        found = answer.json
        [address] = re.findall(
            r'^<http://localhost(.+)>; rel="next"$', answer.headers["link"]
        )
        assert address.endswith("&type=trait&limit=7")
    assert [each["subject"] for each in found] == ["CUSTOM_LAST"]
    assert pages_read > 1


def test_who_has_much_to_pass_over_waits_no_longer_than_asked(
    client: Client, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_SCANNED", 2)
    cursor = client.get(f"{CHANGES}?since=oldest&limit=1")["cursor"]
    for _ in range(40):
        claim(client, provider)
    looked = reading.list_after

    def look_slowly(*args: Any) -> Any:
        time.sleep(0.5)
        return looked(*args)

    monkeypatch.setattr(reading, "list_after", look_slowly)
    began = time.monotonic()
    page = client.get(f"{CHANGES}?since={cursor}&wait=1&project_id=nobody")
    assert time.monotonic() - began < 5
    assert page["changes"] == []
    assert page["more"]
    assert page["cursor"] != cursor
