"""The migrated schema, column by column, on whatever database the tests run on."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy.dialects import mysql

from placement.db import migration, models
from placement_foundation.database.storage import Database
from tests import backends


@dataclasses.dataclass(frozen=True)
class Table:
    """A table: its columns as "type" or "type?" (nullable), keyed by name, and more.

    Foreign keys are columns, keyed by column, as "table.column". Each table has the
    columns created_at and updated_at, which are not listed.
    """

    columns: dict[str, str]
    primary_key: tuple[str, ...] = ("id",)
    unique: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    indexes: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    foreign_keys: dict[str, str] = dataclasses.field(default_factory=dict)


# What OpenStack Placement knows nothing of.
OWN_TABLES = {*models.OWN.tables, migration.OWN.version_table}
SCHEMA = {
    "resource_providers": Table(
        columns={
            "id": "int",
            "uuid": "str36",
            "name": "str200?",
            "generation": "int?",
            "root_provider_id": "int?",
            "parent_provider_id": "int?",
        },
        unique={
            "uniq_resource_providers0uuid": ("uuid",),
            "uniq_resource_providers0name": ("name",),
        },
        indexes={
            "resource_providers_root_provider_id_idx": ("root_provider_id",),
            "resource_providers_parent_provider_id_idx": ("parent_provider_id",),
        },
        foreign_keys={
            "root_provider_id": "resource_providers.id",
            "parent_provider_id": "resource_providers.id",
        },
    ),
    "resource_classes": Table(
        columns={"id": "int", "name": "str255"},
        unique={"uniq_resource_classes0name": ("name",)},
    ),
    "inventories": Table(
        columns={
            "id": "int",
            "resource_provider_id": "int",
            "resource_class_id": "int",
            "total": "int",
            "reserved": "int",
            "min_unit": "int",
            "max_unit": "int",
            "step_size": "int",
            "allocation_ratio": "float",
        },
        unique={
            "uniq_inventories0resource_provider_resource_class": (
                "resource_provider_id",
                "resource_class_id",
            )
        },
        indexes={"inventories_resource_class_id_idx": ("resource_class_id",)},
    ),
    "allocations": Table(
        columns={
            "id": "int",
            "resource_provider_id": "int",
            "consumer_id": "str36",
            "resource_class_id": "int",
            "used": "int",
        },
        indexes={
            "allocations_resource_provider_class_used_idx": (
                "resource_provider_id",
                "resource_class_id",
                "used",
            ),
            "allocations_resource_class_id_idx": ("resource_class_id",),
            "allocations_consumer_id_idx": ("consumer_id",),
        },
    ),
    "consumers": Table(
        columns={
            "id": "int",
            "uuid": "str36",
            "project_id": "int",
            "user_id": "int",
            "generation": "int",
            "consumer_type_id": "int?",
        },
        unique={"uniq_consumers0uuid": ("uuid",)},
        indexes={
            "consumers_project_id_uuid_idx": ("project_id", "uuid"),
            "consumers_project_id_user_id_uuid_idx": ("project_id", "user_id", "uuid"),
            "consumers_consumer_type_id_idx": ("consumer_type_id",),
        },
        foreign_keys={"consumer_type_id": "consumer_types.id"},
    ),
    "consumer_types": Table(
        columns={"id": "int", "name": "str255"},
        unique={"uniq_consumer_types0name": ("name",)},
    ),
    "projects": Table(
        columns={"id": "int", "external_id": "str255"},
        unique={"uniq_projects0external_id": ("external_id",)},
    ),
    "users": Table(
        columns={"id": "int", "external_id": "str255"},
        unique={"uniq_users0external_id": ("external_id",)},
    ),
    "traits": Table(
        columns={"id": "int", "name": "str255"},
        unique={"uniq_traits0name": ("name",)},
    ),
    "resource_provider_traits": Table(
        columns={"trait_id": "int", "resource_provider_id": "int"},
        primary_key=("trait_id", "resource_provider_id"),
        indexes={
            "resource_provider_traits_resource_provider_trait_idx": (
                "resource_provider_id",
                "trait_id",
            )
        },
        foreign_keys={
            "trait_id": "traits.id",
            "resource_provider_id": "resource_providers.id",
        },
    ),
    "placement_aggregates": Table(
        columns={"id": "int", "uuid": "str36?"},
        unique={"uniq_placement_aggregates0uuid": ("uuid",)},
    ),
    "resource_provider_aggregates": Table(
        columns={"resource_provider_id": "int", "aggregate_id": "int"},
        primary_key=("resource_provider_id", "aggregate_id"),
        indexes={"resource_provider_aggregates_aggregate_id_idx": ("aggregate_id",)},
    ),
}
TIMES = {"created_at": "datetime?", "updated_at": "datetime?"}

# What the databases call a foreign key that has no name, as the tables were made.
FOREIGN_KEY_NAMES = {
    "sqlite": {None, "consumers_consumer_type_id_fkey"},
    "mysql": {
        "resource_providers_ibfk_1",
        "resource_providers_ibfk_2",
        "consumers_consumer_type_id_fkey",
        "resource_provider_traits_ibfk_1",
        "resource_provider_traits_ibfk_2",
    },
    "postgresql": {
        "resource_providers_parent_provider_id_fkey",
        "resource_providers_root_provider_id_fkey",
        "consumers_consumer_type_id_fkey",
        "resource_provider_traits_resource_provider_id_fkey",
        "resource_provider_traits_trait_id_fkey",
    },
}


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with backends.empty_database(tmp_path_factory.mktemp("schema")) as url:
        database = backends.connect(url)
        migration.SCHEMA.upgrade(database)
        yield database
        database.engine.dispose()


@pytest.fixture(scope="module")
def inspector(migrated: Database) -> sa.Inspector:
    return sa.inspect(migrated.engine)


def describe(column: Any) -> str:
    kind = column["type"]
    if isinstance(kind, sa.String):
        name = f"str{kind.length}"
    elif isinstance(kind, sa.Float):
        name = "float"
    elif isinstance(kind, sa.DateTime):
        name = "datetime"
    else:
        assert isinstance(kind, sa.Integer)
        assert not isinstance(kind, sa.BigInteger | sa.SmallInteger)
        name = "int"
    return name + ("?" if column["nullable"] else "")


def test_there_are_these_tables_and_no_others(inspector: sa.Inspector) -> None:
    assert set(inspector.get_table_names()) - OWN_TABLES == {
        *SCHEMA,
        "alembic_version",
    }


@pytest.mark.parametrize("name", SCHEMA)
def test_a_table_has_these_columns_in_this_order(
    inspector: sa.Inspector, name: str
) -> None:
    columns = {
        column["name"]: describe(column) for column in inspector.get_columns(name)
    }
    expected = {**TIMES, **SCHEMA[name].columns}
    assert list(columns.items()) == list(expected.items())


@pytest.mark.parametrize("name", SCHEMA)
def test_a_table_has_these_keys(inspector: sa.Inspector, name: str) -> None:
    table = SCHEMA[name]
    key = inspector.get_pk_constraint(name)
    assert tuple(key["constrained_columns"]) == table.primary_key
    unique = {
        constraint["name"]: tuple(constraint["column_names"])
        for constraint in inspector.get_unique_constraints(name)
    }
    assert unique == table.unique
    references = {
        key["constrained_columns"][0]: (
            f"{key['referred_table']}.{key['referred_columns'][0]}"
        )
        for key in inspector.get_foreign_keys(name)
    }
    assert references == table.foreign_keys


@pytest.mark.parametrize("name", SCHEMA)
def test_a_table_has_these_indexes(inspector: sa.Inspector, name: str) -> None:
    indexes = {
        index["name"]: tuple(index["column_names"])
        for index in inspector.get_indexes(name)
        if not index["unique"]
    }
    assert indexes == SCHEMA[name].indexes


def test_foreign_keys_have_the_names_that_databases_give_them(
    inspector: sa.Inspector,
) -> None:
    names = {
        key["name"] for table in SCHEMA for key in inspector.get_foreign_keys(table)
    }
    assert names == FOREIGN_KEY_NAMES[backends.KIND]


def test_only_the_generation_of_a_consumer_has_a_default_of_the_database(
    inspector: sa.Inspector,
) -> None:
    defaults = {
        (table, column["name"]): str(column["default"]).strip("'()")
        for table in SCHEMA
        for column in inspector.get_columns(table)
        if column["default"] is not None and column["name"] != "id"
    }
    assert defaults == {("consumers", "generation"): "0"}


@pytest.mark.parametrize(
    "name", [name for name, table in SCHEMA.items() if "id" in table.columns]
)
def test_ids_are_counted_by_the_database(migrated: Database, name: str) -> None:
    required = [
        (column, kind)
        for column, kind in SCHEMA[name].columns.items()
        if column != "id" and not kind.endswith("?")
    ]
    table = sa.table(name, sa.column("id"), *(sa.column(key) for key, _ in required))
    rows = [
        {column: str(n) if kind.startswith("str") else n for column, kind in required}
        for n in (5, 6)
    ]
    with migrated.engine.connect() as connection:
        for row in rows:
            connection.execute(sa.insert(table).values(row))
        ids = connection.scalars(sa.select(table.c.id).order_by(table.c.id))
        assert list(ids) == [1, 2]


@pytest.mark.skipif(backends.KIND != "mysql", reason="of MySQL's own types")
def test_types_on_mysql(inspector: sa.Inspector) -> None:
    columns = {
        column["name"]: column["type"]
        for column in inspector.get_columns("inventories")
    }
    # Single precision, and whole seconds.
    assert type(columns["allocation_ratio"]) is mysql.FLOAT
    assert columns["allocation_ratio"].precision is None
    assert isinstance(columns["created_at"], mysql.DATETIME)
    assert columns["created_at"].fsp is None


@pytest.mark.skipif(backends.KIND != "postgresql", reason="of PostgreSQL's own names")
def test_names_on_postgresql(inspector: sa.Inspector) -> None:
    for name in SCHEMA:
        assert inspector.get_pk_constraint(name)["name"] == f"{name}_pkey"
    assert inspector.get_pk_constraint("alembic_version")["name"] == (
        "alembic_version_pkc"
    )
    ids = {
        name: inspector.get_columns(name)[2]["default"]
        for name in SCHEMA
        if "id" in SCHEMA[name].columns
    }
    assert ids == {name: f"nextval('{name}_id_seq'::regclass)" for name in ids}


def test_the_models_describe_the_migrated_schema(migrated: Database) -> None:
    with migrated.engine.connect() as connection:
        options = {
            "compare_server_default": True,
            "include_name": lambda name, kind, parents: name not in OWN_TABLES,
        }
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, models.Base.metadata) == []
