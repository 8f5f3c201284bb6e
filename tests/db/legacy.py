"""A small cloud, in rows as OpenStack Placement writes them.

Ids are counted by the database, which starts at 1, except those of resource classes.
"""

import datetime
from typing import Any

import os_resource_classes
import sqlalchemy as sa

from placement.db import migration
from placement_foundation.database.storage import Database

TABLES, ROOTS, CONSUMERS, CONSUMER_TYPES, HEAD = (
    "b4ed3a175331",
    "611cd6dffd7b",
    "b5c396305c25",
    "422ece571366",
    "a082b8bb98d0",
)
REVISIONS = [TABLES, ROOTS, CONSUMERS, CONSUMER_TYPES, HEAD]

HOST = "1d6f5d3c-5d5c-4d6c-9f7e-0d6d5c9f3a01"
NUMA = "1d6f5d3c-5d5c-4d6c-9f7e-0d6d5c9f3a02"
SHARED = "1d6f5d3c-5d5c-4d6c-9f7e-0d6d5c9f3a03"
OLD_HOST = "1d6f5d3c-5d5c-4d6c-9f7e-0d6d5c9f3a04"
AGGREGATE = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"
SERVER = "7c4f6d5e-92a0-4a6c-8f0e-3d9a5bb7c001"
VOLUME = "7c4f6d5e-92a0-4a6c-8f0e-3d9a5bb7c002"
# It has allocations and, until it is repaired, nothing else.
ORPHAN = "7c4f6d5e-92a0-4a6c-8f0e-3d9a5bb7c003"
PROJECT, USER = "c9b1d5e0a4d54a3f8c3b7b1f0e5d6a7b", "a3e5c7d9b1f04f6e8d2c4b6a80917263"
NOBODY = "00000000-0000-0000-0000-000000000000"

TIMES = ("created_at", "updated_at")
CREATED = datetime.datetime(2018, 5, 30, 12, 30, 15)
UPDATED = datetime.datetime(2018, 6, 1, 8, 0, 1)


def fill(database: Database) -> None:
    """Write the cloud into a database at any revision."""
    revision = migration.SCHEMA.version(database)
    with database.engine.begin() as connection:
        _fill_classes(connection)
        _fill_providers(connection)
        _fill_consumers(connection)
        if revision in (CONSUMER_TYPES, HEAD):
            insert(connection, "consumer_types", {"name": "INSTANCE"})
            execute(
                connection, "UPDATE consumers SET consumer_type_id = 1 WHERE id = 1"
            )


def add_provider_without_root(database: Database) -> None:
    """Write a provider from the time before trees."""
    with database.engine.begin() as connection:
        insert(
            connection,
            "resource_providers",
            {"uuid": OLD_HOST, "name": "old host", "generation": 3},
        )


def add_allocation_without_consumer(database: Database) -> None:
    """Write an allocation from the time before consumers."""
    with database.engine.begin() as connection:
        insert(connection, "allocations", _allocation(1, ORPHAN, 0, 2))


def execute(connection: sa.Connection, statement: str) -> None:
    """Run a statement as it is."""
    connection.exec_driver_sql(statement)


def insert(connection: sa.Connection, table: str, *rows: dict[str, Any]) -> None:
    """Insert rows one by one, so that their ids are in their order."""
    for row in rows:
        values = {"created_at": CREATED, "updated_at": None, **row}
        columns: list[sa.ColumnClause[Any]] = [
            sa.column(name, sa.DateTime() if name in TIMES else None) for name in values
        ]
        connection.execute(sa.insert(sa.table(table, *columns)).values(values))


def _fill_classes(connection: sa.Connection) -> None:
    mysql = connection.dialect.name == "mysql"
    if mysql:
        mode = connection.exec_driver_sql("SELECT @@sql_mode").scalar()
        execute(connection, "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
    insert(
        connection,
        "resource_classes",
        *(
            {"id": position, "name": name}
            for position, name in enumerate(os_resource_classes.STANDARDS[:18])
        ),
        {"id": 10000, "name": "CUSTOM_IRON"},
    )
    if mysql:
        execute(connection, f"SET SESSION sql_mode = '{mode}'")


def _fill_providers(connection: sa.Connection) -> None:
    insert(
        connection,
        "resource_providers",
        {"uuid": HOST, "name": "host", "generation": 5},
    )
    execute(connection, "UPDATE resource_providers SET root_provider_id = 1")
    insert(
        connection,
        "resource_providers",
        {
            "uuid": NUMA,
            "name": "numa0",
            "generation": 1,
            "root_provider_id": 1,
            "parent_provider_id": 1,
        },
        {
            "uuid": SHARED,
            "name": "disks",
            "generation": 2,
            "root_provider_id": 1,
            "updated_at": UPDATED,
        },
    )
    execute(
        connection, "UPDATE resource_providers SET root_provider_id = 3 WHERE id = 3"
    )
    insert(
        connection,
        "inventories",
        _inventory(1, 0, 16, allocation_ratio=1.5),
        _inventory(2, 1, 32768, reserved=1024, step_size=256, updated_at=UPDATED),
        _inventory(3, 2, 2000),
        _inventory(1, 10000, 1),
    )
    insert(
        connection,
        "traits",
        *({"name": name} for name in ["HW_CPU_X86_AVX2", "MISC_SHARES_VIA_AGGREGATE"]),
        {"name": "CUSTOM_RACK_1"},
    )
    insert(
        connection,
        "resource_provider_traits",
        {"resource_provider_id": 1, "trait_id": 1},
        {"resource_provider_id": 1, "trait_id": 3},
        {"resource_provider_id": 3, "trait_id": 2},
    )
    insert(connection, "placement_aggregates", {"uuid": AGGREGATE})
    insert(
        connection,
        "resource_provider_aggregates",
        {"resource_provider_id": 1, "aggregate_id": 1},
        {"resource_provider_id": 3, "aggregate_id": 1},
    )


def _fill_consumers(connection: sa.Connection) -> None:
    insert(connection, "projects", {"external_id": PROJECT})
    insert(connection, "users", {"external_id": USER})
    owner = {"project_id": 1, "user_id": 1}
    insert(
        connection,
        "consumers",
        {"uuid": SERVER, "generation": 1, "updated_at": UPDATED, **owner},
        {"uuid": VOLUME, "generation": 4, **owner},
    )
    insert(
        connection,
        "allocations",
        _allocation(1, SERVER, 0, 4),
        _allocation(2, SERVER, 1, 2048),
        _allocation(3, SERVER, 2, 20),
        _allocation(3, VOLUME, 2, 100),
    )


def _inventory(provider: int, resource_class: int, total: int, **row: Any) -> Any:
    return {
        "resource_provider_id": provider,
        "resource_class_id": resource_class,
        "total": total,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": total,
        "step_size": 1,
        "allocation_ratio": 1.0,
        **row,
    }


def _allocation(provider: int, consumer: str, resource_class: int, used: int) -> Any:
    return {
        "resource_provider_id": provider,
        "consumer_id": consumer,
        "resource_class_id": resource_class,
        "used": used,
    }
