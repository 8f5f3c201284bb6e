"""Claims: which process works on what, and until when the claim is valid.

A process that begins an operation on a lease or a host claims it, and renews the claim
before each step. A process that was killed renews nothing: once its claim has expired,
another process takes it over and ends the operation. The document of the claim has all
that is needed for that.
"""

import dataclasses
import datetime
import json
import uuid
from typing import Any

import sqlalchemy as sa

from placement_foundation import errors
from placement_reservations import clock
from placement_reservations.db import models

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
    document: Any

    def is_due(self, now: datetime.datetime, longest: int) -> bool:
        """Return whether it is time to go on, if it was put off.

        :param longest: no pause is longer, in seconds, unless a clock was put right
        """
        again = (self.document or {}).get("not_before")
        if again is None:
            return True
        ahead = (datetime.datetime.fromisoformat(again) - now).total_seconds()
        return not 0 < ahead <= longest


def take(
    connection: sa.Connection, claim: Claim, expires_at: datetime.datetime
) -> None:
    """Begin an operation.

    :raises Busy: another operation is in progress on the same subject
    """
    if find(connection, claim.subject):
        raise Busy(f"Another operation is in progress on {claim.subject}.")
    connection.execute(
        sa.insert(models.Claim).values(
            subject=claim.subject,
            holder=claim.holder,
            operation=claim.operation,
            document=json.dumps(claim.document),
            expires_at=expires_at,
        )
    )


def find(connection: sa.Connection, subject: str) -> Claim | None:
    """Return the claim on a subject, if there is one."""
    table = models.Claim
    row = connection.execute(sa.select(table).where(table.subject == subject)).first()
    return _claim(row) if row else None


def renew(
    connection: sa.Connection, claim: Claim, expires_at: datetime.datetime
) -> None:
    """Renew the claim of an operation.

    :raises Lost: another process has taken it over
    """
    table = models.Claim
    statement = _held(sa.update(table), claim)
    renewed = connection.execute(statement.values(expires_at=expires_at))
    if not renewed.rowcount:
        raise Lost(f"Another process has taken over the work on {claim.subject}.")


def put_off(claim: Claim, until: datetime.datetime, **facts: object) -> Claim:
    """Return a claim that is not taken over before a time, to be stored by ``wait``.

    :param facts: to be added to its document
    """
    document = {**claim.document, **facts, "not_before": until.isoformat()}
    return dataclasses.replace(claim, document=document)


def wait(connection: sa.Connection, claim: Claim, now: datetime.datetime) -> None:
    """Let any process continue an operation that was put off.

    The claim has no holder, so that it does not keep others from deleting a lease.

    :raises Lost: another process has taken it over
    """
    statement = _held(sa.update(models.Claim), claim)
    kept = connection.execute(
        statement.values(
            holder=NO_HOLDER, document=json.dumps(claim.document), expires_at=now
        )
    )
    if not kept.rowcount:
        raise Lost(f"Another process has taken over the work on {claim.subject}.")


def release(connection: sa.Connection, claim: Claim) -> None:
    """End an operation.

    :raises Lost: another process has taken it over
    """
    released = connection.execute(_held(sa.delete(models.Claim), claim))
    if not released.rowcount:
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
    """Return the claims that have expired, the oldest first.

    :param term: how long a claim is valid
    """
    table = models.Claim
    query = sa.select(table).where(_is_free(now, term))
    query = query.order_by(table.expires_at, table.subject)
    return [_claim(row) for row in connection.execute(query)]


def count_late(connection: sa.Connection, before: datetime.datetime) -> int:
    """Return how many claims expired before a time."""
    query = sa.select(sa.func.count()).where(models.Claim.expires_at <= before)
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
    statement = _held(sa.update(table), claim).where(
        _is_free(now, term), table.document == json.dumps(claim.document)
    )
    taken = connection.execute(statement.values(holder=holder, expires_at=now + term))
    if not taken.rowcount:
        return None
    return dataclasses.replace(claim, holder=holder)


def _claim(row: Any) -> Claim:
    return Claim(row.subject, row.holder, row.operation, json.loads(row.document))
