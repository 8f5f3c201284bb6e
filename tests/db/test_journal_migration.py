"""Entries that a former release has stored are carried over by ``db sync``."""

import datetime
import json
import zlib
from typing import Any

import pytest
import sqlalchemy as sa

from placement import app
from placement.db import migration, models
from placement.db.own.versions import o7_journal_as_text as revision
from placement.model.journal import token_of
from placement_foundation.database.storage import Database
from tests import settings
from tests.client import Client, new_uuid
from tests.db import legacy

TIME = datetime.datetime(2026, 11, 21, 10, 2, 11, 123456)
# The first ones have expired, and were about to be removed.
EXPIRED, LAST = 2, 2 * revision.BATCH + 5
HOST, CONSUMER, REQUEST = new_uuid(), new_uuid(), f"req-{new_uuid()}"


def document(kind: str, subject: str | None, **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "subject": subject,
        "before": None,
        "after": None,
        "generation": None,
        "id": new_uuid(),
        "root": None,
        "time": f"{TIME.isoformat()}Z",
        **more,
    }


def pack(document: dict[str, Any]) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=revision.USUAL)
    text = json.dumps(document, separators=(",", ":")).encode("ascii")
    return packer.compress(text) + packer.flush()


@pytest.fixture
def documents(empty: Database) -> list[dict[str, Any]]:
    """Store entries as the former release did, and return them."""
    documents = [document("trait.created", f"CUSTOM_{n}") for n in range(LAST - 2)]
    documents += [
        document("journal.gap", None),
        document(
            "allocations.changed",
            CONSUMER,
            names={HOST: "Zürich"},
            request_id=REQUEST,
            after={HOST: {"VCPU": 1}},
        ),
    ]
    first, last = (token_of(documents[n - 1]["id"]) for n in (EXPIRED, LAST))
    migration.SCHEMA.upgrade(empty, legacy.CONSUMER_TYPES)
    migration.OWN.upgrade(empty, revision.down_revision)
    entries = sa.table(
        "journal_entries",
        sa.column("position"),
        sa.column("time", sa.DateTime()),
        sa.column("entry"),
    )
    with empty.engine.begin() as connection:
        rows = [
            {"position": position, "time": TIME, "entry": pack(each)}
            for position, each in enumerate(documents, 1)
        ]
        connection.execute(sa.insert(entries), rows)
        state = {
            "id": 1,
            "life": "0" * 12,
            "position": LAST,
            "token": last,
            "expired": EXPIRED,
            "expired_token": first,
            "begins": TIME,
            "tidied": TIME,
        }
        connection.execute(sa.insert(models.JOURNAL_STATE), state)
    return documents


def check(database: Database, documents: list[dict[str, Any]]) -> None:
    """Check that the feed and history have all documents that have not expired."""
    migration.SCHEMA.upgrade(database)
    tables = sa.inspect(database.engine).get_table_names()
    assert not {"journal_packed", "journal_words"} & set(tables)
    client = Client(app.build(settings.make_config(), database))
    path = "/ledger/v1/changes?limit=10000&since="
    found = [*client.get(f"{path}oldest")["changes"]]
    cursors = [each.pop("cursor") for each in found]
    assert found == documents[EXPIRED:]
    assert len(client.get(path + cursors[-3])["changes"]) == 2
    for query in (f"provider={HOST}", f"consumer={CONSUMER}", f"request_id={REQUEST}"):
        entries = client.get(f"/ledger/v1/history?{query}")["history"]
        assert [each["id"] for each in entries] == [
            each["id"] for each in reversed(documents[-2:])
        ]


def test_a_journal_is_carried_over(
    empty: Database, documents: list[dict[str, Any]]
) -> None:
    check(empty, documents)


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("CREATE TABLE IF NOT EXISTS journal_mentions", 1),
        ("INSERT INTO journal_entries", 2),
        ("INSERT INTO journal_mentions", 1),
        ("DELETE FROM journal_packed", 3),
        ("DROP TABLE journal_packed", 1),
        ("UPDATE placement_server_version", 1),
    ],
)
def test_what_was_interrupted_goes_on(
    statement: str, number: int, empty: Database, documents: list[dict[str, Any]]
) -> None:
    left = number

    def interrupt(connection: Any, cursor: Any, text: str, *unused: Any) -> None:
        nonlocal left
        left -= text.strip().startswith(statement)
        if not left:
            raise KeyboardInterrupt

    sa.event.listen(sa.Engine, "before_cursor_execute", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            migration.SCHEMA.upgrade(empty)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", interrupt)
    check(empty, documents)
