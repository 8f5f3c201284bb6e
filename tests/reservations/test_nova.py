"""Nova as the compute service: openstacksdk against a stand-in that keeps records."""

import dataclasses
import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from placement_reservations.capacity import Size
from placement_reservations.compute import ComputeError
from placement_reservations.store.flavor import Flavor
from tests.reservations.cloud import Cloud
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


@dataclasses.dataclass
class Nova:
    """The part of the compute API that the service uses."""

    hypervisors: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    servers: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    flavors: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    access: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    aggregates: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    failing: bool = False

    def __call__(self, environ: Any, start_response: Any) -> Any:
        import webob

        request = webob.Request(environ)
        parts = request.path_info.strip("/").split("/")[1:]
        body = request.json_body if request.content_length else None
        status, document = 200, None
        if self.failing:
            status = 500
        elif not parts:
            document = {
                "version": {
                    "id": "v2.1",
                    "status": "CURRENT",
                    "version": "2.90",
                    "min_version": "2.1",
                    "links": [{"rel": "self", "href": f"{request.host_url}/v2.1/"}],
                }
            }
        else:
            status, document = self.answer(request, parts, body)
        response = webob.Response(status=status, json_body=document or {})
        return response(environ, start_response)

    def answer(
        self, request: Any, parts: list[str], body: Any
    ) -> tuple[int, dict[str, Any] | None]:
        match request.method, parts:
            case "GET", ["os-hypervisors", *rest] if rest in ([], ["detail"]):
                return 200, {"hypervisors": list(self.hypervisors.values())}
            case "GET", ["os-hypervisors", found]:
                known = [h for h in self.hypervisors.values() if h["id"] == found]
                return (200, {"hypervisor": known[0]}) if known else (404, None)
            case "GET", ["servers", *_]:
                wanted = {
                    key: value
                    for key, value in request.params.items()
                    if key in ("host", "flavor")
                }
                assert request.params["all_tenants"] or request.params["all_projects"]
                servers = [
                    {"id": server, "name": server}
                    for server, known in self.servers.items()
                    if all(known[key] == value for key, value in wanted.items())
                ]
                return 200, {"servers": servers}
            case "DELETE", ["servers", server]:
                return (204, None) if self.servers.pop(server, None) else (404, None)
            case "GET", ["flavors", *rest] if rest in ([], ["detail"]):
                return 200, {"flavors": list(self.flavors.values())}
            case "POST", ["flavors"]:
                flavor = {**body["flavor"], "extra_specs": {}}
                self.flavors[flavor["id"]] = flavor
                return 200, {"flavor": flavor}
            case "GET", ["flavors", flavor]:
                known_flavor = self.flavors.get(flavor)
                return (200, {"flavor": known_flavor}) if known_flavor else (404, None)
            case "DELETE", ["flavors", flavor]:
                return (202, None) if self.flavors.pop(flavor, None) else (404, None)
            case "GET", ["flavors", flavor, "os-extra_specs"]:
                return 200, {"extra_specs": self.flavors[flavor]["extra_specs"]}
            case "POST", ["flavors", flavor, "os-extra_specs"]:
                self.flavors[flavor]["extra_specs"].update(body["extra_specs"])
                return 200, body
            case "POST", ["flavors", flavor, "action"]:
                return self.act(flavor, body)
            case "GET", ["os-aggregates"]:
                return 200, {"aggregates": list(self.aggregates.values())}
            case "POST", ["os-aggregates"]:
                made = {"id": 1, "hosts": [], **body["aggregate"]}
                self.aggregates["1"] = made
                return 200, {"aggregate": made}
            case "GET", ["os-aggregates", found]:
                pool = self.aggregates.get(found)
                return (200, {"aggregate": pool}) if pool else (404, None)
            case "POST", ["os-aggregates", found, "action"]:
                ((action, asked),) = body.items()
                hosts = self.aggregates[found]["hosts"]
                (hosts.append if action == "add_host" else hosts.remove)(asked["host"])
                return 200, {"aggregate": self.aggregates[found]}
        raise AssertionError((request.method, parts))

    def act(self, flavor: str, body: Any) -> tuple[int, dict[str, Any] | None]:
        ((action, asked),) = body.items()
        key = (flavor, asked["tenant"])
        if flavor not in self.flavors:
            return 404, None
        if action == "addTenantAccess":
            if key in self.access:
                return 409, None
            self.access.add(key)
        else:
            if key not in self.access:
                return 404, None
            self.access.remove(key)
        return 200, {"flavor_access": []}


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
    return Nova({"compute-1": hypervisor})


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
    nova.hypervisors["compute-1"]["state"] = "down"
    assert not compute.find_host("compute-1").available
    nova.servers["a"] = {"host": "compute-1", "flavor": "other"}
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
        **nova.hypervisors["compute-1"],
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
    nova.servers["a"] = {"host": "compute-1", "flavor": FLAVOR.id}
    nova.servers["b"] = {"host": "compute-1", "flavor": "other"}
    assert compute.list_servers_of(FLAVOR.id, "CUSTOM_X", ["compute-1"]) == ["a"]
    for _ in range(2):
        compute.delete_server("a")
        assert list(nova.servers) == ["b"]


def test_the_pool_is_a_host_aggregate(nova: Nova, compute: Any) -> None:
    compute.leave_pool("compute-1")
    for _ in range(2):
        compute.join_pool("compute-1")
        assert nova.aggregates["1"]["name"] == "freepool"
        assert nova.aggregates["1"]["hosts"] == ["compute-1"]
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
