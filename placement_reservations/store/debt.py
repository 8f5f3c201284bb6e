"""Debts: things outside the tables that may not agree with them, and have to.

Before anything is created in Placement that a failure would have to undo, a debt is
written. It is deleted in the transaction after which the new thing belongs there.
Whatever happens in between, the debt says where to look; the other tables say what is
right.
"""

import dataclasses
from collections.abc import Iterable

import sqlalchemy as sa

from placement_reservations.db import models
from placement_reservations.store import row


@dataclasses.dataclass(frozen=True, slots=True)
class Debt:
    """Something that may not agree with the tables.

    With both a reservation and a host it is an inventory; with only a reservation, its
    class and its flavor; with only a host, its reservation provider.
    """

    subject: str
    reservation_id: str | None = None
    hypervisor_hostname: str | None = None
    provider_uuid: str | None = None


def insert(connection: sa.Connection, debts: Iterable[Debt]) -> None:
    """Store debts."""
    rows = [dataclasses.asdict(debt) for debt in debts]
    if rows:
        connection.execute(sa.insert(models.Debt), rows)


def add(connection: sa.Connection, debt: Debt) -> None:
    """Store a debt, unless it is there already."""
    if debt not in list_by_subject(connection, debt.subject):
        insert(connection, [debt])


def list_by_subject(connection: sa.Connection, subject: str) -> list[Debt]:
    """Return the debts of a lease or a host, the newest first."""
    table = models.Debt
    query = sa.select(table).where(table.subject == subject).order_by(table.id.desc())
    return [row.load(Debt, each) for each in connection.execute(query).mappings()]


def list_subjects(connection: sa.Connection) -> list[str]:
    """Return the leases and hosts with debts, on which no operation is in progress."""
    claimed = sa.select(models.Claim.subject)
    query = sa.select(models.Debt.subject).distinct()
    query = query.where(models.Debt.subject.not_in(claimed))
    return list(connection.scalars(query.order_by(models.Debt.subject)))


def delete(connection: sa.Connection, subject: str) -> None:
    """Delete all debts of a lease or a host."""
    connection.execute(sa.delete(models.Debt).where(models.Debt.subject == subject))
