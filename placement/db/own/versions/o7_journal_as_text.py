"""Store entries of the journal as text, and what they mention in words.

So far an entry was compressed, with a dictionary of what most entries contain, and
found by hashes of what it mentions.
"""

import json
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
EXACT = sa.String(255).with_variant(
    mysql.VARCHAR(255, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)
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

packed = sa.table(PACKED, *map(sa.column, ("position", "time", "entry")))
entries = sa.table("journal_entries", *map(sa.column, ("position", "time", "document")))
mentions = sa.table("journal_mentions", *map(sa.column, ("mentioned", "position")))


def upgrade() -> None:
    # MariaDB commits each of these statements: an earlier attempt may have ended
    # anywhere. A service of the former release may still file entries: it fails as soon
    # as its table has another name, and what it was about to file stays in the inbox.
    connection = op.get_bind()
    if not sa.inspect(connection).has_table(PACKED):
        _rename_if_packed(sa.inspect(connection))
    _create_tables()
    if sa.inspect(connection).has_table(PACKED):
        _carry_over(connection)
        op.drop_table(PACKED)
    op.drop_table("journal_words", if_exists=True)


def _rename_if_packed(found: sa.Inspector) -> None:
    if "entry" in {each["name"] for each in found.get_columns("journal_entries")}:
        if TIMES in {each["name"] for each in found.get_indexes("journal_entries")}:
            op.drop_index(TIMES, "journal_entries")
        op.rename_table("journal_entries", PACKED)


def _create_tables() -> None:
    op.create_table(
        "journal_entries",
        sa.Column("position", BIG, primary_key=True, autoincrement=False),
        sa.Column("time", MICROSECONDS, nullable=False),
        sa.Column("document", LONG_TEXT, nullable=False),
        if_not_exists=True,
    )
    step.create_index(TIMES, "journal_entries", ["time"])
    op.create_table(
        "journal_mentions",
        sa.Column("mentioned", EXACT, primary_key=True),
        sa.Column("position", BIG, primary_key=True, autoincrement=False),
        if_not_exists=True,
    )


def _carry_over(connection: sa.Connection) -> None:
    """Move all entries from one table to the other, in batches."""
    expired = sa.select(sa.text("expired FROM journal_state")).scalar_subquery()
    connection.execute(sa.delete(packed).where(packed.c.position <= expired))
    oldest = sa.select(packed).order_by(packed.c.position).limit(BATCH)
    last = -1
    # PostgreSQL would pass all rows that this transaction has removed.
    while rows := connection.execute(oldest.where(packed.c.position > last)).all():
        texts = {row.position: _unpack(row.entry) for row in rows}
        connection.execute(
            sa.insert(entries),
            [
                {
                    "position": row.position,
                    "time": row.time,
                    "document": texts[row.position],
                }
                for row in rows
            ],
        )
        connection.execute(
            sa.insert(mentions),
            [
                {"mentioned": mention, "position": position}
                for position, text in texts.items()
                for mention in sorted(_mentions_of(json.loads(text)))
            ],
        )
        last = rows[-1].position
        connection.execute(sa.delete(packed).where(packed.c.position <= last))
        if connection.dialect.name in ("mysql", "mariadb"):
            # A cluster limits what one transaction may change.
            connection.exec_driver_sql("COMMIT")


def _unpack(entry: bytes) -> str:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS, zdict=USUAL)
    return unpacker.decompress(entry).decode("ascii")


def _mentions_of(document: Any) -> set[str]:
    mentions = {
        document["subject"],
        document["root"],
        document.get("request_id"),
        document.get("global_request_id"),
        *document.get("roots", ()),
        *document.get("names", ()),
    }
    if document["type"] == "journal.gap":
        mentions.add("journal.gap")
    return mentions - {None}
