"""Claims: the process that works on a subject, and the end of the claim.

A process that begins an operation on a lease or a host claims it, and renews the claim
before each step. A process that was killed renews nothing: once its claim has expired,
another process takes it over and ends the operation. The document of the claim has all
that is needed for that.
"""

import dataclasses
import datetime
import uuid
from typing import Any

import sqlalchemy as sa

from placement_foundation import errors
from placement_reservations import clock
from placement_reservations.db import models
from placement_reservations.store import row

# The operation of the claim on all hosts: see ``lifecycle.watching``.
WATCH = "watch"
# The holder of an operation that was put off: any process may go on with it.
NO_HOLDER = "none"


class Busy(errors.Conflict):
    """Another operation is in progress on the same lease or host."""


class Lost(errors.Conflict):
    """Another process has taken over the claim, and ends the operation."""


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """A process, the holder, is working on a subject."""

    subject: str
    holder: str
    operation: str
    document: dict[str, Any]


def take(
    connection: sa.Connection, claim: Claim, expires_at: datetime.datetime
) -> None:
    """Begin an operation.

    :raises Busy: another operation is in progress on the same subject
    """
    if find(connection, claim.subject):
        raise Busy(f"Another operation is in progress on {claim.subject}.")
    row.insert(connection, models.Claim, claim, expires_at=expires_at)


def find(connection: sa.Connection, subject: str) -> Claim | None:
    """Return the claim on a subject, if there is one."""
    table = models.Claim
    claims = _load(connection, sa.select(table).where(table.subject == subject))
    return claims[0] if claims else None


def _load(connection: sa.Connection, query: sa.Select[Any]) -> list[Claim]:
    return [row.load(Claim, each) for each in connection.execute(query).mappings()]


def renew(
    connection: sa.Connection, claim: Claim, expires_at: datetime.datetime
) -> None:
    """Renew the claim of an operation, with its document.

    :raises Lost: another process has taken it over
    """
    values = {"expires_at": expires_at, "document": claim.document}
    _execute_held(connection, claim, sa.update(models.Claim).values(values))


def wait(connection: sa.Connection, claim: Claim, now: datetime.datetime) -> None:
    """Let any process continue an operation that was put off.

    The claim has no holder, so that it does not keep others from deleting a lease.

    :raises Lost: another process has taken it over
    """
    statement = sa.update(models.Claim).values(holder=NO_HOLDER, expires_at=now)
    _execute_held(connection, claim, statement)


def release(connection: sa.Connection, claim: Claim) -> None:
    """End an operation.

    :raises Lost: another process has taken it over
    """
    _execute_held(connection, claim, sa.delete(models.Claim))


def _execute_held(connection: sa.Connection, claim: Claim, statement: Any) -> None:
    if not connection.execute(_held(statement, claim)).rowcount:
        raise Lost(f"Another process has taken over the work on {claim.subject}.")


def drop_expired(
    connection: sa.Connection,
    subject: str,
    now: datetime.datetime,
    term: datetime.timedelta,
) -> None:
    """Delete the claim on a subject if it expired; the caller cleans up after it."""
    table = models.Claim
    statement = sa.delete(table).where(table.subject == subject, _is_free(now, term))
    connection.execute(statement)


def _is_free(
    now: datetime.datetime, term: datetime.timedelta
) -> sa.ColumnElement[bool]:
    """Return the condition of claims that do not belong to a process any more.

    A claim that expires after its term was made by a clock that has been put right.
    """
    table = models.Claim
    return sa.or_(
        table.holder == NO_HOLDER,
        table.expires_at <= now,
        table.expires_at > now + term + clock.MINUTE,
    )


def _held(statement: Any, claim: Claim) -> Any:
    table = models.Claim
    return statement.where(table.subject == claim.subject, table.holder == claim.holder)


def list_subjects(connection: sa.Connection) -> set[str]:
    """Return the leases and hosts on which an operation is in progress."""
    return set(connection.scalars(sa.select(models.Claim.subject)))


def list_expired(
    connection: sa.Connection, now: datetime.datetime, term: datetime.timedelta
) -> list[Claim]:
    """Return the claims that have expired but the watch, the oldest first.

    :param term: how long a claim is valid
    """
    table = models.Claim
    query = sa.select(table).where(_is_free(now, term), table.operation != WATCH)
    query = query.order_by(table.expires_at, table.subject)
    return _load(connection, query)


def count_late(connection: sa.Connection, before: datetime.datetime) -> int:
    """Return how many claims but the watch expired before a time."""
    table = models.Claim
    query = sa.select(sa.func.count()).where(
        table.expires_at <= before, table.operation != WATCH
    )
    return connection.scalar(query) or 0


def take_over(
    connection: sa.Connection,
    claim: Claim,
    now: datetime.datetime,
    term: datetime.timedelta,
) -> Claim | None:
    """Take an expired claim from its holder; None if another process was faster."""
    holder = str(uuid.uuid4())
    table = models.Claim
    statement = _held(sa.update(table), claim).where(_is_free(now, term))
    taken = connection.execute(statement.values(holder=holder, expires_at=now + term))
    if not taken.rowcount:
        return None
    return dataclasses.replace(claim, holder=holder)
