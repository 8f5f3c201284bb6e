"""Create the tables of the journal; the row of its state comes later."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from placement_foundation.database import step

revision = "8e41b7c2d905"
down_revision = "5d1f0c9a7e42"

BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")
MICROSECONDS = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.LONGTEXT, "mysql", "mariadb")
LONG_BYTES = sa.LargeBinary().with_variant(mysql.LONGBLOB, "mysql", "mariadb")
TIMES = "journal_entries_time_idx"


def upgrade() -> None:
    # MariaDB commits each statement: an earlier attempt may have ended anywhere.
    op.create_table(
        "journal_inbox",
        sa.Column("id", BIG, primary_key=True, autoincrement=True),
        sa.Column("time", MICROSECONDS, nullable=False),
        sa.Column("entries", LONG_TEXT, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "journal_entries",
        sa.Column("position", BIG, primary_key=True, autoincrement=False),
        sa.Column("time", MICROSECONDS, nullable=False),
        sa.Column("entry", LONG_BYTES, nullable=False),
        if_not_exists=True,
    )
    step.create_index(TIMES, "journal_entries", ["time"])
    op.create_table(
        "journal_words",
        sa.Column("word", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        if_not_exists=True,
    )
    op.create_table(
        "journal_state",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("life", sa.String(12), nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("token", sa.String(12), nullable=False),
        sa.Column("expired", sa.BigInteger, nullable=False),
        sa.Column("expired_token", sa.String(12), nullable=False),
        sa.Column("begins", MICROSECONDS, nullable=False),
        sa.Column("tidied", MICROSECONDS, nullable=False),
        if_not_exists=True,
    )
