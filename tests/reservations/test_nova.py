"""Nova as the compute service: openstacksdk against a stand-in for its API."""

import dataclasses
import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest
import webob

from placement_reservations.capacity import Size
from placement_reservations.compute import ComputeError
from placement_reservations.store.flavor import Flavor
from tests.reservations.cloud import Cloud
from tests.reservations.nova import Nova
from tests.serving import serving

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("openstack") is None,
        reason="openstacksdk comes with the extra nova: tox -e reservations",
    ),
    # The library calls functions that it has deprecated itself.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]

FLAVOR = Flavor("8d2ac8d2-4bc8-4d57-8d9b-3ea6a6f2b001", Size(1, 512, 5), "CUSTOM_X")


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
    nova.servers["a"] = {"host": "service-1", "flavor": FLAVOR.id}
    nova.servers["b"] = {"host": "service-1", "flavor": "other"}
    assert compute.list_servers_of(FLAVOR.id, "CUSTOM_X", ["compute-1"]) == ["a"]
    for _ in range(2):
        compute.delete_server("a")
        assert list(nova.servers) == ["b"]


def test_the_pool_is_a_host_aggregate(nova: Nova, compute: Any) -> None:
    compute.leave_pool("compute-1")
    for _ in range(2):
        compute.join_pool("compute-1")
        assert nova.aggregates["1"]["name"] == "freepool"
        assert nova.aggregates["1"]["hosts"] == ["service-1"]
    for _ in range(2):
        compute.leave_pool("compute-1")
        assert nova.aggregates["1"]["hosts"] == []


def test_an_outage_is_a_failure_of_compute(nova: Nova, compute: Any) -> None:
    nova.failing = True
    with pytest.raises(ComputeError):
        compute.find_host("compute-1")
    with pytest.raises(ComputeError):
        compute.make_flavor(FLAVOR)
    with pytest.raises(ComputeError):
        compute.list_servers_on("compute-1")
    with pytest.raises(ComputeError):
        compute.join_pool("compute-1")


@pytest.mark.parametrize(
    ("method", "path", "version", "body", "status"),
    [
        ("GET", "os-aggregates", "2.999", None, 406),
        ("GET", "os-aggregates", "two", None, 400),
        ("GET", "servers?what=1", "2.1", None, 400),
        ("POST", "flavors", "2.1", {"flavor": {"name": "x"}}, 400),
        ("POST", "os-aggregates", "2.1", {"aggregate": {"name": "x", "y": 1}}, 400),
        ("GET", "os-aggregates/freepool", "2.1", None, 400),
        ("GET", "os-hypervisors/detail", "2.88", None, 500),
        ("GET", "nosuch", "2.1", None, 404),
    ],
)
def test_the_stand_in_is_strict(
    nova: Nova, method: str, path: str, version: str, body: Any, status: int
) -> None:
    request = webob.Request.blank(f"/v2.1/{path}", method=method)
    request.headers["OpenStack-API-Version"] = f"compute {version}"
    if body is not None:
        request.json_body = body
    assert request.get_response(nova).status_int == status
