"""Blazar's tables, as its newest migrations leave them: read, never written."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa

# A row: values keyed by the name of the column.
Row: TypeAlias = Mapping[str, Any]

# The columns that are read of each table.
COLUMNS = {
    "computehosts": "id hypervisor_hostname service_name cpu_info hypervisor_type "
    "hypervisor_version availability_zone vcpus memory_mb local_gb reservable "
    "created_at updated_at",
    "resource_properties": "id property_name private",
    "computehost_extra_capabilities": "id computehost_id property_id capability_value",
    "leases": "id name user_id project_id status start_date end_date "
    "created_at updated_at",
    "reservations": "id lease_id resource_id resource_type status missing_resources "
    "resources_changed created_at updated_at",
    "instance_reservations": "id reservation_id flavor_id resource_properties "
    "server_group_id vcpus memory_mb disk_gb amount aggregate_id affinity",
    "events": "id lease_id event_type status time created_at updated_at",
    "computehost_allocations": "id compute_host_id reservation_id",
    "floatingips": "id",
}


class NotBlazar(ValueError):
    """The database is not one of Blazar, or its schema is not the newest."""


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """The content of a database of Blazar.

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
    """Return the content of a database of Blazar.

    :raises NotBlazar: a table or a column is missing
    """
    properties = {row["id"]: row for row in _read(connection, "resource_properties")}
    capabilities = _read(connection, "computehost_extra_capabilities")
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


def _read(connection: sa.Connection, name: str) -> list[Row]:
    """Return the rows of a table, the oldest first where times are read."""
    try:
        table = sa.Table(
            name, sa.MetaData(), autoload_with=connection, resolve_fks=False
        )
    except sa.exc.NoSuchTableError as exc:
        raise NotBlazar(f"it has no table {name}, which Blazar has") from exc
    names = COLUMNS[name].split()
    for column in names:
        if column not in table.c:
            raise NotBlazar(
                f"its table {name} has no column {column}: migrate it first, with "
                "blazar-db-manage upgrade head"
            )
    order = [table.c[column] for column in ("created_at", "id") if column in names]
    query = sa.select(*(table.c[column] for column in names)).order_by(*order)
    return [dict(row) for row in connection.execute(query).mappings()]


def _by(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[column], []).append(row)
    return groups
