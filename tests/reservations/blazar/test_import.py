"""``placement-reservations import --from-blazar``."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from placement_foundation.database.storage import Database
from placement_reservations import app
from placement_reservations.cmd import reservations as command
from placement_reservations.db import models
from placement_reservations.lifecycle import termination
from placement_reservations.store import flavor as flavors
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases
from tests.reservations.blazar import database
from tests.reservations.blazar.database import CREATED, Blazar
from tests.reservations.cloud import DAY, HOUR, TODAY, Cloud, make_cloud
from tests.reservations.options import make_config
from tests.reservations.visitor import Visitor

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


def test_a_name_cannot_command_a_terminal(
    blazar: Blazar, run: Import, capsys: pytest.CaptureFixture[str]
) -> None:
    blazar.add_host("12", "compute-1")
    blazar.add_lease({"12": 1}, start=TODAY + DAY, name="a\x1b]0;b\x07")
    assert run() == 0
    output = capsys.readouterr().out
    assert r" a\x1b]0;b\x07: PENDING" in output
    assert output.replace("\n", "").isprintable()


def test_a_dry_run_says_what_is_carried_and_writes_nothing(
    blazar: Blazar, run: Import, books: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    known = fill(blazar)
    assert run() == 0
    output = capsys.readouterr().out
    assert "host 12 compute-1: 8 processors, 8192 MB, 100 GB gpu=True rack=r1" in output
    assert "host 13 compute-2: " in output
    assert (
        f"lease {known['PENDING']} pending: PENDING, 3 slots, 2030-03-05 12:00"
        in output
    )
    assert "2 hosts, and 3 leases (1 ACTIVE, 1 PENDING, 1 TERMINATED)" in output
    reservation = blazar.reservation_of(known["ACTIVE"])
    assert f"Blazar's host aggregate 7 of reservation {reservation} stays" in output
    assert "Nothing was written." in output
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


HOST = {
    "service_name": "service",
    "vcpus": 11,
    "memory_mb": 12,
    "local_gb": 13,
    "cpu_info": '{"arch": "aarch64"}',
    "hypervisor_type": "x" * 255,
    "hypervisor_version": 14,
    "availability_zone": "zone",
}
LEASE = {"user_id": "bea", "project_id": "red"}
WISH = {
    "vcpus": 2,
    "memory_mb": 3,
    "disk_gb": 4,
    "amount": 5,
    "resource_properties": GPU,
}


class Clerk:
    """Changes rows of Blazar, each with times of its own."""

    def __init__(self, blazar: Blazar) -> None:
        self._blazar = blazar
        self._time = CREATED

    def change(self, table: str, key: str, **values: Any) -> dict[str, Any]:
        """Change a row, and return the values with the times as the API shows them."""
        times = {}
        for name in ("created_at", "updated_at"):
            self._time += HOUR
            times[name] = self._time
        self._blazar.change(table, key, **values, **times)
        return {**values, **{name: f"{at}.000000" for name, at in times.items()}}


@pytest.mark.parametrize(
    ("reservable", "missing", "changed", "affinity"),
    [(True, True, False, True), (True, False, True, False), (False, True, True, None)],
)
def test_every_field_is_carried(
    blazar: Blazar,
    run: Import,
    new_cloud: Cloud,
    reservable: bool,
    missing: bool,
    changed: bool,
    affinity: bool | None,
) -> None:
    clerk = Clerk(blazar)
    blazar.add_host("12", "compute-1", gpu="True")
    host = clerk.change("computehosts", "12", **HOST, reservable=reservable)
    key = blazar.add_lease({"12": 5}, start=TODAY + DAY)
    lease = clerk.change("leases", key, name="mine", **LEASE)
    reservation_id, resource_id = blazar.reservation_of(key), blazar.resource_of(key)
    reservation = clerk.change(
        "reservations",
        reservation_id,
        missing_resources=missing,
        resources_changed=changed,
    )
    blazar.change("instance_reservations", resource_id, **WISH, affinity=affinity)
    events = {}
    for number, event_type in enumerate(
        ("start_lease", "before_end_lease", "end_lease")
    ):
        event_id = blazar.event_of(key, event_type)
        time = TODAY + DAY + number * HOUR
        status = ("UNDONE", "ERROR", "UNDONE")[number]
        events[event_id] = {
            **clerk.change("events", event_id, time=time, status=status),
            "id": event_id,
            "lease_id": key,
            "event_type": event_type,
            "time": f"{time:%Y-%m-%dT%H:%M:%S.%f}",
        }
    assert run("--write") == 0
    visitor = Visitor(app.build(make_config(), new_cloud.world))
    assert visitor.get("/v1/os-hosts")["hosts"] == [
        {
            **host,
            "id": "12",
            "hypervisor_hostname": "compute-1",
            "status": None,
            "trust_id": None,
            "gpu": "True",
        }
    ]
    (shown,) = visitor.get("/v1/leases")["leases"]
    assert {each["id"]: each for each in shown.pop("events")} == events
    assert shown == {
        **lease,
        "id": key,
        "start_date": "2030-03-05T12:00:00.000000",
        "end_date": "2030-03-05T14:00:00.000000",
        "status": "PENDING",
        "degraded": missing,
        "status_reason": "Some of its hosts had failed in Blazar." if missing else None,
        "trust_id": None,
        "reservations": [
            {
                **reservation,
                **WISH,
                "id": reservation_id,
                "lease_id": key,
                "resource_id": resource_id,
                "resource_type": "virtual:instance",
                "status": "pending",
                "affinity": affinity,
                "flavor_id": reservation_id,
                "aggregate_id": None,
                "server_group_id": None,
            }
        ],
    }


@pytest.mark.parametrize(
    ("theirs", "ours"), [(None, ""), ("[]", ""), (f'["and", {GPU}]', GPU), (GPU, GPU)]
)
def test_requirements_are_written_as_they_are_here(
    blazar: Blazar, run: Import, new_cloud: Cloud, theirs: str | None, ours: str
) -> None:
    blazar.add_host("1", "compute-1", gpu="True")
    lease = blazar.add_lease({"1": 2}, start=TODAY + DAY)
    resource = blazar.resource_of(lease)
    blazar.change("instance_reservations", resource, resource_properties=theirs)
    assert run("--write") == 0
    (reservation,) = new_cloud.lease(lease).reservations
    assert reservation.wish.resource_properties == ours


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
    assert new_cloud.flavors("blue") == [blazar.reservation_of(known["ACTIVE"])]
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
    output = capsys.readouterr().out
    assert "0 hosts, and 0 leases; here already: 2 hosts, 2 leases" in output
    assert "left out: 1 leases" in output
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
    "it is None: let Blazar finish": lambda blazar, lease: blazar.change(
        "leases", lease, status=None
    ),
    "it has no user_id": lambda blazar, lease: blazar.change(
        "leases", lease, user_id=None
    ),
    "it has no project_id": lambda blazar, lease: blazar.change(
        "leases", lease, project_id=None
    ),
    "it does not end after its start": lambda blazar, lease: blazar.change(
        "leases", lease, end_date=TODAY
    ),
    "it has no reservation": lambda blazar, lease: empty(blazar, lease),
    "what it reserves is not in instance_reservations": lambda blazar, lease: replaced(
        blazar, lease
    ),
    "what it reserves is not in": lambda blazar, lease: blazar.change(
        "reservations", blazar.reservation_of(lease), resource_id=None
    ),
    "what it reserves is not": lambda blazar, lease: blazar.change(
        "instance_reservations",
        blazar.resource_of(lease),
        reservation_id=blazar.insert("reservations", lease_id=lease),
    ),
    "its type is physical:host": lambda blazar, lease: blazar.change(
        "reservations", blazar.reservation_of(lease), resource_type="physical:host"
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
    "Malformed requirements": lambda blazar, lease: blazar.change(
        "instance_reservations", blazar.resource_of(lease), resource_properties="[1]"
    ),
    "it has 4 of 3 slots": lambda blazar, lease: blazar.insert(
        "computehost_allocations",
        compute_host_id="12",
        reservation_id=blazar.reservation_of(lease),
    ),
    "its vcpus is 0": lambda blazar, lease: blazar.change(
        "instance_reservations", blazar.resource_of(lease), vcpus=0
    ),
    "its memory_mb is 0": lambda blazar, lease: blazar.change(
        "instance_reservations", blazar.resource_of(lease), memory_mb=0
    ),
    "its disk_gb is -1": lambda blazar, lease: blazar.change(
        "instance_reservations", blazar.resource_of(lease), disk_gb=-1
    ),
    "its amount is 0": lambda blazar, lease: blazar.change(
        "instance_reservations", blazar.resource_of(lease), amount=0
    ),
    "it is PENDING, but its events are": lambda blazar, lease: blazar.delete(
        "events", lease_id=lease, event_type="start_lease"
    ),
    "other UNDONE": lambda blazar, lease: blazar.insert(
        "events", lease_id=lease, event_type="other", time=TODAY, status="UNDONE"
    ),
    "end_lease UNDONE 2030-03-04 12:00:00, end_lease": lambda blazar, lease: (
        blazar.insert(
            "events",
            lease_id=lease,
            event_type="end_lease",
            time=TODAY,
            status="UNDONE",
        )
    ),
    "before_end_lease IN_PROGRESS": lambda blazar, lease: blazar.change(
        "events", blazar.event_of(lease, "before_end_lease"), status="IN_PROGRESS"
    ),
    # It never starts, or never ends.
    "start_lease DONE": lambda blazar, lease: blazar.change(
        "events", blazar.event_of(lease, "start_lease"), status="DONE"
    ),
    "end_lease UNDONE None": lambda blazar, lease: blazar.change(
        "events", blazar.event_of(lease, "end_lease"), time=None
    ),
    # It would neither start nor end.
    "it is ERROR, but its events are": lambda blazar, lease: blazar.change(
        "leases", lease, status="ERROR"
    ),
    # Its servers stay, or go, when its slots do not.
    "end_lease UNDONE 2030-03-13": lambda blazar, lease: blazar.change(
        "events", blazar.event_of(lease, "end_lease"), time=TODAY + 9 * DAY
    ),
    # Its slots are promised for ever.
    "it is TERMINATED, but its reservation": lambda blazar, lease: blazar.change(
        "leases", lease, status="TERMINATED"
    ),
    "is active": lambda blazar, lease: blazar.change(
        "reservations", blazar.reservation_of(lease), status="active"
    ),
    "its flavor has another id": lambda blazar, lease: blazar.change(
        "instance_reservations", blazar.resource_of(lease), flavor_id="f"
    ),
}


def replaced(blazar: Blazar, lease: str) -> str:
    """Delete what the reservation of a lease reserves, and return the id of that."""
    found = blazar.resource_of(lease)
    blazar.delete("instance_reservations", id=found)
    return found


def empty(blazar: Blazar, lease: str) -> None:
    """Delete the reservation of a lease."""
    reservation = blazar.reservation_of(lease)
    for table in ("computehost_allocations", "instance_reservations"):
        blazar.delete(table, reservation_id=reservation)
    blazar.delete("reservations", id=reservation)


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
    output = capsys.readouterr().err
    assert "nothing is carried" in output
    assert re.search(rf"lease {lease} \(pending\): .*{re.escape(reason)}", output)
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
    blazar.add_host("6", "compute-6")
    blazar.change("computehosts", "6", hypervisor_type="x" * 256)
    blazar.add_host("5", "compute-5", gpu="True", status="new")
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
    output = capsys.readouterr().err
    assert "host 3 (None): it has no hypervisor_hostname" in output.splitlines()
    assert "host 5 (compute-5): it has the capability gpu more than once" in output
    assert "host 5 (compute-5): its capability status has the name of" in output
    assert "host 6 (compute-6): its hypervisor_type is longer than 255" in output
    assert "1 floating IPs: this service does not lease them" in output
    assert "--skip nosuch: Blazar has no such host or lease" in output
    assert "it has slots on host 12, which is not carried" in output
    assert run("--write", "--skip", "floatingips", "--skip", "3", "--skip", "5") == 1
    output = capsys.readouterr().err
    assert "another host has the same hypervisor_hostname" in output
    assert not any(count(books).values())


def test_a_lease_in_error_is_carried_and_ends_by_itself(
    blazar: Blazar, run: Import, new_cloud: Cloud
) -> None:
    blazar.add_host("1", "compute-1")
    lease = blazar.add_lease({"1": 2}, "ERROR", start=TODAY - HOUR)
    blazar.change("events", blazar.event_of(lease, "start_lease"), status="ERROR")
    assert run("--write") == 0
    (reservation,) = new_cloud.lease(lease).reservations
    assert (new_cloud.status(lease), reservation.status) == ("ERROR", "error")
    assert new_cloud.slots(lease) == [1, 1]
    new_cloud.turn(advance=HOUR)
    assert new_cloud.status(lease) == "TERMINATED"
    new_cloud.assert_consistent()


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
    output = capsys.readouterr().out
    assert (
        f"1 slots of reservation {reservation} are more than its hosts have" in output
    )
    new_cloud.turn()
    assert new_cloud.lease(lease).degraded
    assert len(new_cloud.slots(lease)) == 9


def test_a_failure_in_the_middle_leaves_nothing(
    blazar: Blazar, run: Import, books: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(blazar)
    put, calls = flavors.put, []

    def fail_late(*values: Any) -> None:
        calls.append(values)
        if len(calls) == 2:
            raise OSError("the disk is full")
        put(*values)

    monkeypatch.setattr(flavors, "put", fail_late)
    assert run("--write") == 1
    assert len(calls) == 2
    assert not any(count(books).values())


def test_a_database_that_is_not_blazars_is_refused(
    run: Import,
    books_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for url, reason in (
        (books_url, "which Blazar has"),
        (f"sqlite:///{tmp_path / 'nosuch.db'}", "there is no database at"),
        ("nothing", "Could not parse"),
        ("oracle://a/b", "oracle"),
    ):
        assert run("--write", "--from-blazar", url) == 1
        output = capsys.readouterr().err
        assert "Blazar's database cannot be used" in output
        assert reason in output
        assert "Traceback" not in output
    assert not (tmp_path / "nosuch.db").exists()
    with database.empty(tmp_path) as old:
        with old.engine.begin() as connection:
            statement = "ALTER TABLE reservations DROP COLUMN missing_resources"
            connection.execute(sa.text(statement))
        assert run("--from-blazar", old.url) == 1
    assert "migrate it first" in capsys.readouterr().err
