"""``placement-reservations import --from-blazar``."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from placement_foundation.database.storage import Database
from placement_reservations.cmd import reservations as command
from placement_reservations.db import models
from placement_reservations.lifecycle import termination
from placement_reservations.store import event as events
from placement_reservations.store import flavor as flavors
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases
from tests.reservations.blazar import database
from tests.reservations.blazar.database import CREATED, Blazar, table_of
from tests.reservations.cloud import DAY, HOUR, TODAY, Cloud, make_cloud

GPU = '["==", "$gpu", "True"]'
Import = Callable[..., int]


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Blazar]:
    with database.empty(tmp_path_factory.mktemp("blazar")) as made:
        yield made


@pytest.fixture
def blazar(migrated: Blazar) -> Blazar:
    migrated.clear()
    return migrated


@pytest.fixture
def run(
    blazar: Blazar, books_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Import:
    """Give the command, to be run with further arguments."""
    path = tmp_path / "placement-reservations.conf"
    lines = ["[database]", f"connection = {books_url.replace('%', '%%')}"]
    path.write_text("\n".join([*lines, "[api]", "auth_strategy = noauth2", ""]))
    words = ["import", "--config-file", str(path), "--from-blazar", blazar.url]
    return lambda *more: command.main([*words, *more])


@pytest.fixture
def new_cloud(application: Any, books: Database) -> Cloud:
    """Give Placement with the two hosts, and a service without any."""
    cloud = make_cloud(application, books)
    for name in ("compute-1", "compute-2"):
        cloud.make_host(name)
    return cloud


def fill(blazar: Blazar) -> dict[str, str]:
    """Return the leases of a small deployment, by name."""
    blazar.add_host("12", "compute-1", gpu="True", rack="r1")
    blazar.add_host("c1f5b4a3-1f0e-4b8e-9a51-0d6c3b2a1f00", "compute-2")
    blazar.change("resource_properties", blazar.property_id("rack"), private=True)
    times = {
        "ACTIVE": TODAY - HOUR,
        "PENDING": TODAY + DAY,
        "TERMINATED": TODAY - DAY,
    }
    other = "c1f5b4a3-1f0e-4b8e-9a51-0d6c3b2a1f00"
    slots = {"ACTIVE": {"12": 2, other: 1}, "PENDING": {"12": 3}, "TERMINATED": {}}
    return {
        status: blazar.add_lease(
            slots[status],
            status,
            start=start,
            name=status.lower(),
            properties=GPU if status == "PENDING" else "",
        )
        for status, start in times.items()
    }


def count(books: Database) -> dict[str, int]:
    """Return how many rows each table has."""

    def work(connection: sa.Connection) -> dict[str, int]:
        return {
            name: connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0
            for name, table in models.Base.metadata.tables.items()
        }

    return books.read(work)


def test_a_dry_run_says_what_is_carried_and_writes_nothing(
    blazar: Blazar, run: Import, books: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    known = fill(blazar)
    assert run() == 0
    told = capsys.readouterr().out
    assert "host 12 compute-1: 8 processors, 8192 MB, 100 GB gpu=True rack=r1" in told
    assert "host 13 compute-2: " in told
    assert (
        f"lease {known['PENDING']} pending: PENDING, 3 slots, 2030-03-05 12:00" in told
    )
    assert "2 hosts, and 3 leases (1 ACTIVE, 1 PENDING, 1 TERMINATED)" in told
    reservation = blazar.reservation_of(known["ACTIVE"])
    assert f"Blazar's host aggregate 7 of reservation {reservation} stays" in told
    assert "Nothing was written." in told
    assert not any(count(books).values())


def test_hosts_and_leases_are_carried_as_they_are(
    blazar: Blazar, run: Import, new_cloud: Cloud
) -> None:
    known = fill(blazar)
    assert run("--write") == 0
    host = new_cloud.host("compute-1")
    assert (host.id, host.capabilities) == (12, {"gpu": "True", "rack": "r1"})
    assert host.details.service_name == "service-of-compute-1"
    assert host.created_at == CREATED
    properties = new_cloud.world.database.read(hosts.list_properties)
    assert {each.name: each.private for each in properties} == {
        "gpu": False,
        "rack": True,
    }
    for status, lease_id in known.items():
        lease = new_cloud.lease(lease_id)
        assert (lease.name, lease.status) == (status.lower(), status)
        assert (lease.user_id, lease.project_id) == ("ann", "blue")
        assert lease.created_at == CREATED
        (reservation,) = lease.reservations
        assert reservation.id == blazar.reservation_of(lease_id)
        assert [event.event_type for event in lease.events] == [
            "start_lease",
            "end_lease",
            "before_end_lease",
        ]
    assert new_cloud.events(known["ACTIVE"]) == {
        "start_lease": "DONE",
        "before_end_lease": "DONE",
        "end_lease": "UNDONE",
    }
    assert sorted(new_cloud.slots(known["ACTIVE"])) == [12, 12, 13]
    assert new_cloud.slots(known["PENDING"]) == [12, 12, 12]
    # The next host has a number that is free.
    new_cloud.make_host("compute-3")
    new_cloud.register("compute-3")
    assert new_cloud.host("compute-3").id == 14


def test_what_is_carried_goes_on_as_promised(
    blazar: Blazar, run: Import, new_cloud: Cloud
) -> None:
    known = fill(blazar)
    assert run("--write") == 0
    new_cloud.turn()
    assert new_cloud.pool() == {"compute-1", "compute-2"}
    new_cloud.turn()
    new_cloud.assert_consistent()
    assert not new_cloud.lease(known["ACTIVE"]).degraded
    assert new_cloud.boot(known["ACTIVE"])
    mine = new_cloud.world.database.read(
        lambda connection: flavors.list_flavors(connection, "blue")
    )
    assert [each.id for each in mine] == [blazar.reservation_of(known["ACTIVE"])]
    new_cloud.turn(advance=2 * HOUR)
    assert new_cloud.status(known["ACTIVE"]) == "TERMINATED"
    new_cloud.turn(advance=DAY - 2 * HOUR)
    assert new_cloud.status(known["PENDING"]) == "ACTIVE"
    assert new_cloud.boot(known["PENDING"])
    new_cloud.assert_consistent()
    for lease in known.values():
        termination.delete(new_cloud.world, lease)
    assert new_cloud.inventories() == {}
    assert new_cloud.classes() == set()


def test_what_blazar_made_in_placement_is_used(
    blazar: Blazar, run: Import, new_cloud: Cloud
) -> None:
    lease = fill(blazar)["ACTIVE"]
    name = leases.resource_class_of(blazar.reservation_of(lease))
    placement = new_cloud.placement
    assert placement.call("PUT", f"/resource_classes/{name}").status == 201
    for host, root in list(new_cloud.hosts.items()):
        child = {"name": f"blazar_{host}", "parent_provider_uuid": root}
        assert placement.call("POST", "/resource_providers", child).status == 200
    before = new_cloud.children()
    assert run("--write") == 0
    new_cloud.turn()
    new_cloud.turn()
    assert new_cloud.children() == before
    assert new_cloud.inventories() == {name: {"compute-1": 2, "compute-2": 1}}


def test_a_second_run_changes_nothing(
    blazar: Blazar,
    run: Import,
    new_cloud: Cloud,
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = fill(blazar)
    assert run("--write") == 0
    new_cloud.turn(advance=2 * HOUR)
    termination.delete(new_cloud.world, known["TERMINATED"])
    assert run("--write", "--skip", known["TERMINATED"]) == 0
    before = count(new_cloud.world.database)
    capsys.readouterr()
    assert run("--write", "--skip", known["TERMINATED"]) == 0
    told = capsys.readouterr().out
    assert "0 hosts, and 0 leases; here already: 2 hosts, 2 leases" in told
    assert "left out: 1 leases" in told
    assert count(new_cloud.world.database) == before
    assert new_cloud.status(known["ACTIVE"]) == "TERMINATED"
    # A lease that was made in Blazar since is carried to the hosts that are here.
    later = blazar.add_lease({"12": 1}, start=TODAY + 9 * DAY)
    assert run("--write", "--skip", "ended", "--skip", known["ACTIVE"]) == 0
    assert new_cloud.slots(later) == [12]


WRONG: dict[str, Callable[[Blazar, str], object]] = {
    "it is STARTING: let Blazar finish": lambda blazar, lease: blazar.change(
        "leases", lease, status="STARTING"
    ),
    "it has no project_id": lambda blazar, lease: blazar.change(
        "leases", lease, project_id=None
    ),
    "it does not end after its start": lambda blazar, lease: blazar.change(
        "leases", lease, end_date=TODAY
    ),
    "its type is physical:host": lambda blazar, lease: blazar.change(
        "reservations", blazar.reservation_of(lease), resource_type="physical:host"
    ),
    "its status gone means nothing here": lambda blazar, lease: blazar.change(
        "reservations", blazar.reservation_of(lease), status="gone"
    ),
    "it has 3 of 4 slots": lambda blazar, lease: blazar.insert(
        "instance_reservations",
        id=replaced(blazar, lease),
        reservation_id=blazar.reservation_of(lease),
        vcpus=1,
        memory_mb=1,
        disk_gb=1,
        amount=4,
    ),
    "it has 2 events end_lease": lambda blazar, lease: blazar.insert(
        "events", lease_id=lease, event_type="end_lease", time=TODAY, status="UNDONE"
    ),
    "its event other means nothing here": lambda blazar, lease: blazar.insert(
        "events", lease_id=lease, event_type="other", time=TODAY, status="UNDONE"
    ),
    "Malformed requirements": lambda blazar, lease: blazar.change(
        "instance_reservations", resource_of(blazar, lease), resource_properties="[1]"
    ),
    "its flavor has another id": lambda blazar, lease: blazar.change(
        "instance_reservations", resource_of(blazar, lease), flavor_id="f"
    ),
}


def resource_of(blazar: Blazar, lease: str) -> str:
    table = table_of("instance_reservations", "id", "reservation_id")
    query = sa.select(table.c.id)
    query = query.where(table.c.reservation_id == blazar.reservation_of(lease))
    with blazar.engine.connect() as connection:
        return str(connection.scalar(query))


def replaced(blazar: Blazar, lease: str) -> str:
    """Delete what the reservation of a lease reserves, and return the id of that."""
    found = resource_of(blazar, lease)
    table = table_of("instance_reservations", "id")
    with blazar.engine.begin() as connection:
        connection.execute(sa.delete(table).where(table.c.id == found))
    return found


@pytest.mark.parametrize("reason", WRONG)
def test_a_lease_that_cannot_be_carried_is_named_and_nothing_is_written(
    blazar: Blazar,
    run: Import,
    books: Database,
    capsys: pytest.CaptureFixture[str],
    reason: str,
) -> None:
    lease = fill(blazar)["PENDING"]
    WRONG[reason](blazar, lease)
    assert run("--write") == 1
    told = capsys.readouterr().err
    assert "nothing is carried" in told
    assert re.search(rf"lease {lease} \(pending\): .*{re.escape(reason)}", told)
    assert not any(count(books).values())
    assert run("--write", "--skip", lease) == 0
    assert count(books)["leases"] == 2


def test_what_is_no_lease_is_refused_by_name_too(
    blazar: Blazar,
    run: Import,
    books: Database,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill(blazar)
    blazar.add_host("3", None)
    blazar.add_host("4", "compute-1")
    blazar.add_host("5", "compute-5", gpu="True")
    blazar.insert(
        "computehost_extra_capabilities",
        computehost_id="5",
        property_id=blazar.property_id("gpu"),
        capability_value="False",
    )
    blazar.insert(
        "floatingips",
        floating_network_id="n",
        subnet_id="s",
        floating_ip_address="192.0.2.1",
    )
    words = ["--write", "--skip", "12", "--skip", "nosuch"]
    assert run(*words) == 1
    told = capsys.readouterr().err
    assert "host 3 (None): it has no hypervisor_hostname" in told
    assert "host 5 (compute-5): it has the capability gpu more than once" in told
    assert "1 floating IPs: this service does not lease them" in told
    assert "--skip nosuch: Blazar has no such host or lease" in told
    assert "it has slots on host 12, which is not carried" in told
    assert run("--write", "--skip", "floatingips", "--skip", "3", "--skip", "5") == 1
    told = capsys.readouterr().err
    assert "another host has the same hypervisor_hostname" in told
    assert not any(count(books).values())


def test_too_much_promised_is_carried_and_shows_as_degraded(
    blazar: Blazar,
    run: Import,
    new_cloud: Cloud,
    capsys: pytest.CaptureFixture[str],
) -> None:
    blazar.add_host("1", "compute-1")
    lease = blazar.add_lease({"1": 9}, "ACTIVE", start=TODAY - HOUR)
    assert run("--write") == 0
    reservation = blazar.reservation_of(lease)
    told = capsys.readouterr().out
    assert f"1 slots of reservation {reservation} are more than its hosts have" in told
    new_cloud.turn()
    assert new_cloud.lease(lease).degraded
    assert len(new_cloud.slots(lease)) == 9


def test_a_failure_in_the_middle_leaves_nothing(
    blazar: Blazar, run: Import, books: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(blazar)
    insert, calls = events.insert_all, []

    def fail_late(*values: Any) -> None:
        calls.append(values)
        if len(calls) == 3:
            raise OSError("the disk is full")
        insert(*values)

    monkeypatch.setattr(events, "insert_all", fail_late)
    assert run("--write") == 1
    assert len(calls) == 3
    assert not any(count(books).values())


def test_a_database_that_is_not_blazars_is_refused(
    run: Import,
    books_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for url, reason in (
        (books_url, "which Blazar has"),
        ("sqlite:///nosuch/blazar.db", "unable to open"),
        ("nothing", "Could not parse"),
        ("oracle://a/b", "oracle"),
    ):
        assert run("--write", "--from-blazar", url) == 1
        told = capsys.readouterr().err
        assert "Blazar's database cannot be used" in told
        assert reason in told
        assert "Traceback" not in told
    with database.empty(tmp_path) as old:
        with old.engine.begin() as connection:
            connection.execute(sa.text("ALTER TABLE leases DROP COLUMN degraded"))
        assert run("--from-blazar", old.url) == 1
    assert "migrate it first" in capsys.readouterr().err
