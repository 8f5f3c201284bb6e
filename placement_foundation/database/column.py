"""Types of columns that behave the same on every database."""

import datetime
import json
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

# The names of unique constraints and indexes: for the ``MetaData`` of a service.
NAMES = {
    "uq": "uniq_%(table_name)s0%(column_0_N_name)s",
    "ix": "%(table_name)s_%(column_0_N_name)s_idx",
}


def word(length: int) -> sa.types.TypeEngine[str]:
    """Return the type of a short string, which is compared and sorted byte by byte.

    By default, servers sort by the rules of some language, and some of them ignore
    case.
    """
    server = mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin")
    return (
        sa.String(length)
        .with_variant(sa.String(length, collation="C"), "postgresql")
        .with_variant(server, "mysql", "mariadb")
    )


def text() -> sa.types.TypeEngine[str]:
    """Return the type of a long string."""
    return sa.Text().with_variant(mysql.LONGTEXT(charset="utf8mb4"), "mysql", "mariadb")


class Document(sa.types.TypeDecorator[dict[str, Any]]):
    """A JSON object, stored as ASCII text, so that it can contain any characters."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Return the type of the column."""
        return dialect.type_descriptor(text())

    def process_bind_param(
        self, value: dict[str, Any] | None, dialect: sa.Dialect
    ) -> str:
        """Return the value to store."""
        return json.dumps(value)

    def process_result_value(
        self, value: str | None, dialect: sa.Dialect
    ) -> dict[str, Any]:
        """Return the stored value."""
        document: dict[str, Any] = json.loads(value or "{}")
        return document


def moment() -> sa.types.TypeEngine[datetime.datetime]:
    """Return the type of a time, to the microsecond."""
    return sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
