"""Nova as the compute service: openstacksdk against a stand-in for its API."""

import contextlib
import dataclasses
import datetime
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import webob

from placement_foundation import errors
from placement_foundation.database.storage import Database
from placement_reservations import app, conf
from placement_reservations.capacity import Size
from placement_reservations.compute import ComputeError
from placement_reservations.lifecycle import registration, termination
from placement_reservations.store.flavor import Flavor
from placement_reservations.store.lease import Reservation, Wish
from tests.reservations.cloud import HOUR, Cloud, make_cloud
from tests.reservations.nova import Nova, Refused
from tests.serving import OPENSTACKSDK, serving

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

pytestmark = OPENSTACKSDK

FLAVOR = Flavor("8d2ac8d2-4bc8-4d57-8d9b-3ea6a6f2b001", Size(1, 512, 5), "CUSTOM_X")
RESERVATION = Reservation(FLAVOR.id, "", "", Wish(1, 512, 5, 1))
MINUTE = datetime.timedelta(minutes=1)
PATIENCE_SECONDS = 0.5
CONFIGURATION = f"""
[database]
connection = {{database}}
[api]
auth_strategy = noauth2
[reservations]
compute = nova
[placement]
auth_type = admin_token
endpoint = {{placement}}
token = admin
[nova]
auth_type = admin_token
endpoint = {{nova}}
token = admin
timeout = {PATIENCE_SECONDS}
"""


@pytest.fixture
def nova() -> Nova:
    hypervisor = {
        "id": "h1",
        "hypervisor_hostname": "compute-1",
        "vcpus": 8,
        "memory_mb": 8192,
        "local_gb": 100,
        "state": "up",
        "status": "enabled",
        "hypervisor_type": "QEMU",
        "hypervisor_version": 2,
        "service": {"host": "service-1", "id": "s1", "disabled_reason": None},
    }
    return Nova({"service-1": hypervisor})


@pytest.fixture
def compute(nova: Nova, cloud: Cloud) -> Iterator[Any]:
    from keystoneauth1 import noauth, session
    from openstack import connection

    from placement_reservations.compute.nova import NovaCompute

    with serving(nova) as served:
        url = f"{served.url}/v2.1"
        known = connection.Connection(
            session=session.Session(noauth.NoAuth(endpoint=url)),
            compute_endpoint_override=url,
        )
        yield NovaCompute(known.compute, cloud.world.placement, "freepool")


def test_hosts(nova: Nova, compute: Any) -> None:
    found = compute.find_host("compute-1")
    assert (found.name, found.size) == ("compute-1", Size(8, 8192, 100))
    assert found.available
    assert found.service_name == "service-1"
    assert compute.find_host("compute-9") is None
    nova.hypervisors["service-1"]["state"] = "down"
    assert not compute.find_host("compute-1").available
    nova.servers["a"] = {"host": "service-1", "flavor": "other"}
    assert compute.list_servers_on("compute-1") == ["a"]
    assert compute.list_servers_on("compute-2") == []


def test_the_404_of_a_proxy_is_not_that_something_is_gone(
    nova: Nova, compute: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute.find_host("compute-1")
    page = webob.Response(status=404, body=b"<html>no such page</html>")
    monkeypatch.setattr(Nova, "__call__", lambda self, *wsgi: page(*wsgi))
    for remove in (compute.delete_flavor, compute.delete_server, compute.find_host):
        with pytest.raises(ComputeError):
            remove("compute-1")


def test_what_nova_reserves_on_a_host_is_not_promised(
    cloud: Cloud, compute: Any
) -> None:
    cloud.change_inventory("compute-1", "MEMORY_MB", reserved=512)
    assert compute.find_host("compute-1").size == Size(8, 7680, 100)


def test_a_hypervisor_that_placement_does_not_know_is_no_host(
    nova: Nova, compute: Any
) -> None:
    nova.hypervisors["new"] = {
        **nova.hypervisors["service-1"],
        "id": "new",
        "hypervisor_hostname": "compute-new",
    }
    assert compute.find_host("compute-new") is None


def test_flavors(nova: Nova, compute: Any) -> None:
    compute.make_flavor(FLAVOR)
    compute.make_flavor(FLAVOR)
    made = nova.flavors[FLAVOR.id]
    assert made["extra_specs"] == {"resources:CUSTOM_X": "1"}
    assert made["os-flavor-access:is_public"] is False
    larger = dataclasses.replace(FLAVOR, size=Size(2, 512, 5))
    compute.make_flavor(larger)
    assert nova.flavors[FLAVOR.id]["vcpus"] == 2
    for _ in range(2):
        compute.give_access(FLAVOR.id, "blue")
        assert nova.access == {(FLAVOR.id, "blue")}
    for _ in range(2):
        compute.take_access(FLAVOR.id, "blue")
        assert nova.access == set()
    for _ in range(2):
        compute.delete_flavor(FLAVOR.id)
        assert nova.flavors == {}
    compute.take_access(FLAVOR.id, "blue")


def test_servers_of_a_reservation(nova: Nova, compute: Any) -> None:
    compute.make_flavor(FLAVOR)
    nova.servers["a"] = {"host": "service-1", "flavor": FLAVOR.id}
    nova.servers["b"] = {"host": "service-1", "flavor": "other"}
    found = compute.list_servers_of(RESERVATION, ["compute-1"], lambda: None)
    assert found == ["a"]
    for _ in range(2):
        compute.delete_server("a")
        assert list(nova.servers) == ["b"]


def test_the_pool_is_a_host_aggregate(nova: Nova, compute: Any) -> None:
    assert compute.list_pool() == set()
    compute.leave_pool("compute-1")
    for _ in range(2):
        compute.join_pool("compute-1")
        assert compute.list_pool() == {"service-1"}
        assert nova.aggregates["1"]["name"] == "freepool"
        assert nova.aggregates["1"]["hosts"] == ["service-1"]
    for _ in range(2):
        compute.leave_pool("compute-1")
        assert nova.aggregates["1"]["hosts"] == []
        assert compute.list_pool() == set()


def test_an_outage_is_a_failure_of_compute(nova: Nova, compute: Any) -> None:
    def fail(call: str) -> None:
        raise Refused(500, "Nova fails")

    nova.before = fail
    for work in (
        lambda: compute.find_host("compute-1"),
        lambda: compute.make_flavor(FLAVOR),
        lambda: compute.list_servers_on("compute-1"),
        lambda: compute.join_pool("compute-1"),
        compute.list_pool,
    ):
        with pytest.raises(ComputeError):
            work()


def test_hypervisors_are_asked_for_at_an_old_version(nova: Nova) -> None:
    request = webob.Request.blank("/v2.1/os-hypervisors/detail")
    request.headers["OpenStack-API-Version"] = "compute 2.88"
    assert request.get_response(nova).status_int == 500


@pytest.fixture
def leasing(
    nova: Nova,
    application: "WSGIApplication",
    books: Database,
    books_url: str,
    tmp_path: Path,
) -> Iterator[Cloud]:
    """Give the cloud of a service that is configured for Nova, with one host."""
    cloud = make_cloud(application, books)
    cloud.make_host("compute-1")
    with serving(nova) as compute, serving(application) as placement:
        path = tmp_path / "placement-reservations.conf"
        path.write_text(
            CONFIGURATION.format(
                database=books_url.replace("%", "%%"),
                placement=placement.url,
                nova=f"{compute.url}/v2.1",
            )
        )
        world = app.make_world(conf.read([str(path)]))
        cloud.world = dataclasses.replace(world, clock=cloud.clock)
        cloud.register("compute-1")
        yield cloud
        world.database.engine.dispose()


def fail(number: int) -> None:
    statuses = (500, 502, 503, 504)
    raise Refused(statuses[number % len(statuses)], "Nova fails")


def close(number: int) -> None:
    # The server closes the connection without an answer.
    raise ConnectionAbortedError


def be_slow(number: int) -> None:
    time.sleep(2 * PATIENCE_SECONDS)


# What happens to a call, before or after Nova executed it, whose number it is given.
FAULTS: dict[str, tuple[str, Callable[[int], None]]] = {
    "it fails before a call": ("before", fail),
    "it fails after a call": ("after", fail),
    "it closes the connection": ("after", close),
    "it is slow": ("after", be_slow),
}


@contextmanager
def broken(
    nova: Nova, fault: str, at: int = 1, *, stays: bool = True
) -> Iterator[list[str]]:
    """Make a call to Nova fail, and all calls after it if the fault ``stays``."""
    when, happen = FAULTS[fault]
    calls: list[str] = []

    def count(call: str) -> None:
        calls.append(call)
        if len(calls) == at or (stays and len(calls) > at):
            happen(len(calls))

    setattr(nova, when, count)
    try:
        yield calls
    finally:
        setattr(nova, when, lambda call: None)


def order(cloud: Cloud) -> str:
    """Order a lease that starts now, until Nova lets it be ordered."""
    for _ in range(2):
        try:
            return cloud.order(3, start=cloud.clock.time.replace(second=0), hours=1)
        except errors.Unavailable:
            recover(cloud)
            assert cloud.classes() == set()
            assert cloud.count_slots() == 0
    raise AssertionError("it cannot be ordered")


def recover(cloud: Cloud) -> None:
    cloud.run_due(advance=4 * MINUTE)
    cloud.run_due()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lease_is_whole_whichever_call_to_nova_fails(
    leasing: Cloud, nova: Nova, fault: str
) -> None:
    for at in itertools.count(1):
        with broken(nova, fault, at, stays=False) as calls:
            lease = order(leasing)
            leasing.run_due()
            recover(leasing)
            assert leasing.status(lease) == "ACTIVE"
            (reservation,) = leasing.lease(lease).reservations
            assert nova.access == {(reservation.id, "blue")}
            flavor = nova.flavors[reservation.id]
            assert (flavor["vcpus"], flavor["ram"], flavor["disk"]) == (1, 512, 5)
            assert flavor["extra_specs"] == {
                f"resources:{reservation.resource_class}": "1"
            }
            leasing.assert_consistent()
            nova.servers["a"] = {"host": "service-1", "flavor": reservation.id}
            nova.servers["b"] = {"host": "service-1", "flavor": "other"}
            leasing.run_due(advance=HOUR)
            recover(leasing)
        assert leasing.status(lease) == "TERMINATED"
        assert list(nova.servers) == ["b"]
        assert (nova.flavors, nova.access) == ({}, set())
        assert leasing.classes() == set()
        assert leasing.inventories() == {}
        if len(calls) < at:
            return


def disturb(nova: Nova, fault: str, work: Callable[[], object]) -> Iterator[bool]:
    """Repeat an operation with a fault at each of its calls to Nova in turn.

    Yields after each repetition whether the operation was carried out all the same.
    """
    for stays in (False, True):
        for at in itertools.count(1):
            done = False
            with (
                broken(nova, fault, at, stays=stays) as calls,
                contextlib.suppress(errors.Unavailable),
            ):
                work()
                done = True
            yield done
            if len(calls) < at:
                break


@pytest.mark.parametrize("fault", FAULTS)
def test_a_host_is_added_or_was_never_there(
    leasing: Cloud, nova: Nova, fault: str
) -> None:
    def remove() -> None:
        registration.remove(leasing.world, leasing.host_id("compute-1"))

    remove()
    for done in disturb(nova, fault, lambda: leasing.register("compute-1")):
        recover(leasing)
        assert nova.aggregates["1"]["hosts"] == (["service-1"] if done else [])
        assert [*leasing.children()] == (["blazar_compute-1"] if done else [])
        if done:
            remove()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_host_is_removed_or_still_there(
    leasing: Cloud, nova: Nova, fault: str
) -> None:
    identifier = leasing.host_id("compute-1")

    def remove() -> None:
        registration.remove(leasing.world, identifier)

    for done in disturb(nova, fault, remove):
        recover(leasing)
        assert nova.aggregates["1"]["hosts"] == ([] if done else ["service-1"])
        assert [*leasing.children()] == ([] if done else ["blazar_compute-1"])
        if done:
            leasing.register("compute-1")
            identifier = leasing.host_id("compute-1")
        else:
            assert leasing.host("compute-1").reservable


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lease_waits_while_nova_fails(leasing: Cloud, nova: Nova, fault: str) -> None:
    for at in itertools.count(1):
        lease = order(leasing)
        with broken(nova, fault, at) as calls:
            leasing.run_due(advance=MINUTE)
            if len(calls) < at:
                break
            for _ in range(2):
                found = leasing.lease(lease)
                assert (found.status, found.degraded) == ("STARTING", True)
                assert "Nova refused or failed" in (found.status_reason or "")
                assert leasing.events(lease)["start_lease"] == "IN_PROGRESS"
                leasing.run_due(advance=MINUTE)
        recover(leasing)
        found = leasing.lease(lease)
        assert (found.status, found.degraded) == ("ACTIVE", False)
        assert found.status_reason is None
        termination.delete(leasing.world, lease)
        assert (nova.flavors, nova.access) == ({}, set())
    assert at > 2
    (reservation,) = leasing.lease(lease).reservations
    nova.servers["a"] = {"host": "service-1", "flavor": reservation.id}
    with broken(nova, fault):
        leasing.turn(advance=HOUR)
        assert leasing.status(lease) == "TERMINATING"
        leasing.turn(advance=15 * MINUTE)
        assert leasing.status(lease) == "ERROR"
    leasing.turn(advance=2 * MINUTE)
    assert leasing.status(lease) == "TERMINATED"
    assert (nova.servers, nova.flavors, nova.access) == ({}, {}, set())
    assert leasing.classes() == set()


def test_what_nova_refuses_for_good_is_an_error_at_once(
    leasing: Cloud, nova: Nova
) -> None:
    lease = order(leasing)

    def refuse(call: str) -> None:
        raise Refused(400, "blue is not a valid project")

    nova.before = refuse
    leasing.run_due()
    found = leasing.lease(lease)
    assert found.status == "ERROR"
    assert "blue is not a valid project" in (found.status_reason or "")
    assert {each.status for each in found.reservations} == {"error"}
