"""Nova and Ironic as they are asked who lives: openstacksdk, its fakes, a stand-in."""

import dataclasses
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from placement_clients.audit import cli
from tests.client import new_uuid
from tests.commands.audit.desk import Desk
from tests.serving import OPENSTACKSDK, Between, Served, serving

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

pytestmark = OPENSTACKSDK
HOST = "compute-1"
PAGE = 2


def flavor(**about: Any) -> dict[str, Any]:
    return {"vcpus": 2, "ram": 512, "disk": 5, "extra_specs": {}, **about}


def server(status: str = "ACTIVE", host: str | None = HOST, **about: Any) -> Any:
    return {
        "id": new_uuid(),
        "status": status,
        "OS-EXT-STS:task_state": None,
        "OS-EXT-SRV-ATTR:hypervisor_hostname": host,
        "flavor": flavor(),
        **about,
    }


def migration(of: Any, status: str, kind: str = "resize") -> dict[str, Any]:
    return {
        "uuid": new_uuid(),
        "instance_uuid": of["id"],
        "status": status,
        "migration_type": kind,
    }


@dataclasses.dataclass
class Cloud:
    """The parts of the compute and bare metal APIs that list who lives.

    ``hidden`` servers are those that lists leave out, such as soft-deleted ones.
    """

    servers: list[Any] = dataclasses.field(default_factory=list)
    hidden: list[Any] = dataclasses.field(default_factory=list)
    migrations: list[Any] = dataclasses.field(default_factory=list)
    nodes: list[Any] = dataclasses.field(default_factory=list)
    failing: str = ""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        import webob

        request = webob.Request(environ)
        path: str = request.path_info.strip("/")
        service, *parts = path.split("/")
        parts = parts[1:]
        status, document = 200, None
        if self.failing and self.failing in parts:
            status = 503
        elif not any(parts):
            document = self.versions(request, service)
        else:
            status, document = self.answer(request, parts)
        response = webob.Response(status=status, json_body=document or {})
        return response(environ, start_response)

    def versions(self, request: Any, service: str) -> Any:
        newest = {"compute": ("v2.1", "2.90"), "baremetal": ("v1", "1.80")}[service]
        url = f"{request.host_url}/{service}/{newest[0]}"
        version = {
            "id": newest[0],
            "status": "CURRENT",
            "version": newest[1],
            "min_version": f"{newest[0][1]}.1",
            "links": [{"rel": "self", "href": url}],
        }
        return {"version": version}

    def answer(self, request: Any, parts: list[str]) -> tuple[int, Any]:
        match parts:
            case ["servers", "detail"]:
                assert request.params["all_tenants"]
                return 200, self.page(request, "servers", self.servers)
            case ["servers", uuid]:
                for each in [*self.servers, *self.hidden]:
                    if each["id"] == uuid:
                        return 200, {"server": each}
                return 404, None
            case ["os-migrations"]:
                return 200, self.page(request, "migrations", self.migrations)
            case ["nodes"]:
                wanted = request.params.get("instance_uuid")
                found = [
                    each
                    for each in self.nodes
                    if wanted in (None, each["instance_uuid"])
                ]
                return 200, {"nodes": found}
        raise AssertionError(parts)

    def page(self, request: Any, name: str, things: list[Any]) -> Any:
        """Answer with a page, and where the next one is."""
        begin = int(request.params.get("marker", 0))
        document = {name: things[begin : begin + PAGE]}
        if begin + PAGE < len(things):
            query = f"all_tenants=True&marker={begin + PAGE}"
            document[f"{name}_links"] = [
                {"rel": "next", "href": f"{request.path_url}?{query}"}
            ]
        return document


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def served(cloud: Cloud) -> Iterator[Served]:
    with serving(cloud) as served:
        yield served


@pytest.fixture
def connected(
    own_desk: Desk, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Desk:
    """Give a user with a ``clouds.yaml``."""
    clouds = tmp_path / "clouds.yaml"
    about = {
        "auth_type": "none",
        "auth": {"endpoint": served.url},
        "compute_endpoint_override": f"{served.url}/compute/v2.1",
        "baremetal_endpoint_override": f"{served.url}/baremetal/v1",
    }
    clouds.write_text(json.dumps({"clouds": {"mine": about}}))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds))
    monkeypatch.setenv("OS_CLOUD", "mine")
    return own_desk


def found(desk: Desk, *arguments: str) -> list[tuple[str, str]]:
    status, out, err = desk.run("--json", *arguments)
    assert status in (0, 1), err
    return sorted((f["kind"], f["consumer"]) for f in json.loads(out)["findings"])


def claim_for(desk: Desk, host: str, of: Any, **amounts: int) -> None:
    wanted = amounts or {"VCPU": 2, "MEMORY_MB": 512}
    consumer = desk.claim({host: wanted})
    of["id"] = consumer


def test_servers_of_nova(connected: Desk, cloud: Cloud) -> None:
    first = connected.host(HOST, VCPU=100, PCPU=100, MEMORY_MB=10_000)
    other = connected.host("compute-2", VCPU=100, MEMORY_MB=10_000)
    fine, dedicated, large, moved = (server() for _ in range(4))
    claim_for(connected, first, fine)
    claim_for(connected, first, dedicated, PCPU=1, VCPU=1, MEMORY_MB=512)
    claim_for(connected, first, large, VCPU=4, MEMORY_MB=512)
    claim_for(connected, other, moved)
    missing = server()
    orphan = connected.claim({first: {"VCPU": 1}})
    job = connected.claim({first: {"VCPU": 1}}, consumer_type="JOB")
    cloud.servers += [fine, dedicated, large, moved, missing]
    expected = [
        ("missing", missing["id"]),
        ("orphan", orphan),
        ("wrong amounts", large["id"]),
        ("wrong host", moved["id"]),
    ]
    assert found(connected, "--nova") == expected
    # Nova does not know that type; if it is asked for by name, that is on purpose.
    assert ("orphan", job) in found(connected, "--nova", "--type", "JOB")


@pytest.mark.parametrize(
    "built",
    [
        server("BUILD", None),
        server("BUILD"),
        server("ERROR", None),
        server("SHELVED_OFFLOADED", None),
        server("UNKNOWN", None),
        server("ACTIVE", None),
        server("REBUILD"),
        server("VERIFY_RESIZE"),
        server("MIGRATING", "compute-9"),
        {**server("SHUTOFF", "compute-9"), "OS-EXT-STS:task_state": "resize_prep"},
    ],
    ids=lambda each: each["status"],
)
@pytest.mark.parametrize("claims", [True, False])
def test_what_is_being_built_or_moved_is_left_alone(
    connected: Desk, cloud: Cloud, built: Any, claims: bool
) -> None:
    host = connected.host(HOST, VCPU=100)
    built = {**built, "id": new_uuid()}
    if claims:
        claim_for(connected, host, built, VCPU=1)
    cloud.servers.append(built)
    assert found(connected, "--nova") == []


@pytest.mark.parametrize("status", ["queued", "running", "post-migrating", "finished"])
def test_a_migration_in_progress_claims_where_its_server_was(
    connected: Desk, cloud: Cloud, status: str
) -> None:
    host = connected.host(HOST, VCPU=100, MEMORY_MB=10_000)
    other = connected.host("compute-2", VCPU=100, MEMORY_MB=10_000)
    moved = server("ACTIVE", HOST)
    claim_for(connected, other, moved)
    of = migration(moved, status)
    of["uuid"] = connected.claim({host: {"VCPU": 2}}, consumer_type="MIGRATION")
    cloud.servers.append(moved)
    # Pages of finished ones come first.
    cloud.migrations += [migration(server(), "confirmed") for _ in range(5)] + [of]
    assert found(connected, "--nova") == []
    of["status"] = "confirmed"
    assert found(connected, "--nova") == [
        ("orphan", of["uuid"]),
        ("wrong host", moved["id"]),
    ]


def test_an_evacuated_server_claims_twice_until_its_host_is_back(
    connected: Desk, cloud: Cloud
) -> None:
    host = connected.host(HOST, VCPU=100, MEMORY_MB=10_000)
    other = connected.host("compute-2", VCPU=100, MEMORY_MB=10_000)
    saved = server("ACTIVE", "compute-2")
    amounts = {"VCPU": 2, "MEMORY_MB": 512}
    saved["id"] = connected.claim({host: amounts, other: amounts})
    cloud.servers.append(saved)
    cloud.migrations.append(migration(saved, "done", "evacuation"))
    assert found(connected, "--nova") == []
    cloud.migrations[0]["status"] = "completed"
    assert found(connected, "--nova") == [("wrong host", saved["id"])]


def test_a_server_that_lists_leave_out_is_no_orphan(
    connected: Desk, cloud: Cloud
) -> None:
    host = connected.host(HOST, VCPU=100)
    hidden = server("SOFT_DELETED")
    hidden["id"] = connected.claim({host: {"VCPU": 2}})
    cloud.hidden.append(hidden)
    cloud.servers.append(server("BUILD", None))
    assert found(connected, "--nova") == []
    hidden["status"] = "DELETED"
    assert found(connected, "--nova") == [("orphan", hidden["id"])]


def test_orphans_of_nova_are_released_but_no_server(
    connected: Desk, cloud: Cloud
) -> None:
    host = connected.host(HOST, VCPU=100, MEMORY_MB=10_000)
    alive = server()
    claim_for(connected, host, alive)
    orphan = connected.claim({host: {"VCPU": 2}})
    cloud.servers.append(alive)
    undo = ("--undo-file", str(connected.undo))
    status, out, _ = connected.run("--nova", "--release", "--yes", *undo)
    assert (status, f"{orphan}: released" in out) == (cli.NOTHING, True)
    assert connected.allocations(alive["id"])["allocations"]
    assert connected.allocations(orphan) == {"allocations": {}}


@pytest.mark.parametrize("is_migration", [False, True])
@pytest.mark.parametrize("goes", [True, False])
def test_a_server_that_goes_meanwhile_is_left_to_the_next_audit(
    connected: Desk,
    cloud: Cloud,
    application: "WSGIApplication",
    is_migration: bool,
    goes: bool,
) -> None:
    host = connected.host(HOST, VCPU=100)
    consumer = connected.claim({host: {"VCPU": 2}})
    # It is being built; of a migration, only the list says that it lives.
    one = {**server("BUILD", None), "id": consumer}
    if is_migration:
        one = {**migration(server(), "migrating"), "uuid": consumer}
    listed = cloud.migrations if is_migration else cloud.servers
    cloud.servers.append(server("BUILD", None))
    if goes:
        listed.append(one)
    happens = partial(listed.remove if goes else listed.append, one)

    def is_fleet(method: str, path: str) -> bool:
        return path == "/ledger/v1/fleet"

    release = ("--nova", "--release", "--yes", "--undo-file", str(connected.undo))
    with serving(Between(application, is_fleet, happens)) as network:
        connected.url = network.url
        status, out, err = connected.run(*release)
    assert (one in listed) == (not goes)
    assert (status, consumer in out) == (cli.NOTHING, False), (out, err)
    assert connected.allocations(consumer)["allocations"]
    with serving(application) as network:
        connected.url = network.url
        assert found(connected, "--nova") == [("orphan", consumer)] * goes
        _, out, _ = connected.run(*release)
    assert (f"{consumer}: released" in out) == goes


@pytest.mark.parametrize("failing", ["servers", "os-migrations"])
def test_nothing_is_an_orphan_if_nova_does_not_answer(
    connected: Desk, cloud: Cloud, failing: str
) -> None:
    host = connected.host(HOST, VCPU=100)
    orphan = connected.claim({host: {"VCPU": 2}})
    cloud.failing = failing
    status, out, err = connected.run("--nova", "--release", "--yes")
    assert (status, out) == (cli.ERROR, "")
    assert "Nova does not list living consumers" in err
    assert connected.allocations(orphan)["allocations"]


def test_nodes_of_ironic(connected: Desk, cloud: Cloud) -> None:
    assert connected.client.call("PUT", "/resource_classes/CUSTOM_NODE").status == 201
    nodes = [connected.host(f"node-{number}", CUSTOM_NODE=1) for number in range(3)]
    virtual = connected.host(HOST, VCPU=100)
    connected.claim({virtual: {"VCPU": 1}})
    used = connected.claim({nodes[0]: {"CUSTOM_NODE": 1}})
    orphan = connected.claim({nodes[1]: {"CUSTOM_NODE": 1}})
    missing = new_uuid()
    instances = [used, None, missing]
    cloud.nodes += [
        {"uuid": node, "instance_uuid": instance, "provision_state": "active"}
        for node, instance in zip(nodes, instances, strict=True)
    ]
    # Of what is not on a node, it knows nothing.
    expected = [("missing", missing), ("orphan", orphan)]
    assert found(connected, "--ironic") == expected
    cloud.nodes[2]["provision_state"] = "deploying"
    assert found(connected, "--ironic") == [("orphan", orphan)]


def test_the_cloud_may_be_that_of_a_file(
    own_desk: Desk, served: Served, cloud: Cloud, tmp_path: Path
) -> None:
    host = own_desk.host(HOST, VCPU=100)
    orphan = own_desk.claim({host: {"VCPU": 2}})
    file = tmp_path / "audit.conf"
    file.write_text(
        "[placement]\nauth_type = admin_token\ntoken = admin\n"
        f"endpoint = {own_desk.url}\nendpoint_override = {own_desk.url}\n"
        "[nova]\nauth_type = none\n"
        f"endpoint_override = {served.url}/compute/v2.1\n"
    )
    assert ("orphan", orphan) in found(own_desk, "--nova", "--config-file", str(file))
    status, _, err = own_desk.run("--ironic", "--config-file", str(file))
    assert status == cli.ERROR
    assert "[ironic] auth_type is not set" in err


@pytest.mark.parametrize(
    ("specs", "amounts"),
    [
        ({}, {"MEMORY_MB": 512, "VCPU+PCPU": 2}),
        ({"resources:VCPU": "0"}, {"MEMORY_MB": 512}),
        ({"resources1:PCPU": "4"}, {"MEMORY_MB": 512}),
        ({"resources_mem:MEMORY_MB": "0"}, {"VCPU+PCPU": 2}),
        ({"hw:emulator_threads_policy": "isolate"}, {"MEMORY_MB": 512}),
        ({"hw:emulator_threads_policy": "share"}, {"MEMORY_MB": 512, "VCPU+PCPU": 2}),
    ],
)
def test_amounts_that_are_certain_for_a_flavor(
    specs: dict[str, str], amounts: dict[str, int]
) -> None:
    from openstack.compute.v2.flavor import Flavor

    from placement_clients.audit.nova import resources_of

    assert resources_of(Flavor(vcpus=2, ram=512, extra_specs=specs)) == amounts
    assert resources_of(Flavor(id="x", extra_specs=specs)) == {}
    assert resources_of(None) == {}
