"""How the journal is read, and what reading and removing old entries cost others."""

import contextlib
import copy
import datetime
import json
import random
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
import webob

from placement import app
from placement.cmd import manage
from placement.db import models
from placement.objects.journal import filing, recording, tidying
from placement.objects.journal.keeping import Keeper
from placement.objects.ledger import Ledger
from placement_foundation.database.storage import Database
from tests import settings
from tests.client import Client, new_uuid

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

CHANGES = "/ledger/v1/changes"
HISTORY = "/ledger/v1/history"


@pytest.fixture
def provider(client: Client) -> str:
    return client.make_provider(VCPU=1000)


def claim(client: Client, provider: str, **about: Any) -> str:
    consumer = new_uuid()
    assert client.claim(consumer, {provider: {"VCPU": 1}}, **about).status == 204
    return consumer


def ask(application: "WSGIApplication", path: str, accept: str) -> webob.Response:
    request = webob.Request.blank(path, base_url="http://placement.example/here")
    request.headers.update({"x-auth-token": "admin", "accept": accept})
    answer = request.get_response(application)
    assert answer.content_type == accept
    return answer


def test_the_lines_and_the_events_are_the_entries(
    application: "WSGIApplication", client: Client, provider: str
) -> None:
    claim(client, provider)
    path = f"{CHANGES}?since=oldest&limit=2"
    page = client.get(path)
    *entries, last = ask(application, path, "application/x-ndjson").body.splitlines()
    assert [json.loads(line) for line in entries] == page["changes"]
    assert json.loads(last) == {"cursor": page["cursor"], "more": True}
    events = ask(application, path, "application/cloudevents-batch+json").json
    assert [each["data"] for each in events] == page["changes"]
    for event, entry in zip(events, page["changes"], strict=True):
        assert event["specversion"] == "1.0"
        assert event["type"] == f"org.openstack.placement.{entry['type']}"
        assert event["source"].startswith("http://placement.example/here")
        assert (event["id"], event["subject"]) == (entry["id"], provider)
        assert (event["time"], event["placementcursor"]) == (
            entry["time"],
            entry["cursor"],
        )


def test_history_is_filtered_by_time_and_by_people(
    client: Client, provider: str
) -> None:
    blue = claim(client, provider, project="blue")
    red = claim(client, provider, project="red")

    def found(query: str) -> list[str]:
        entries = client.get(f"{HISTORY}?type=allocations&{query}")["history"]
        return [entry["subject"] for entry in entries]

    [first] = client.get(f"{HISTORY}?consumer={blue}")["history"]
    assert found("") == [red, blue]
    assert found("project_id=red") == [red]
    assert found("user_id=admin") == [red, blue]
    assert found("user_id=nobody") == []
    assert found(f"from={first['time']}") == [red, blue]
    assert found(f"to={first['time']}") == [blue]
    assert found(f"request_id={first['request_id']}") == [blue]


def test_a_consumer_is_found_however_its_uuid_is_spelled(
    client: Client, provider: str
) -> None:
    consumers = [new_uuid(), new_uuid().upper(), 36 * "-"]
    for consumer in consumers:
        about = {"project_id": "blue", "user_id": "ann", "consumer_type": "INSTANCE"}
        allocations = {provider: {"resources": {"VCPU": 1}}}
        claim = {**about, "consumer_generation": None, "allocations": allocations}
        answer = client.call("POST", "/allocations", {consumer: claim})
        assert answer.status == 204, answer
    for consumer in consumers:
        [entry] = client.get(f"{HISTORY}?consumer={consumer}")["history"]
        assert entry["subject"] == consumer


def test_history_says_since_when_it_is_complete(
    client: Client, provider: str, database: Database
) -> None:
    claim(client, provider)
    before = client.get(HISTORY)
    assert before["begins"] <= before["history"][-1]["time"]
    assert tidying.expire(database, days=-1) > 0
    after = client.get(HISTORY)
    assert after["history"] == []
    assert after["begins"] == before["history"][0]["time"]


def test_what_was_held_at_any_moment_is_known(
    client: Client, database: Database
) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    providers = [client.make_provider(VCPU=1000, DISK_GB=1000) for _ in range(3)]
    consumers = [new_uuid() for _ in range(3)]
    held: dict[str, dict[str, dict[str, int]]] = {each: {} for each in consumers}
    moments: list[tuple[str, Any]] = []
    # No amount comes twice, so each claim changes something.
    amounts_left = iter(range(1, 100))

    def change(consumer: str) -> None:
        known = client.get(f"/allocations/{consumer}")
        if held[consumer] and chance.random() < 0.3:
            answer = client.call("DELETE", f"/allocations/{consumer}")
            held[consumer] = {}
        else:
            held[consumer] = {
                provider: {name: next(amounts_left)}
                for provider in chance.sample(providers, chance.randint(1, 2))
                for name in [chance.choice(["VCPU", "DISK_GB"])]
            }
            generation = known.get("consumer_generation")
            answer = client.claim(consumer, held[consumer], generation=generation)
        assert answer.status == 204, answer

    def now() -> str:
        """Return the time of the last entry; nothing is filed by that."""
        return str(database.read(filing.list_waiting)[-1]["time"])

    for _ in range(30):
        change(chance.choice(consumers))
        moments.append((now(), copy.deepcopy(held)))
        if chance.random() < 0.2:
            # Some is filed, the rest waits.
            filing.file_all(database)
            [newest] = client.get(f"{HISTORY}?limit=1")["history"]
            assert newest["time"] == moments[-1][0]

    def at(moment: str, **whose: str) -> dict[str, dict[str, int]]:
        [(kind, uuid)] = whose.items()
        path = f"{HISTORY}/allocations?{kind}={uuid}&at={moment}"
        found = client.get(path)["allocations"]
        return {each: found[each]["resources"] for each in found}

    for moment, then in moments:
        for consumer in consumers:
            assert at(moment, consumer=consumer) == then[consumer]
        for provider in providers:
            assert at(moment, provider=provider) == {
                consumer: amounts[provider]
                for consumer, amounts in then.items()
                if provider in amounts
            }


@pytest.mark.parametrize(
    "path",
    [
        f"{CHANGES}?since=now",
        HISTORY,
        f"{HISTORY}/allocations?consumer=me&at=2999-01-01",
    ],
)
def test_without_a_journal_the_reason_is_said(path: str, database: Database) -> None:
    off = settings.make_config({("ledger", "keep_journal_days"): 0})
    answer = Client(app.build(off, database)).call("GET", path)
    assert answer.status == 404
    assert "keep_journal_days = 0" in answer.detail


def test_a_gap_is_an_event_without_a_subject(
    application: "WSGIApplication", database: Database, journal: Keeper
) -> None:
    Ledger(database, journal).write(recording.note_gap)
    path = f"{CHANGES}?since=oldest"
    [event] = ask(application, path, "application/cloudevents-batch+json").json
    assert event["type"] == "org.openstack.placement.journal.gap"
    assert "subject" not in event


def test_a_reader_that_waits_has_no_connection(
    client: Client, database: Database, journal: Keeper
) -> None:
    held = set()
    cursor = client.get(f"{CHANGES}?since=now")["cursor"]
    path = f"{CHANGES}?since={cursor}&wait=2"
    reader = threading.Thread(target=client.get, args=[path])
    reader.start()
    while reader.is_alive():
        if journal.waiting:
            held.add(database.engine.pool.checkedout())  # type: ignore[attr-defined]
        time.sleep(0.01)
    assert 0 in held


def test_old_entries_are_removed_by_one_process_at_a_time(
    client: Client,
    database: Database,
    journal: Keeper,
    provider: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expired: list[int] = []

    def expire(database: Database, days: int) -> None:
        expired.append(days)

    monkeypatch.setattr(tidying, "expire", expire)
    with database.engine.begin() as connection:
        filing.set_state(connection, tidied=datetime.datetime(1970, 1, 1))
    for _ in range(3):
        tidying.tidy(journal)
    assert expired == [30]


def test_entries_with_more_mentions_than_a_statement_can_have_are_removed(
    database: Database, client: Client, provider: str
) -> None:
    # PostgreSQL takes at most 65 535 values, and a consumer may have many providers.
    claim(client, provider)
    filing.file_all(database)
    entries = models.JOURNAL_ENTRIES
    with database.engine.begin() as connection:
        text = connection.scalars(sa.select(entries.c.document).limit(1)).one()
        roots = [new_uuid() for _ in range(70_000)]
        document = json.dumps({**json.loads(text), "roots": roots})
        connection.execute(sa.update(entries).values(document=document))
    assert tidying.expire(database, days=-1) > 0
    with database.engine.connect() as connection:
        assert not connection.scalar(sa.select(sa.func.count()).select_from(entries))


def test_a_command_is_named_by_its_entries(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = database.engine.url.render_as_string(hide_password=False)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", url)
    with contextlib.redirect_stdout(None):
        assert manage.main(["demo", "--hosts", "1"]) == 0
    commands = {entry.get("request") for entry in database.read(filing.list_waiting)}
    assert commands == {"placement-manage demo"}
