"""Debts: what outside of the tables may not agree with them, and has to be made to.

Before something is made in Placement that a failure would have to undo, a debt is
written down. It is struck out in the transaction after which that something belongs
there. Whatever happens in between, the debt tells what to look at; what is right is
told by the other tables.
"""

import dataclasses
from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.orm import Session

from placement_consumers.reservations.db import models


@dataclasses.dataclass(frozen=True, slots=True)
class Debt:
    """What may not agree with the tables.

    With both a reservation and a host it is an inventory; with a reservation alone, its
    class and its flavor; with a host alone, its reservation provider.
    """

    subject: str
    reservation_id: str | None = None
    hypervisor_hostname: str | None = None
    provider_uuid: str | None = None


def insert(session: Session, debts: Iterable[Debt]) -> None:
    """Write debts down."""
    rows = [dataclasses.asdict(debt) for debt in debts]
    if rows:
        session.execute(sa.insert(models.Debt), rows)


def list_by_subject(session: Session, subject: str) -> list[Debt]:
    """Return the debts of a lease or a host, the last one first."""
    table = models.Debt
    query = sa.select(table).where(table.subject == subject).order_by(table.id.desc())
    return [
        Debt(
            row.subject,
            row.reservation_id,
            row.hypervisor_hostname,
            row.provider_uuid,
        )
        for row in session.scalars(query)
    ]


def list_subjects(session: Session) -> list[str]:
    """Return the leases and hosts that have debts, and that nobody is at work on."""
    claimed = sa.select(models.Claim.subject)
    query = sa.select(models.Debt.subject).distinct()
    query = query.where(models.Debt.subject.not_in(claimed))
    return list(session.scalars(query.order_by(models.Debt.subject)))


def delete(session: Session, subject: str) -> None:
    """Strike out all debts of a lease or a host."""
    session.execute(sa.delete(models.Debt).where(models.Debt.subject == subject))
