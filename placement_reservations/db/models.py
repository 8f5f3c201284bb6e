"""The tables: columns and constraints, nothing else.

Times are UTC. Only the times at which a row was created and changed are filled in
automatically.
"""

import datetime
import enum
from typing import Any, ClassVar

import sqlalchemy as sa
from oslo_utils.timeutils import utcnow
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from placement_foundation.database import column
from placement_reservations import state

# The id of a lease, and of anything that belongs to one.
UUID = sa.String(36)
LONGEST_NAME = 255
NAME = column.word(LONGEST_NAME)


CHARSET = {"mysql_charset": "utf8mb4"}


def part_of(key: str) -> sa.ForeignKey:
    """Return the reference of a row that is deleted with another one."""
    return sa.ForeignKey(key, ondelete="CASCADE")


def one_of(kind: type[enum.StrEnum], length: int = 16) -> sa.Enum:
    """Return the type of a column that has one of some words."""
    return sa.Enum(kind, native_enum=False, length=length, values_callable=list)


class Base(DeclarativeBase):
    """What every table has: when a row was created, and when it was last changed."""

    metadata = sa.MetaData(naming_convention=column.NAMES)
    __table_args__: Any = CHARSET
    type_annotation_map: ClassVar = {
        datetime.datetime: column.moment(),
        state.LeaseStatus: one_of(state.LeaseStatus),
        state.ReservationStatus: one_of(state.ReservationStatus),
        state.EventStatus: one_of(state.EventStatus),
        state.EventType: one_of(state.EventType, 66),
    }

    created_at: Mapped[datetime.datetime] = mapped_column(default=utcnow, sort_order=-2)
    updated_at: Mapped[datetime.datetime | None] = mapped_column(
        onupdate=utcnow, sort_order=-1
    )


class Lease(Base):
    """A project's claim on the capacity of hosts, from one time to another."""

    __tablename__ = "leases"
    id: Mapped[str] = mapped_column(UUID, primary_key=True)
    name: Mapped[str] = mapped_column(NAME)
    user_id: Mapped[str] = mapped_column(NAME)
    project_id: Mapped[str] = mapped_column(NAME, index=True)
    start_date: Mapped[datetime.datetime]
    end_date: Mapped[datetime.datetime]
    status: Mapped[state.LeaseStatus] = mapped_column(one_of(state.LeaseStatus))
    status_reason: Mapped[str | None] = mapped_column(column.text())


class Reservation(Base):
    """A part of a lease."""

    __tablename__ = "reservations"
    __table_args__ = (
        sa.UniqueConstraint("lease_id", "position", name="uniq_reservations0position"),
        CHARSET,
    )

    id: Mapped[str] = mapped_column(UUID, primary_key=True)
    lease_id: Mapped[str] = mapped_column(UUID, part_of("leases.id"))
    position: Mapped[int]
    resource_type: Mapped[str] = mapped_column(sa.String(66))
    resource_id: Mapped[str] = mapped_column(UUID)
    status: Mapped[state.ReservationStatus]
    resources_changed: Mapped[bool]
    lacks: Mapped[str | None] = mapped_column(column.text())


class InstanceReservation(Base):
    """A reservation of room for instances; its id is that of the resource."""

    __tablename__ = "instance_reservations"
    id: Mapped[str] = mapped_column(UUID, primary_key=True)
    reservation_id: Mapped[str] = mapped_column(
        UUID, part_of("reservations.id"), unique=True
    )
    vcpus: Mapped[int]
    memory_mb: Mapped[int]
    disk_gb: Mapped[int]
    amount: Mapped[int]
    affinity: Mapped[bool | None]
    resource_properties: Mapped[str] = mapped_column(sa.Text)
    flavor_id: Mapped[str] = mapped_column(UUID)


class Event(Base):
    """Something that happens to a lease once, at a given time."""

    __tablename__ = "events"
    __table_args__ = (
        sa.UniqueConstraint("lease_id", "event_type", name="uniq_events0lease_type"),
        sa.Index(None, "status", "time"),
        CHARSET,
    )

    id: Mapped[str] = mapped_column(UUID, primary_key=True)
    lease_id: Mapped[str] = mapped_column(UUID, part_of("leases.id"))
    event_type: Mapped[state.EventType]
    time: Mapped[datetime.datetime]
    status: Mapped[state.EventStatus] = mapped_column(one_of(state.EventStatus))


class ComputeHost(Base):
    """A host whose capacity can be reserved."""

    __tablename__ = "computehosts"
    id: Mapped[int] = mapped_column(primary_key=True)
    hypervisor_hostname: Mapped[str] = mapped_column(NAME, unique=True)
    service_name: Mapped[str] = mapped_column(NAME)
    vcpus: Mapped[int]
    memory_mb: Mapped[int]
    local_gb: Mapped[int]
    cpu_info: Mapped[str] = mapped_column(sa.Text)
    hypervisor_type: Mapped[str] = mapped_column(NAME)
    hypervisor_version: Mapped[int]
    availability_zone: Mapped[str] = mapped_column(NAME)
    status: Mapped[str | None] = mapped_column(sa.String(13))
    reservable: Mapped[bool]
    limits: Mapped[str | None] = mapped_column(column.text())


class ExtraCapability(Base):
    """A property of a host that an operator has set."""

    __tablename__ = "computehost_extra_capabilities"
    __table_args__ = (
        sa.UniqueConstraint(
            "computehost_id", "name", name="uniq_computehost_extra_capabilities0name"
        ),
        CHARSET,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    computehost_id: Mapped[int] = mapped_column(part_of("computehosts.id"))
    name: Mapped[str] = mapped_column(NAME)
    value: Mapped[str] = mapped_column(sa.Text)


class HostProperty(Base):
    """Whether a capability is for administrators only. Without a row, it is not."""

    __tablename__ = "host_properties"

    name: Mapped[str] = mapped_column(NAME, primary_key=True)
    private: Mapped[bool]


class Allocation(Base):
    """A promised slot of a host: its size, its start and its end.

    While a lease is updated it holds its old slots, and those that are ``wanted``.
    """

    __tablename__ = "computehost_allocations"
    __table_args__ = (
        sa.Index("computehost_allocations_host_end_idx", "computehost_id", "end_date"),
        CHARSET,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    computehost_id: Mapped[int] = mapped_column(sa.ForeignKey("computehosts.id"))
    reservation_id: Mapped[str] = mapped_column(
        UUID, part_of("reservations.id"), index=True
    )
    start_date: Mapped[datetime.datetime]
    end_date: Mapped[datetime.datetime]
    vcpus: Mapped[int]
    memory_mb: Mapped[int]
    disk_gb: Mapped[int]
    wanted: Mapped[bool]


class Cleaning(Base):
    """Slots that are being cleaned although their lease is over, or gone."""

    __tablename__ = "cleanings"
    id: Mapped[int] = mapped_column(primary_key=True)
    computehost_id: Mapped[int] = mapped_column(part_of("computehosts.id"))
    end_date: Mapped[datetime.datetime] = mapped_column(index=True)
    vcpus: Mapped[int]
    memory_mb: Mapped[int]
    disk_gb: Mapped[int]
    slots: Mapped[int]


class Flavor(Base):
    """A flavor that this service shows if no other service stores flavors."""

    __tablename__ = "flavors"

    id: Mapped[str] = mapped_column(UUID, primary_key=True)
    name: Mapped[str] = mapped_column(NAME)
    vcpus: Mapped[int]
    ram: Mapped[int]
    disk: Mapped[int]
    resource_class: Mapped[str] = mapped_column(NAME)
    project_id: Mapped[str | None] = mapped_column(NAME)


class Claim(Base):
    """A process is working on a lease or a host; it renews this as long as it is.

    The document is what another process needs to end that work if the first one stops
    renewing.
    """

    __tablename__ = "claims"

    subject: Mapped[str] = mapped_column(NAME, primary_key=True)
    holder: Mapped[str] = mapped_column(UUID)
    operation: Mapped[str] = mapped_column(sa.String(16))
    document: Mapped[dict[str, Any]] = mapped_column(column.Document)
    expires_at: Mapped[datetime.datetime]


class Debt(Base):
    """Something outside the tables that may not agree with them: see ``store.debt``."""

    __tablename__ = "debts"
    id: Mapped[int] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(NAME, index=True)
    reservation_id: Mapped[str | None] = mapped_column(UUID)
    hypervisor_hostname: Mapped[str | None] = mapped_column(NAME)
    provider_uuid: Mapped[str | None] = mapped_column(UUID)
