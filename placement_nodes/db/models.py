"""The tables: columns and constraints, nothing else."""

import datetime
from typing import Any, ClassVar

import sqlalchemy as sa
from oslo_utils.timeutils import utcnow
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from placement_foundation.database import column


class Base(DeclarativeBase):
    """The types of columns that both tables have."""

    metadata = sa.MetaData(naming_convention=column.NAMES)
    type_annotation_map: ClassVar = {
        datetime.datetime: column.moment(),
        dict[str, Any]: column.Document,
    }


class Node(Base):
    """A machine."""

    __tablename__ = "nodes"
    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(column.word(36), unique=True)
    name: Mapped[str | None] = mapped_column(column.word(255), unique=True)
    driver: Mapped[str] = mapped_column(column.word(255))
    resource_class: Mapped[str | None] = mapped_column(column.word(80))
    properties: Mapped[dict[str, Any]]
    extra: Mapped[dict[str, Any]]
    driver_info: Mapped[dict[str, Any]]
    instance_info: Mapped[dict[str, Any]]
    interfaces: Mapped[dict[str, Any]]
    instance_uuid: Mapped[str | None] = mapped_column(column.word(36), unique=True)
    chassis_uuid: Mapped[str | None] = mapped_column(column.word(36))
    maintenance: Mapped[bool]
    maintenance_reason: Mapped[str | None] = mapped_column(column.text())
    power_state: Mapped[str | None] = mapped_column(column.word(15))
    target_power_state: Mapped[str | None] = mapped_column(column.word(15))
    provision_state: Mapped[str] = mapped_column(column.word(15))
    target_provision_state: Mapped[str | None] = mapped_column(column.word(15))
    provision_updated_at: Mapped[datetime.datetime | None]
    last_error: Mapped[str | None] = mapped_column(column.text())
    reservation: Mapped[str | None] = mapped_column(column.word(255))
    created_at: Mapped[datetime.datetime] = mapped_column(default=utcnow)
    updated_at: Mapped[datetime.datetime | None] = mapped_column(onupdate=utcnow)


class NodeTrait(Base):
    """A trait that a node has."""

    __tablename__ = "node_traits"
    node_id: Mapped[int] = mapped_column(
        sa.ForeignKey("nodes.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    )
    trait: Mapped[str] = mapped_column(column.word(255), primary_key=True, index=True)
