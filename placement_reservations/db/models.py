"""The tables: columns and constraints, nothing else.

Times are UTC. Only the times at which a row was created and changed are filled in
automatically.
"""

import datetime
import enum
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from placement_foundation.clock import utc_now
from placement_foundation.database import column
from placement_reservations import state

MOMENT = column.moment()
# The id of a lease, and of anything that belongs to one.
UUID = sa.String(36)
LONGEST_NAME = 255
NAME = column.word(LONGEST_NAME)


CHARSET = {"mysql_charset": "utf8mb4"}


def one_of(kind: type[enum.StrEnum], length: int = 16) -> sa.Enum:
    """Return the type of a column that has one of some words."""
    return sa.Enum(kind, native_enum=False, length=length, values_callable=list)


class Base(orm.DeclarativeBase):
    """What every table has: when a row was created, and when it was last changed."""

    __table_args__: Any = CHARSET

    created_at: orm.Mapped[datetime.datetime] = orm.mapped_column(
        MOMENT, default=utc_now, sort_order=-2
    )
    updated_at: orm.Mapped[datetime.datetime | None] = orm.mapped_column(
        MOMENT, onupdate=utc_now, sort_order=-1
    )


class Lease(Base):
    """A project's claim on the capacity of hosts, from one time to another."""

    __tablename__ = "leases"
    __table_args__ = (sa.Index("leases_project_id_idx", "project_id"), CHARSET)

    id: orm.Mapped[str] = orm.mapped_column(UUID, primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(NAME)
    user_id: orm.Mapped[str] = orm.mapped_column(NAME)
    project_id: orm.Mapped[str] = orm.mapped_column(NAME)
    start_date: orm.Mapped[datetime.datetime] = orm.mapped_column(MOMENT)
    end_date: orm.Mapped[datetime.datetime] = orm.mapped_column(MOMENT)
    status: orm.Mapped[state.LeaseStatus] = orm.mapped_column(one_of(state.LeaseStatus))
    status_reason: orm.Mapped[str | None] = orm.mapped_column(column.text())


class Reservation(Base):
    """A part of a lease."""

    __tablename__ = "reservations"
    __table_args__ = (
        sa.UniqueConstraint("lease_id", "position", name="uniq_reservations0position"),
        CHARSET,
    )

    id: orm.Mapped[str] = orm.mapped_column(UUID, primary_key=True)
    lease_id: orm.Mapped[str] = orm.mapped_column(
        UUID, sa.ForeignKey("leases.id", ondelete="CASCADE")
    )
    position: orm.Mapped[int]
    resource_type: orm.Mapped[str] = orm.mapped_column(sa.String(66))
    resource_id: orm.Mapped[str] = orm.mapped_column(UUID)
    status: orm.Mapped[state.ReservationStatus] = orm.mapped_column(
        one_of(state.ReservationStatus)
    )
    resources_changed: orm.Mapped[bool]
    lacks: orm.Mapped[str | None] = orm.mapped_column(column.text())


class InstanceReservation(Base):
    """A reservation of room for instances; its id is that of the resource."""

    __tablename__ = "instance_reservations"
    __table_args__ = (
        sa.UniqueConstraint(
            "reservation_id", name="uniq_instance_reservations0reservation_id"
        ),
        CHARSET,
    )

    id: orm.Mapped[str] = orm.mapped_column(UUID, primary_key=True)
    reservation_id: orm.Mapped[str] = orm.mapped_column(
        UUID, sa.ForeignKey("reservations.id", ondelete="CASCADE")
    )
    vcpus: orm.Mapped[int]
    memory_mb: orm.Mapped[int]
    disk_gb: orm.Mapped[int]
    amount: orm.Mapped[int]
    affinity: orm.Mapped[bool | None]
    resource_properties: orm.Mapped[str] = orm.mapped_column(sa.Text)
    flavor_id: orm.Mapped[str] = orm.mapped_column(UUID)


class Event(Base):
    """Something that happens to a lease once, at a given time."""

    __tablename__ = "events"
    __table_args__ = (
        sa.UniqueConstraint("lease_id", "event_type", name="uniq_events0lease_type"),
        sa.Index("events_status_time_idx", "status", "time"),
        CHARSET,
    )

    id: orm.Mapped[str] = orm.mapped_column(UUID, primary_key=True)
    lease_id: orm.Mapped[str] = orm.mapped_column(
        UUID, sa.ForeignKey("leases.id", ondelete="CASCADE")
    )
    event_type: orm.Mapped[state.EventType] = orm.mapped_column(
        one_of(state.EventType, 66)
    )
    time: orm.Mapped[datetime.datetime] = orm.mapped_column(MOMENT)
    status: orm.Mapped[state.EventStatus] = orm.mapped_column(one_of(state.EventStatus))


class ComputeHost(Base):
    """A host whose capacity can be reserved."""

    __tablename__ = "computehosts"
    __table_args__ = (
        sa.UniqueConstraint(
            "hypervisor_hostname", name="uniq_computehosts0hypervisor_hostname"
        ),
        CHARSET,
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    hypervisor_hostname: orm.Mapped[str] = orm.mapped_column(NAME)
    service_name: orm.Mapped[str] = orm.mapped_column(NAME)
    vcpus: orm.Mapped[int]
    memory_mb: orm.Mapped[int]
    local_gb: orm.Mapped[int]
    cpu_info: orm.Mapped[str] = orm.mapped_column(sa.Text)
    hypervisor_type: orm.Mapped[str] = orm.mapped_column(NAME)
    hypervisor_version: orm.Mapped[int]
    availability_zone: orm.Mapped[str] = orm.mapped_column(NAME)
    status: orm.Mapped[str | None] = orm.mapped_column(sa.String(13))
    reservable: orm.Mapped[bool]
    limits: orm.Mapped[str | None] = orm.mapped_column(column.text())


class ExtraCapability(Base):
    """A property of a host that an operator has set."""

    __tablename__ = "computehost_extra_capabilities"
    __table_args__ = (
        sa.UniqueConstraint(
            "computehost_id", "name", name="uniq_computehost_extra_capabilities0name"
        ),
        CHARSET,
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    computehost_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey("computehosts.id", ondelete="CASCADE")
    )
    name: orm.Mapped[str] = orm.mapped_column(NAME)
    value: orm.Mapped[str] = orm.mapped_column(sa.Text)


class HostProperty(Base):
    """Whether a capability is for administrators only. Without a row, it is not."""

    __tablename__ = "host_properties"

    name: orm.Mapped[str] = orm.mapped_column(NAME, primary_key=True)
    private: orm.Mapped[bool]


class Allocation(Base):
    """A promised slot of a host: its size, its start and its end.

    While a lease is updated it holds its old slots, and those that are ``wanted``.
    """

    __tablename__ = "computehost_allocations"
    __table_args__ = (
        sa.Index("computehost_allocations_host_end_idx", "computehost_id", "end_date"),
        sa.Index("computehost_allocations_reservation_id_idx", "reservation_id"),
        CHARSET,
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    computehost_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey("computehosts.id")
    )
    reservation_id: orm.Mapped[str] = orm.mapped_column(
        UUID, sa.ForeignKey("reservations.id", ondelete="CASCADE")
    )
    start_date: orm.Mapped[datetime.datetime] = orm.mapped_column(MOMENT)
    end_date: orm.Mapped[datetime.datetime] = orm.mapped_column(MOMENT)
    vcpus: orm.Mapped[int]
    memory_mb: orm.Mapped[int]
    disk_gb: orm.Mapped[int]
    wanted: orm.Mapped[bool]


class Cleaning(Base):
    """Slots that are being cleaned although their lease is over, or gone."""

    __tablename__ = "cleanings"
    __table_args__ = (sa.Index("cleanings_end_date_idx", "end_date"), CHARSET)

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    computehost_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey("computehosts.id", ondelete="CASCADE")
    )
    end_date: orm.Mapped[datetime.datetime] = orm.mapped_column(MOMENT)
    vcpus: orm.Mapped[int]
    memory_mb: orm.Mapped[int]
    disk_gb: orm.Mapped[int]
    slots: orm.Mapped[int]


class Flavor(Base):
    """A flavor that this service shows if no other service stores flavors."""

    __tablename__ = "flavors"

    id: orm.Mapped[str] = orm.mapped_column(UUID, primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(NAME)
    vcpus: orm.Mapped[int]
    ram: orm.Mapped[int]
    disk: orm.Mapped[int]
    resource_class: orm.Mapped[str] = orm.mapped_column(NAME)
    project_id: orm.Mapped[str | None] = orm.mapped_column(NAME)


class Claim(Base):
    """A process is working on a lease or a host; it renews this as long as it is.

    The document is what another process needs to end that work if the first one stops
    renewing.
    """

    __tablename__ = "claims"

    subject: orm.Mapped[str] = orm.mapped_column(NAME, primary_key=True)
    holder: orm.Mapped[str] = orm.mapped_column(UUID)
    operation: orm.Mapped[str] = orm.mapped_column(sa.String(16))
    document: orm.Mapped[str] = orm.mapped_column(sa.Text)
    expires_at: orm.Mapped[datetime.datetime] = orm.mapped_column(MOMENT)


class Debt(Base):
    """Something outside the tables that may not agree with them: see ``store.debt``."""

    __tablename__ = "debts"
    __table_args__ = (sa.Index("debts_subject_idx", "subject"), CHARSET)

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    subject: orm.Mapped[str] = orm.mapped_column(NAME)
    reservation_id: orm.Mapped[str | None] = orm.mapped_column(UUID)
    hypervisor_hostname: orm.Mapped[str | None] = orm.mapped_column(NAME)
    provider_uuid: orm.Mapped[str | None] = orm.mapped_column(UUID)
