"""Create the tables of the journal."""

import datetime
import secrets

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "8e41b7c2d905"
down_revision = "5d1f0c9a7e42"

BIG = sa.BigInteger().with_variant(sa.Integer, "sqlite")
MICROSECONDS = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def upgrade() -> None:
    op.create_table(
        "journal_inbox",
        sa.Column("id", BIG, primary_key=True, autoincrement=True),
        sa.Column("time", MICROSECONDS, nullable=False),
        sa.Column(
            "entries",
            sa.Text().with_variant(mysql.LONGTEXT, "mysql", "mariadb"),
            nullable=False,
        ),
    )
    op.create_table(
        "journal_entries",
        sa.Column("position", BIG, primary_key=True, autoincrement=False),
        sa.Column("time", MICROSECONDS, nullable=False, index=True),
        sa.Column(
            "entry",
            sa.LargeBinary().with_variant(mysql.LONGBLOB, "mysql", "mariadb"),
            nullable=False,
        ),
    )
    op.create_table(
        "journal_words",
        sa.Column("word", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    )
    state = op.create_table(
        "journal_state",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("life", sa.String(12), nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("token", sa.String(12), nullable=False),
        sa.Column("expired", sa.BigInteger, nullable=False),
        sa.Column("expired_token", sa.String(12), nullable=False),
        sa.Column("begins", MICROSECONDS, nullable=False),
        sa.Column("tidied", MICROSECONDS, nullable=False),
    )
    token = secrets.token_hex(6)
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    row = {
        "id": 1,
        "life": secrets.token_hex(6),
        "position": 0,
        "token": token,
        "expired": 0,
        "expired_token": token,
        "begins": now,
        "tidied": now,
    }
    op.bulk_insert(state, [row])
