"""Create the tables."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from placement_foundation.database import step

revision = "5f0c2d81a9e4"
down_revision = None

UUID = sa.String(36)
NAME = sa.String(255).with_variant(
    mysql.VARCHAR(255, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)
MOMENT = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def upgrade() -> None:
    create_leases()
    create_hosts()
    create_slots()
    create_books()


def create_leases() -> None:
    create_table(
        "leases",
        sa.Column("id", UUID, primary_key=True),
        column("name", NAME),
        column("user_id", NAME),
        column("project_id", NAME),
        column("start_date", MOMENT),
        column("end_date", MOMENT),
        column("status", sa.String(16)),
        column("degraded", sa.Boolean),
        leases_project_id_idx=["project_id"],
    )
    create_table(
        "reservations",
        sa.Column("id", UUID, primary_key=True),
        column("lease_id", UUID),
        column("position", sa.Integer),
        column("resource_type", sa.String(66)),
        column("resource_id", UUID),
        column("status", sa.String(16)),
        column("missing_resources", sa.Boolean),
        column("resources_changed", sa.Boolean),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], ondelete="CASCADE"),
        sa.UniqueConstraint("lease_id", "position", name="uniq_reservations0position"),
    )
    create_table(
        "instance_reservations",
        sa.Column("id", UUID, primary_key=True),
        column("reservation_id", UUID),
        column("vcpus", sa.Integer),
        column("memory_mb", sa.Integer),
        column("disk_gb", sa.Integer),
        column("amount", sa.Integer),
        sa.Column("affinity", sa.Boolean, nullable=True),
        column("resource_properties", sa.Text),
        column("flavor_id", UUID),
        sa.ForeignKeyConstraint(
            ["reservation_id"], ["reservations.id"], ondelete="CASCADE"
        ),
        sa.UniqueConstraint(
            "reservation_id", name="uniq_instance_reservations0reservation_id"
        ),
    )
    create_table(
        "events",
        sa.Column("id", UUID, primary_key=True),
        column("lease_id", UUID),
        column("event_type", sa.String(66)),
        column("time", MOMENT),
        column("status", sa.String(16)),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], ondelete="CASCADE"),
        sa.UniqueConstraint("lease_id", "event_type", name="uniq_events0lease_type"),
        events_status_time_idx=["status", "time"],
    )


def create_hosts() -> None:
    create_table(
        "computehosts",
        sa.Column("id", sa.Integer, primary_key=True),
        column("hypervisor_hostname", NAME),
        column("service_name", NAME),
        column("vcpus", sa.Integer),
        column("memory_mb", sa.Integer),
        column("local_gb", sa.Integer),
        column("cpu_info", sa.Text),
        column("hypervisor_type", NAME),
        column("hypervisor_version", sa.Integer),
        column("availability_zone", NAME),
        sa.Column("status", sa.String(13), nullable=True),
        column("reservable", sa.Boolean),
        sa.UniqueConstraint(
            "hypervisor_hostname", name="uniq_computehosts0hypervisor_hostname"
        ),
    )
    create_table(
        "computehost_extra_capabilities",
        sa.Column("id", sa.Integer, primary_key=True),
        column("computehost_id", sa.Integer),
        column("name", NAME),
        column("value", sa.Text),
        sa.ForeignKeyConstraint(
            ["computehost_id"], ["computehosts.id"], ondelete="CASCADE"
        ),
        sa.UniqueConstraint(
            "computehost_id", "name", name="uniq_computehost_extra_capabilities0name"
        ),
    )
    create_table(
        "host_properties",
        sa.Column("name", NAME, primary_key=True),
        column("private", sa.Boolean),
    )


def create_slots() -> None:
    create_table(
        "computehost_allocations",
        sa.Column("id", sa.Integer, primary_key=True),
        column("computehost_id", sa.Integer),
        column("reservation_id", UUID),
        column("start_date", MOMENT),
        column("end_date", MOMENT),
        column("vcpus", sa.Integer),
        column("memory_mb", sa.Integer),
        column("disk_gb", sa.Integer),
        column("wanted", sa.Boolean),
        sa.ForeignKeyConstraint(["computehost_id"], ["computehosts.id"]),
        sa.ForeignKeyConstraint(
            ["reservation_id"], ["reservations.id"], ondelete="CASCADE"
        ),
        computehost_allocations_host_end_idx=["computehost_id", "end_date"],
        computehost_allocations_reservation_id_idx=["reservation_id"],
    )
    create_table(
        "flavors",
        sa.Column("id", UUID, primary_key=True),
        column("name", NAME),
        column("vcpus", sa.Integer),
        column("ram", sa.Integer),
        column("disk", sa.Integer),
        column("resource_class", NAME),
        sa.Column("project_id", NAME, nullable=True),
    )


def create_books() -> None:
    create_table(
        "claims",
        sa.Column("subject", NAME, primary_key=True),
        column("holder", UUID),
        column("operation", sa.String(16)),
        column("document", sa.Text),
        column("expires_at", MOMENT),
    )
    create_table(
        "debts",
        sa.Column("id", sa.Integer, primary_key=True),
        column("subject", NAME),
        sa.Column("reservation_id", UUID, nullable=True),
        sa.Column("hypervisor_hostname", NAME, nullable=True),
        sa.Column("provider_uuid", UUID, nullable=True),
        debts_subject_idx=["subject"],
    )


def column(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def create_table(name: str, *parts: Any, **indexes: Sequence[str]) -> None:
    # MariaDB commits each statement: an earlier attempt may have ended anywhere.
    op.create_table(
        name,
        column("created_at", MOMENT),
        sa.Column("updated_at", MOMENT, nullable=True),
        *parts,
        mysql_charset="utf8mb4",
        if_not_exists=True,
    )
    for index, columns in indexes.items():
        step.create_index(index, name, columns)
