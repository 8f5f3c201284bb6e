"""The tables: columns and constraints, nothing else."""

import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from placement_foundation.clock import utc_now
from placement_foundation.database import column


class Base(orm.DeclarativeBase):
    """What both tables have in common: nothing."""


class Node(Base):
    """A machine."""

    __tablename__ = "nodes"
    __table_args__ = (
        sa.UniqueConstraint("uuid", name="uniq_nodes0uuid"),
        sa.UniqueConstraint("name", name="uniq_nodes0name"),
        sa.UniqueConstraint("instance_uuid", name="uniq_nodes0instance_uuid"),
    )

    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    uuid: orm.Mapped[str] = orm.mapped_column(column.word(36))
    name: orm.Mapped[str | None] = orm.mapped_column(column.word(255))
    driver: orm.Mapped[str] = orm.mapped_column(column.word(255))
    resource_class: orm.Mapped[str | None] = orm.mapped_column(column.word(80))
    properties: orm.Mapped[dict[str, Any]] = orm.mapped_column(column.Document)
    extra: orm.Mapped[dict[str, Any]] = orm.mapped_column(column.Document)
    driver_info: orm.Mapped[dict[str, Any]] = orm.mapped_column(column.Document)
    instance_info: orm.Mapped[dict[str, Any]] = orm.mapped_column(column.Document)
    interfaces: orm.Mapped[dict[str, Any]] = orm.mapped_column(column.Document)
    instance_uuid: orm.Mapped[str | None] = orm.mapped_column(column.word(36))
    chassis_uuid: orm.Mapped[str | None] = orm.mapped_column(column.word(36))
    maintenance: orm.Mapped[bool]
    maintenance_reason: orm.Mapped[str | None] = orm.mapped_column(column.text())
    power_state: orm.Mapped[str | None] = orm.mapped_column(column.word(15))
    target_power_state: orm.Mapped[str | None] = orm.mapped_column(column.word(15))
    provision_state: orm.Mapped[str] = orm.mapped_column(column.word(15))
    target_provision_state: orm.Mapped[str | None] = orm.mapped_column(column.word(15))
    provision_updated_at: orm.Mapped[datetime.datetime | None] = orm.mapped_column(
        column.moment()
    )
    last_error: orm.Mapped[str | None] = orm.mapped_column(column.text())
    reservation: orm.Mapped[str | None] = orm.mapped_column(column.word(255))
    created_at: orm.Mapped[datetime.datetime] = orm.mapped_column(
        column.moment(), default=utc_now
    )
    updated_at: orm.Mapped[datetime.datetime | None] = orm.mapped_column(
        column.moment(), onupdate=utc_now
    )


class NodeTrait(Base):
    """A trait that a node has."""

    __tablename__ = "node_traits"
    __table_args__ = (sa.Index("node_traits_trait_idx", "trait"),)

    node_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey("nodes.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    )
    trait: orm.Mapped[str] = orm.mapped_column(column.word(255), primary_key=True)
