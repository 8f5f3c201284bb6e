"""Store entries of the journal as text, and what they are found by in columns.

So far an entry was compressed, with a dictionary of what most entries contain, and
found by hashes of what it mentions.
"""

import datetime
import json
import uuid
import zlib
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from placement_foundation.database import step

revision = "4f0b8d61e3c7"
down_revision = "91c4f7e20ab6"

# How many entries are carried over at a time.
BATCH = 1_000
TIMES = "journal_entries_time_idx"
# Where the entries wait that are not carried over yet.
PACKED = "journal_packed"
BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")
MICROSECONDS = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT, "mysql", "mariadb")
UUID = sa.CHAR(36).with_variant(sa.Uuid(as_uuid=False), "postgresql")
FOUND_BY = ("subject", "root", "request_id")
NAMESPACE = uuid.UUID("3c1f7f56-7d0c-4f0e-9d55-0a0a6c8f2d11")
USUAL = (
    b'"roots":["names":{"expires_at":"lease.renewedlease.confirmedlease.expired'
    b"journal.gaptrait.createdresource_class.createdconsumer.changedtraits.changed"
    b'aggregates.changed","before":null,"after":{"added":["],"removed":["CUSTOM_'
    b'provider.deletedprovider.updatedprovider.created","before":null,"after":'
    b'{"name":"","parent":null,"root":"inventory.changed{"total":,"reserved":0,'
    b'"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0}'
    b'"request":"DELETE /allocations/POST /allocations","POST /reshaper"PUT '
    b"/resource_providers//inventories/traits/aggregatesPLACEMENT_AGGREGATEVGPU"
    b'PCPUDISK_GBMEMORY_MBVCPU"consumer":{"project_id":"","user_id":"",'
    b'"consumer_type":"INSTANCE"},"user_name":"nova","project_name":"service",'
    b'"generation":1,"root":"{"request":"PUT /allocations/","request_id":"req-",'
    b'"global_request_id":"req-","user_id":"","project_id":"","id":"","type":'
    b'"allocations.changed","subject":"","before":{},"after":{"":{"VCPU":,'
    b'"MEMORY_MB":,"DISK_GB":}},'
)

packed = sa.table(
    PACKED, sa.column("position"), sa.column("time", MICROSECONDS), sa.column("entry")
)


def upgrade() -> None:
    # MariaDB commits each of these statements: an earlier attempt may have ended
    # anywhere. A service of the former release may still file entries: it fails as soon
    # as its table has another name, and what it was about to file stays in the inbox.
    connection = op.get_bind()
    if not sa.inspect(connection).has_table(PACKED):
        _rename_if_packed(sa.inspect(connection))
    entries, mentions = _create_tables()
    if sa.inspect(connection).has_table(PACKED):
        _carry_over(connection, entries, mentions)
        op.drop_table(PACKED)
    op.drop_table("journal_words", if_exists=True)


def _rename_if_packed(found: sa.Inspector) -> None:
    if "entry" in {each["name"] for each in found.get_columns("journal_entries")}:
        if TIMES in {each["name"] for each in found.get_indexes("journal_entries")}:
            op.drop_index(TIMES, "journal_entries")
        op.rename_table("journal_entries", PACKED)


def _create_tables() -> tuple[sa.Table, sa.Table]:
    entries = op.create_table(
        "journal_entries",
        sa.Column("position", BIG, primary_key=True, autoincrement=False),
        sa.Column("time", MICROSECONDS, nullable=False),
        sa.Column("id", UUID, nullable=False),
        *(sa.Column(name, UUID) for name in FOUND_BY),
        sa.Column("document", LONG_TEXT, nullable=False),
        if_not_exists=True,
    )
    step.create_index(TIMES, "journal_entries", ["time"])
    for name in FOUND_BY:
        step.create_index(
            f"journal_entries_{name}_idx", "journal_entries", [name, "position"]
        )
    mentions = op.create_table(
        "journal_mentions",
        sa.Column("mentioned", UUID, primary_key=True),
        sa.Column("position", BIG, primary_key=True, autoincrement=False),
        if_not_exists=True,
    )
    return entries, mentions


def _carry_over(
    connection: sa.Connection, entries: sa.Table, mentions: sa.Table
) -> None:
    """Move all entries from one table to the others, in batches."""
    expired = sa.select(sa.text("expired FROM journal_state")).scalar_subquery()
    connection.execute(sa.delete(packed).where(packed.c.position <= expired))
    oldest = sa.select(packed).order_by(packed.c.position).limit(BATCH)
    last = -1
    # PostgreSQL would pass all rows that this transaction has removed.
    while rows := connection.execute(oldest.where(packed.c.position > last)).all():
        moved = [_convert(*row) for row in rows]
        connection.execute(sa.insert(entries), [entry for entry, _ in moved])
        mentioned = [
            {"mentioned": key, "position": entry["position"]}
            for entry, keys in moved
            for key in sorted(keys)
        ]
        if mentioned:
            connection.execute(sa.insert(mentions), mentioned)
        last = rows[-1].position
        connection.execute(sa.delete(packed).where(packed.c.position <= last))
        if connection.dialect.name in ("mysql", "mariadb"):
            # A cluster limits what one transaction may change.
            connection.exec_driver_sql("COMMIT")


def _key_of(text: str) -> str:
    try:
        return str(uuid.UUID(text.removeprefix("req-")))
    except ValueError:
        return str(uuid.uuid5(NAMESPACE, text))


def _convert(
    position: int, time: datetime.datetime, entry: bytes
) -> tuple[dict[str, Any], set[str]]:
    """Return the row of an entry, and the keys of what else it mentions.

    Its JSON has what the columns have as well, until it expires.
    """
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS, zdict=USUAL)
    text = unpacker.decompress(entry).decode("ascii")
    document = json.loads(text)
    texts = {name: document.get(name) for name in FOUND_BY}
    row = {"position": position, "time": time, "id": document["id"], "document": text}
    row |= {name: _key_of(text) if text else None for name, text in texts.items()}
    mentions = {*document.get("roots", ()), *document.get("names", ())}
    mentions.add(document.get("global_request_id"))
    if document["type"] == "journal.gap":
        mentions.add("journal.gap")
    return row, {_key_of(text) for text in mentions - {None, *texts.values()}}
