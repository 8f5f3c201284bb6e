"""A database of OpenStack Placement, taken over: the API shows what was in it."""

from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from placement import app, conf
from placement.cmd import online_data_migrations
from placement.db import migration
from placement.objects import standard_name
from placement.objects.ledger import Ledger
from placement_foundation.database.migration import MigrationError
from placement_foundation.database.storage import Database
from tests import backends, settings
from tests.client import Client
from tests.db import legacy
from tests.db.legacy import (
    AGGREGATE,
    HOST,
    NOBODY,
    NUMA,
    OLD_HOST,
    ORPHAN,
    PROJECT,
    SERVER,
    SHARED,
    USER,
    VOLUME,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

# All tables before consumer types, referring ones last.
TABLES = [
    "resource_providers",
    "resource_classes",
    "inventories",
    "traits",
    "resource_provider_traits",
    "placement_aggregates",
    "resource_provider_aggregates",
    "projects",
    "users",
    "consumers",
    "allocations",
]


def send(
    application: "WSGIApplication",
    method: str,
    path: str,
    body: Any = None,
    version: str = "1.39",
) -> Any:
    """Return the status if there is no document, else the document."""
    answer = Client(application).call(method, path, body, version)
    return answer.status if answer.document is None else answer.document


def take_over(database: Database) -> "WSGIApplication":
    """Do what an operator does, and return the service."""
    migration.SCHEMA.upgrade(database)
    standard_name.synchronise(Ledger(database))
    return app.build(settings.make_config(), database)


def check_answers(application: "WSGIApplication", consumer_type: str) -> None:
    """See that the API shows the cloud, and lets it be changed."""
    providers = send(application, "GET", "/resource_providers")["resource_providers"]
    assert {
        provider["name"]: (
            provider["uuid"],
            provider["generation"],
            provider["parent_provider_uuid"],
            provider["root_provider_uuid"],
        )
        for provider in providers
    } == {
        "host": (HOST, 5, None, HOST),
        "numa0": (NUMA, 1, HOST, HOST),
        "disks": (SHARED, 2, None, SHARED),
    }
    check_inventories(application)
    check_qualities(application)
    check_consumers(application, consumer_type)
    check_names(application)
    check_candidates(application)
    check_claims(application, consumer_type)


def check_inventories(application: "WSGIApplication") -> None:
    inventories = send(application, "GET", f"/resource_providers/{HOST}/inventories")
    assert inventories == {
        "resource_provider_generation": 5,
        "inventories": {
            "VCPU": {
                "total": 16,
                "reserved": 0,
                "min_unit": 1,
                "max_unit": 16,
                "step_size": 1,
                "allocation_ratio": 1.5,
            },
            "CUSTOM_IRON": {
                "total": 1,
                "reserved": 0,
                "min_unit": 1,
                "max_unit": 1,
                "step_size": 1,
                "allocation_ratio": 1.0,
            },
        },
    }
    usages = send(application, "GET", f"/resource_providers/{SHARED}/usages")
    assert usages == {"resource_provider_generation": 2, "usages": {"DISK_GB": 120}}


def check_qualities(application: "WSGIApplication") -> None:
    traits = send(application, "GET", f"/resource_providers/{HOST}/traits")
    assert sorted(traits["traits"]) == ["CUSTOM_RACK_1", "HW_CPU_X86_AVX2"]
    aggregates = send(application, "GET", f"/resource_providers/{SHARED}/aggregates")
    assert aggregates["aggregates"] == [AGGREGATE]


def check_consumers(application: "WSGIApplication", consumer_type: str) -> None:
    assert send(application, "GET", f"/allocations/{SERVER}") == {
        "allocations": {
            HOST: {"generation": 5, "resources": {"VCPU": 4}},
            NUMA: {"generation": 1, "resources": {"MEMORY_MB": 2048}},
            SHARED: {"generation": 2, "resources": {"DISK_GB": 20}},
        },
        "consumer_generation": 1,
        "consumer_type": consumer_type,
        "project_id": PROJECT,
        "user_id": USER,
    }
    volume = send(application, "GET", f"/allocations/{VOLUME}")
    assert volume["consumer_type"] == "unknown"
    usages = send(application, "GET", f"/usages?project_id={PROJECT}", version="1.37")
    assert usages == {"usages": {"VCPU": 4, "MEMORY_MB": 2048, "DISK_GB": 120}}


def check_names(application: "WSGIApplication") -> None:
    classes = send(application, "GET", "/resource_classes")["resource_classes"]
    names = [resource_class["name"] for resource_class in classes]
    assert len(names) == 22
    assert {"VCPU", "CUSTOM_IRON", "NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC"} < {*names}
    custom = send(application, "GET", "/traits?name=startswith:CUSTOM_")
    assert custom == {"traits": ["CUSTOM_RACK_1"]}


def check_candidates(application: "WSGIApplication") -> None:
    candidates = send(
        application,
        "GET",
        "/allocation_candidates?resources=VCPU:1,DISK_GB:10&required=CUSTOM_RACK_1",
    )
    [request] = candidates["allocation_requests"]
    assert request["allocations"] == {
        HOST: {"resources": {"VCPU": 1}},
        SHARED: {"resources": {"DISK_GB": 10}},
    }


def check_claims(application: "WSGIApplication", consumer_type: str) -> None:
    """Change old rows and add new ones, everywhere."""
    claim = {
        "allocations": {HOST: {"resources": {"VCPU": 8, "CUSTOM_IRON": 1}}},
        "consumer_generation": 1,
        "consumer_type": "INSTANCE",
        "project_id": PROJECT,
        "user_id": "another user",
    }
    assert send(application, "PUT", f"/allocations/{SERVER}", claim) == 204
    usages = send(application, "GET", f"/resource_providers/{HOST}/usages")
    assert usages["usages"] == {"VCPU": 8, "CUSTOM_IRON": 1}
    new = {"name": "new host", "parent_provider_uuid": None}
    made = send(application, "POST", "/resource_providers", new)
    assert made["generation"] == 0
    assert send(application, "PUT", "/traits/CUSTOM_NEW") == 201
    new_class = "/resource_classes/CUSTOM_NEW"
    assert send(application, "PUT", new_class) == 201
    inventory = {
        "resource_provider_generation": 0,
        "inventories": {"VCPU": {"total": 4}, "CUSTOM_NEW": {"total": 2}},
    }
    path = f"/resource_providers/{made['uuid']}"
    changed = send(application, "PUT", f"{path}/inventories", inventory)
    assert changed["resource_provider_generation"] == 1
    assert send(application, "DELETE", f"/allocations/{VOLUME}") == 204
    assert send(application, "DELETE", path) == 204


@pytest.mark.parametrize("revision", legacy.REVISIONS)
def test_a_database_of_any_revision_is_taken_over(
    empty: Database, revision: str
) -> None:
    migration.SCHEMA.upgrade(empty, revision)
    legacy.fill(empty)
    typed = revision in (legacy.CONSUMER_TYPES, legacy.HEAD)
    check_answers(take_over(empty), "INSTANCE" if typed else "unknown")


@pytest.mark.parametrize("revision", [legacy.TABLES, legacy.ROOTS])
def test_a_database_with_gaps_is_repaired_and_taken_over(
    empty: Database, revision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    migration.SCHEMA.upgrade(empty, revision)
    legacy.fill(empty)
    legacy.add_provider_without_root(empty)
    legacy.add_allocation_without_consumer(empty)
    with pytest.raises(MigrationError, match="There is at least one"):
        migration.SCHEMA.upgrade(empty)
    assert online_data_migrations.run(Ledger(empty), conf.Settings(), None) == 0
    check_repaired(take_over(empty))


def test_rows_that_others_left_incomplete_are_repaired_in_place(
    empty: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    migration.SCHEMA.upgrade(empty)
    legacy.fill(empty)
    legacy.add_provider_without_root(empty)
    legacy.add_allocation_without_consumer(empty)
    application = take_over(empty)
    unseen = send(application, "GET", f"/resource_providers/{OLD_HOST}")
    assert unseen["errors"][0]["status"] == 404
    assert send(application, "GET", f"/allocations/{ORPHAN}") == {"allocations": {}}
    usages = send(application, "GET", f"/resource_providers/{HOST}/usages")
    assert usages["usages"]["VCPU"] == 6
    assert online_data_migrations.run(Ledger(empty), conf.Settings(), None) == 0
    check_repaired(application)


def check_repaired(application: "WSGIApplication") -> None:
    seen = send(application, "GET", f"/resource_providers/{OLD_HOST}")
    assert seen["root_provider_uuid"] == OLD_HOST
    orphan = send(application, "GET", f"/allocations/{ORPHAN}")
    assert orphan["project_id"] == orphan["user_id"] == NOBODY
    assert orphan["consumer_type"] == "unknown"
    assert orphan["consumer_generation"] == 0


def test_columns_of_the_compute_service_do_no_harm(empty: Database) -> None:
    migration.SCHEMA.upgrade(empty, legacy.TABLES)
    with empty.engine.begin() as connection:
        for table in ("resource_providers", "consumers", "inventories"):
            legacy.execute(connection, f"ALTER TABLE {table} ADD can_host INTEGER")
    legacy.fill(empty)
    check_answers(take_over(empty), "unknown")
    columns = sa.inspect(empty.engine).get_columns("consumers")
    assert "can_host" in [column["name"] for column in columns]


@pytest.mark.skipif(backends.KIND != "mysql", reason="of MySQL's own character sets")
@pytest.mark.parametrize("tables", [TABLES, TABLES[::2]])
def test_tables_in_latin1_do_no_harm(empty: Database, tables: list[str]) -> None:
    migration.SCHEMA.upgrade(empty, legacy.TABLES)
    with empty.engine.begin() as connection:
        for table in tables:
            legacy.execute(
                connection, f"ALTER TABLE {table} CONVERT TO CHARACTER SET latin1"
            )
    legacy.fill(empty)
    application = take_over(empty)
    provider = {"name": "\N{SNOWMAN}"}
    refused = send(application, "POST", "/resource_providers", provider)
    assert refused["errors"][0]["status"] == 400
    check_answers(application, "unknown")


@pytest.mark.skipif(backends.KIND != "mysql", reason="of MySQL's own character sets")
def test_binary_names_do_no_harm(empty: Database) -> None:
    migration.SCHEMA.upgrade(empty)
    with empty.engine.begin() as connection:
        for table, length in (("resource_providers", 200), ("traits", 255)):
            legacy.execute(
                connection,
                f"ALTER TABLE {table} MODIFY name VARCHAR({length}) "
                "CHARACTER SET latin1 COLLATE latin1_bin",
            )
    legacy.fill(empty)
    check_answers(take_over(empty), "INSTANCE")
