"""Times of change, in UTC and without a zone, as the tables store them."""

import datetime
from collections.abc import Iterable

import sqlalchemy as sa
from oslo_utils.timeutils import utcnow

now = utcnow

# Milliseconds since 1970 by the database's own clock, as it is when the statement runs.
_MILLISECONDS = {
    "sqlite": "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
    "mysql": "CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)",
}


def newest(times: Iterable[datetime.datetime | None]) -> datetime.datetime:
    """Return the latest of some times; the current time if none is known."""
    return max((time for time in times if time), default=None) or now()


def load_milliseconds(connection: sa.Connection) -> int:
    """Return the time of the database's clock, in milliseconds since 1970.

    All processes of the service agree on it.
    """
    kind = connection.dialect.name.replace("mariadb", "mysql")
    milliseconds: int = connection.scalar(sa.text(f"SELECT {_MILLISECONDS[kind]}"))
    return int(milliseconds)
