"""Blazar's tables, as its newest migrations leave them: read, never written."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa

# A row: values keyed by the name of the column.
Row: TypeAlias = Mapping[str, Any]

TIMES = {"created_at": sa.DateTime, "updated_at": sa.DateTime}
# What is read of each table, by column.
COLUMNS: dict[str, dict[str, type[sa.types.TypeEngine[Any]]]] = {
    "computehosts": {
        **dict.fromkeys(
            ("id", "hypervisor_hostname", "service_name", "cpu_info"), sa.String
        ),
        **dict.fromkeys(("hypervisor_type", "availability_zone"), sa.String),
        **dict.fromkeys(("vcpus", "memory_mb", "local_gb"), sa.Integer),
        "hypervisor_version": sa.Integer,
        "reservable": sa.Boolean,
        **TIMES,
    },
    "resource_properties": {
        **dict.fromkeys(("id", "resource_type", "property_name"), sa.String),
        "private": sa.Boolean,
    },
    "computehost_extra_capabilities": dict.fromkeys(
        ("id", "computehost_id", "property_id", "capability_value"), sa.String
    ),
    "leases": {
        **dict.fromkeys(("id", "name", "user_id", "project_id", "status"), sa.String),
        **dict.fromkeys(("start_date", "end_date"), sa.DateTime),
        **TIMES,
    },
    "reservations": {
        **dict.fromkeys(("id", "lease_id", "resource_id"), sa.String),
        **dict.fromkeys(("resource_type", "status"), sa.String),
        **dict.fromkeys(("missing_resources", "resources_changed"), sa.Boolean),
        **TIMES,
    },
    "instance_reservations": {
        **dict.fromkeys(("id", "reservation_id", "flavor_id"), sa.String),
        **dict.fromkeys(("resource_properties", "server_group_id"), sa.String),
        **dict.fromkeys(("vcpus", "memory_mb", "disk_gb", "amount"), sa.Integer),
        "aggregate_id": sa.Integer,
        "affinity": sa.Boolean,
    },
    "events": {
        **dict.fromkeys(("id", "lease_id", "event_type", "status"), sa.String),
        "time": sa.DateTime,
        **TIMES,
    },
    "computehost_allocations": dict.fromkeys(
        ("id", "compute_host_id", "reservation_id"), sa.String
    ),
    "floatingips": {"id": sa.String},
}


class NotBlazar(ValueError):
    """The database is not one of Blazar, or its schema is not the newest."""


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """What a database of Blazar has.

    ``capabilities`` are rows with the columns ``computehost_id``, ``name`` and
    ``value``; ``private`` names those for administrators only. ``wishes`` are the rows
    of instance reservations, keyed by their id, which reservations have as their
    ``resource_id``; ``slots`` how many a reservation has on each host, keyed by its id,
    then by that of the host.
    """

    hosts: Sequence[Row]
    capabilities: Sequence[Row]
    private: frozenset[str]
    leases: Sequence[Row]
    reservations: Mapping[str, Sequence[Row]]
    wishes: Mapping[str, Row]
    events: Mapping[str, Sequence[Row]]
    slots: Mapping[str, Mapping[str, int]]
    floating_ips: int


def read(connection: sa.Connection) -> Source:
    """Return what a database of Blazar has.

    :raises NotBlazar: a table or a column is missing
    """
    _check(connection)
    capabilities = _read(connection, "computehost_extra_capabilities")
    properties = {row["id"]: row for row in _read(connection, "resource_properties")}
    slots: dict[str, Counter[str]] = {}
    for row in _read(connection, "computehost_allocations"):
        there = slots.setdefault(row["reservation_id"], Counter())
        there[row["compute_host_id"]] += 1
    return Source(
        hosts=_read(connection, "computehosts"),
        capabilities=[
            {
                "computehost_id": row["computehost_id"],
                "name": properties[row["property_id"]]["property_name"],
                "value": row["capability_value"],
            }
            for row in capabilities
        ],
        private=frozenset(
            row["property_name"] for row in properties.values() if row["private"]
        ),
        leases=_read(connection, "leases"),
        reservations=_by(_read(connection, "reservations"), "lease_id"),
        wishes={row["id"]: row for row in _read(connection, "instance_reservations")},
        events=_by(_read(connection, "events"), "lease_id"),
        slots=slots,
        floating_ips=len(_read(connection, "floatingips")),
    )


def _check(connection: sa.Connection) -> None:
    inspector = sa.inspect(connection)
    tables = set(inspector.get_table_names())
    for table, columns in COLUMNS.items():
        if table not in tables:
            raise NotBlazar(f"it has no table {table}, which Blazar has")
        there = {column["name"] for column in inspector.get_columns(table)}
        for column in columns:
            if column not in there:
                raise NotBlazar(
                    f"its table {table} has no column {column}: migrate it first, with "
                    "blazar-db-manage upgrade head"
                )


def _read(connection: sa.Connection, name: str) -> list[Row]:
    """Return the rows of a table, the oldest first where times are read."""
    columns = [sa.column(key, kind()) for key, kind in COLUMNS[name].items()]
    table = sa.table(name, *columns)
    order = [column for column in columns if column.name in ("created_at", "id")]
    query = sa.select(*columns).select_from(table)
    rows = connection.execute(query.order_by(*reversed(order))).mappings()
    return [dict(row) for row in rows]


def _by(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[column], []).append(row)
    return found
