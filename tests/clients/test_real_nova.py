"""Reservations on hosts of a real Nova: ``tox -e nova``.

Its API and its database are real. There is no hypervisor: compute nodes are rows, and
Nova deletes servers by itself, as it does when the service of their host is down.
"""

import dataclasses
import importlib.util
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from placement_foundation.database.storage import Database
from placement_reservations.compute import ComputeError
from tests import programs
from tests.clients.keystone_process import wait_for
from tests.reservations.cloud import HOUR, TODAY, Cloud, make_cloud
from tests.reservations.conftest import books, books_template, books_url, bugs
from tests.reservations.nova import REFUSED
from tests.reservations.test_nova import FLAVOR, RESERVATION
from tests.serving import serving

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

__all__ = ["books", "books_url", "bugs", "books_template"]

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        importlib.util.find_spec("nova") is None,
        reason="nova is installed by tox -e nova",
    ),
    # The library calls functions that it has deprecated itself.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]

PROCESS = Path(__file__).with_name("nova_process.py")
PASTE = Path(sys.prefix, "etc", "nova", "api-paste.ini")
CONFIGURATION = """
[DEFAULT]
state_path = {directory}
transport_url = fake://
# The services of hosts are up until a test says otherwise.
service_down_time = {patience}
[api_database]
connection = sqlite:///{directory}/api.db
[database]
connection = sqlite:///{directory}/cell1.db
[oslo_concurrency]
lock_path = {directory}
[wsgi]
api_paste_config = {directory}/api-paste.ini
[placement]
auth_type = admin_token
endpoint = {placement}
token = admin
[keystone]
endpoint_override = {keystone}/v3
[glance]
endpoint_override = {keystone}
[neutron]
auth_type = admin_token
endpoint = {keystone}
endpoint_override = {keystone}
token = admin
"""
# As docs/placement-reservations.rst says.
SCHEDULER = """
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = placement_reservations.nova_filter.ReservedHostsFilter
enabled_filters = ReservedHostsFilter
"""
# compute-1 is what Nova calls the hypervisor; its service has another name.
HOSTS = {"compute-1": "service-1", "compute-2": "service-2"}


def know_projects(environ: Any, start_response: Any) -> list[bytes]:
    """Answer as Keystone and Neutron do to Nova.

    Each project exists, but one, and no server has a port.
    """
    path = environ["PATH_INFO"]
    exists = not path.endswith("/nosuch")
    start_response(
        "200 OK" if exists else "404 Not Found", [("Content-Type", "application/json")]
    )
    links = [{"rel": "self", "href": f"http://{environ['HTTP_HOST']}/v3/"}]
    version = {"id": "v3.14", "status": "stable", "links": links}
    known: dict[str, Any] = {"version": version, "ports": [], "extensions": []}
    return [json.dumps(known).encode()]


def run(work: str, directory: Path, *words: str) -> str:
    """Run a process of Nova to its end, and return what it prints."""
    done = subprocess.run(
        [sys.executable, str(PROCESS), work, str(directory / "nova.conf"), *words],
        check=True,
        env=environment(directory),
        timeout=600,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def environment(directory: Path) -> dict[str, str]:
    known = {**os.environ, "OS_NOVA_CONFIG_DIR": str(directory)}
    return {**known, "PYTHONPATH": str(PROCESS.parent)}


@pytest.fixture
def placement(application: "WSGIApplication") -> Iterator[str]:
    """Give the URL of the Placement that Nova reports to."""
    with serving(application) as served:
        yield served.url


@pytest.fixture
def cloud(application: "WSGIApplication", books: Database) -> Cloud:
    """Give Placement with the hosts of Nova, none of them reservable yet."""
    made = make_cloud(application, books)
    for name in HOSTS:
        made.make_host(name)
    return made


@pytest.fixture
def directory(tmp_path: Path, placement: str) -> Iterator[Path]:
    """Give the directory of Nova, whose databases are empty."""
    with serving(know_projects) as keystone:
        text = CONFIGURATION.format(
            directory=tmp_path,
            patience=10**8,
            placement=placement,
            keystone=keystone.url,
        )
        (tmp_path / "nova.conf").write_text(text)
        paste, count = re.subn(
            r"(?<=\[filter:authtoken\]\n)paste.filter_factory = .*",
            "paste.filter_factory = nova_process:trust",
            PASTE.read_text(),
        )
        assert count == 1
        (tmp_path / "api-paste.ini").write_text(paste)
        cell0 = f"--database_connection=sqlite:///{tmp_path}/cell0.db"
        for words in (
            ["api_db", "sync"],
            ["cell_v2", "map_cell0", cell0],
            ["db", "sync"],
            ["cell_v2", "create_cell", "--name=cell1"],
        ):
            program = Path(sys.executable).with_name("nova-manage")
            options = [f"--config-file={tmp_path}/nova.conf", *words]
            subprocess.run([program, *options], check=True, timeout=600)
        yield tmp_path


@pytest.fixture
def url(directory: Path, cloud: Cloud) -> Iterator[str]:
    """Give the URL of Nova's API."""
    hosts = [f"{HOSTS[name]}={name}={key}" for name, key in cloud.hosts.items()]
    run("fill", directory, *hosts)
    port = programs.free_port()
    with (directory / "nova.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, PROCESS, "serve", directory, str(port)],
            env=environment(directory),
            stdout=log,
            stderr=log,
        )
        try:
            wait_for(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}/v2.1"
        finally:
            process.terminate()
            process.wait()


@pytest.fixture
def nova(url: str) -> Any:
    """Give openstacksdk's proxy of the compute service."""
    from keystoneauth1 import session, token_endpoint
    from openstack import connection

    known = session.Session(token_endpoint.Token(url, "any"))
    return connection.Connection(session=known, compute_endpoint_override=url).compute


@pytest.fixture
def leasing(nova: Any, cloud: Cloud) -> Cloud:
    """Give the cloud with Nova as the compute service of reservations."""
    from placement_reservations.compute.nova import NovaCompute

    compute = NovaCompute(nova, cloud.world.placement, "freepool")
    cloud.world = dataclasses.replace(cloud.world, compute=compute)
    return cloud


def members(nova: Any) -> dict[str, list[str]]:
    return {each.name: each.hosts for each in nova.aggregates()}


def test_a_lease_from_its_beginning_to_its_end(
    leasing: Cloud, nova: Any, directory: Path
) -> None:
    leasing.register(*HOSTS)
    assert members(nova) == {"freepool": ["service-1", "service-2"]}
    host = leasing.host("compute-1")
    assert (host.reservable, host.details.service_name) == (True, "service-1")

    lease = leasing.order(9, start=TODAY, hours=1)
    (reservation,) = leasing.lease(lease).reservations
    flavor = nova.get_flavor(reservation.id)
    assert (flavor.vcpus, flavor.ram, flavor.disk) == (1, 512, 5)
    assert not flavor.is_public
    assert nova.fetch_flavor_extra_specs(flavor).extra_specs == {
        f"resources:{reservation.resource_class}": "1"
    }
    assert nova.get_flavor_access(flavor) == []

    leasing.run_due()
    assert leasing.status(lease) == "ACTIVE"
    (access,) = nova.get_flavor_access(flavor)
    assert access["tenant_id"] == "blue"
    assert sum(leasing.inventories()[reservation.resource_class].values()) == 9

    server = str(uuid.uuid4())
    run("boot", directory, server, "service-1", "compute-1", reservation.id)
    compute = leasing.world.compute
    assert compute.list_servers_on("compute-1") == [server]
    assert compute.list_servers_on("compute-2") == []
    servers = compute.list_servers_of(reservation, list(HOSTS), lambda: None)
    assert servers == [server]

    leasing.clock.advance(HOUR)
    leasing.run_due()
    run("down", directory)
    leasing.run_due(advance=HOUR)
    assert leasing.status(lease) == "TERMINATED"
    assert list(nova.servers(all_projects=True)) == []
    assert list(nova.flavors(is_public=None)) == []
    leasing.assert_consistent()

    for name in HOSTS:
        leasing.world.compute.leave_pool(name)
    assert members(nova) == {"freepool": []}


def test_every_operation_can_be_repeated(leasing: Cloud, nova: Any) -> None:
    compute = leasing.world.compute
    operations: list[Callable[[], object]] = [
        lambda: compute.make_flavor(FLAVOR),
        lambda: compute.give_access(FLAVOR.id, "blue"),
        lambda: compute.take_access(FLAVOR.id, "blue"),
        lambda: compute.delete_flavor(FLAVOR.id),
        lambda: compute.take_access(FLAVOR.id, "blue"),
        lambda: compute.delete_server(str(uuid.uuid4())),
        lambda: compute.join_pool("compute-1"),
        lambda: compute.leave_pool("compute-1"),
    ]
    for operation in operations:
        operation()
        operation()
    assert members(nova) == {"freepool": []}
    assert compute.find_host("nosuch") is None
    # So servers are deleted before their flavor.
    assert compute.list_servers_of(RESERVATION, list(HOSTS), lambda: None) == []


def test_what_nova_refuses_is_a_failure(leasing: Cloud) -> None:
    compute = leasing.world.compute
    compute.make_flavor(FLAVOR)
    with pytest.raises(ComputeError, match="nosuch is not a valid project") as refused:
        compute.give_access(FLAVOR.id, "nosuch")
    assert not refused.value.may_pass
    # A project that is deleted while its lease is active.
    compute.take_access(FLAVOR.id, "nosuch")
    with pytest.raises(ComputeError):
        compute.join_pool("nosuch")


def test_it_refuses_what_the_stand_in_refuses(url: str) -> None:
    from keystoneauth1 import session, token_endpoint

    known = session.Session(token_endpoint.Token(url, "any"))
    found = []
    for method, path, version, body, _ in REFUSED:
        headers = {"OpenStack-API-Version": f"compute {version}"}
        answer = known.request(
            f"{url}/{path}", method, json=body, headers=headers, raise_exc=False
        )
        found.append((method, path, version, body, answer.status_code))
    assert found == REFUSED


def test_the_scheduler_finds_the_filter_by_its_name(directory: Path) -> None:
    path = directory / "nova.conf"
    path.write_text(path.read_text() + SCHEDULER)
    printed = run("filter", directory)
    assert json.loads(printed.splitlines()[-1]) == {
        "ordinary": ["service-2"],
        "reserved": ["service-1", "service-2"],
    }
