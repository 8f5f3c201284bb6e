"""The reservation service as the ``openstack reservation`` command line meets it.

Placement and the service run as they are deployed: over HTTP, the service in its own
processes. ``tox -e reservations``.
"""

import dataclasses
import importlib.util
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from placement import app
from tests import backends, programs, settings
from tests.client import Client, new_uuid
from tests.clients.test_osc_placement import Done, Shell
from tests.serving import Served, serving

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        importlib.util.find_spec("blazarclient") is None,
        reason="the client is installed by tox -e reservations",
    ),
]

PROGRAM = "placement_reservations.cmd.reservations"
POOL = "7f1f1a0e-0c55-4a36-93d3-2b8a3c9e6d11"
CONFIGURATION = """
[database]
connection = sqlite:///{directory}/reservations.db
sync_on_startup = true
[api]
auth_strategy = noauth2
[placement]
auth_type = admin_token
endpoint = {placement}
token = admin
[reservations]
event_interval = 1
claim_seconds = 3
watch_interval = 1
[free_pool]
aggregate = {pool}
[oslo_policy]
policy_file = a file that does not exist.yaml
"""
FIRST_WEEK = ("--start-date", "2099-01-05 10:00", "--end-date", "2099-01-05 12:00")
SECOND_WEEK = ("--start-date", "2099-01-12 10:00", "--end-date", "2099-01-12 12:00")
PATIENCE_SECONDS = 90


class Terminal(Shell):
    """A terminal in which a user reserves room."""

    def __init__(self, url: str, home: Path) -> None:
        super().__init__(url, home)
        self.options = ["--os-auth-type=none", f"--os-endpoint={url}/v1"]

    def run(self, command: str, *arguments: str, version: str = "") -> Done:
        assert self._batch.stdin
        assert self._batch.stdout
        words = [*self.options, "reservation", *command.split(), *arguments]
        self._batch.stdin.write(json.dumps(words) + "\n")
        self._batch.stdin.flush()
        done = Done(*json.loads(self._batch.stdout.readline()))
        # What the client says about its own plugins does not concern us.
        lines = done.complaints.splitlines(keepends=True)
        ours = "".join(line for line in lines if "Could not load" not in line)
        return dataclasses.replace(done, complaints=ours)

    def ask(self, command: str, *arguments: str, version: str = "") -> Any:
        """Return the table or record that a command prints, after its messages."""
        done = self.run(command, *arguments, "-f", "json")
        assert not done.code, done
        return json.loads(re.sub(r"\A[^{\[]*", "", done.output))


@dataclasses.dataclass
class Site:
    """Placement with two hosts, the service, and a user of it."""

    placement: Client
    served: Served
    terminal: Terminal
    configuration: Path
    hosts: dict[str, str] = dataclasses.field(default_factory=dict)

    def reserve(
        self, name: str, *times: str, amount: int = 3, affinity: str = "", **size: Any
    ) -> Done:
        members = {"vcpus": 1, "memory_mb": 512, "disk_gb": 5, **size}
        wanted = ",".join(f"{key}={value}" for key, value in members.items())
        chosen = f",affinity={affinity}" if affinity else ""
        return self.terminal.run(
            "lease create",
            "--reservation",
            f"resource_type=virtual:instance,{wanted},amount={amount}{chosen}",
            *times,
            name,
        )

    def refuse(self, *arguments: Any, **named: Any) -> None:
        done = self.reserve(*arguments, **named)
        assert done.code, done
        assert "Not enough hosts available" in done.complaints
        assert arguments[0] not in self.leases()

    # Frequent checks do without the client, which takes longer than most requests.

    def leases(self) -> dict[str, str]:
        return {each["name"]: each["id"] for each in self.read("leases")["leases"]}

    def lease(self, name: str) -> Any:
        return self.read(f"leases/{self.leases()[name]}")["lease"]

    def read(self, path: str) -> Any:
        return ask("GET", f"{self.url}/{path}")

    @property
    def url(self) -> str:
        return self.terminal.options[1].partition("=")[2]

    def resource_class(self, name: str) -> str:
        reservation = self.lease(name)["reservations"][0]["id"]
        return f"CUSTOM_RESERVATION_{reservation.upper().replace('-', '_')}"

    def slots(self, name: str) -> list[str]:
        """Return the ids of the hosts of a lease's slots, one for each slot."""
        found = self.terminal.ask("allocation list", "host")
        lease_id = self.lease(name)["id"]
        return [
            each["resource_id"]
            for each in found
            for slot in each["reservations"]
            if slot["lease_id"] == lease_id
        ]

    def inventory(self, resource_class: str) -> list[int]:
        """Return reservation providers' inventories of a class, the largest first."""
        found = []
        for child in self.children().values():
            path = f"/resource_providers/{child}/inventories"
            inventories = self.placement.get(path)["inventories"]
            if resource_class in inventories:
                assert inventories[resource_class]["max_unit"] == 1
                found.append(inventories[resource_class]["total"])
        return sorted(found, reverse=True)

    def children(self) -> dict[str, str]:
        found = self.placement.get("/resource_providers")["resource_providers"]
        return {
            each["name"]: each["uuid"] for each in found if each["parent_provider_uuid"]
        }

    def classes(self) -> list[str]:
        found = self.placement.get("/resource_classes")["resource_classes"]
        return [each["name"] for each in found if "RESERVATION" in each["name"]]

    def candidates(self, query: str) -> Any:
        return self.placement.get(f"/allocation_candidates?{query}")

    def boot(self, resource_class: str) -> str | None:
        query = f"resources=VCPU:1,MEMORY_MB:512,DISK_GB:5,{resource_class}:1"
        return self.placement.boot(query)

    def wait_for(self, name: str, status: str) -> Any:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (lease := self.lease(name))["status"] != status:
            assert time.monotonic() < deadline, lease
            time.sleep(0.2)
        return lease


def ask(method: str, url: str, body: Any = None) -> Any:
    """Ask the service without the client; return its answer."""
    request = urllib.request.Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def in_a_while() -> str:
    """Return the next full minute that leaves time for another command before it."""
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(time.time() + 60 + 20))


@dataclasses.dataclass(frozen=True, slots=True)
class Started:
    """A running program, and what it printed when it started."""

    process: subprocess.Popen[bytes]
    told: str

    @property
    def url(self) -> str:
        found = re.search(r"http://\S+(?=/ by)", self.told)
        assert found, self.told
        return found[0]


def start(configuration: Path, *words: str) -> Started:
    log = configuration.with_name(f"log-{new_uuid()}")
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, *words, "--config-file", configuration],
            env=programs.environment(configuration.parent),
            stdout=output,
            stderr=output,
        )
    return Started(process, wait_for_line(process, log))


def wait_for_line(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "Ctrl-C" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    return log.read_text()


@contextmanager
def running(configuration: Path, *words: str) -> Iterator[Started]:
    started = start(configuration, *words)
    try:
        yield started
    finally:
        started.process.terminate()
        started.process.wait(timeout=30)


@pytest.fixture(scope="module")
def site(
    template: backends.Template, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("site")
    with template.fresh(home) as database:
        placement = app.build(settings.make_config(), database)
        with serving(placement) as served:
            configuration = home / "placement-reservations.conf"
            configuration.write_text(
                CONFIGURATION.format(directory=home, placement=served.url, pool=POOL)
            )
            words = ("serve", "--port", "0", "--workers", "1")
            with running(configuration, *words) as started:
                terminal = Terminal(started.url, home)
                site = Site(Client(placement), served, terminal, configuration)
                add_hosts(site)
                yield site
                terminal.close()


def add_hosts(site: Site) -> None:
    for name in ("compute-1", "compute-2"):
        root = site.placement.make_provider(VCPU=8, MEMORY_MB=8192, DISK_GB=100)
        path = f"/resource_providers/{root}"
        assert site.placement.call("PUT", path, {"name": name}).status == 200
        site.hosts[name] = root


@pytest.fixture
def clean(site: Site) -> Iterator[Site]:
    """Give the site, and leave no lease in it."""
    yield site
    for lease_id in site.leases().values():
        ask("DELETE", f"{site.url}/leases/{lease_id}")
    assert site.classes() == []


# The rows of the acceptance table, in their order. Each test starts where the one
# before it ended: with two hosts and no lease. Rows 12 and 13, an outage of Placement
# and another writer, are in tests/reservations/test_failures.py, at each call in turn.


def test_1_hosts(site: Site) -> None:
    host = site.terminal.ask("host create", "compute-1", "--extra", "gpu=True")
    assert (host["id"], host["vcpus"], host["gpu"]) == ("1", 8, "True")
    child = site.children()["blazar_compute-1"]
    path = f"/resource_providers/{child}"
    parent = site.placement.get(path)["parent_provider_uuid"]
    assert parent == site.hosts["compute-1"]
    assert site.placement.get(f"{path}/inventories")["inventories"] == {}
    assert "already exists" in site.terminal.fail("host create", "compute-1")
    assert "'nosuch' not found" in site.terminal.fail("host create", "nosuch")
    site.terminal.ask("host create", "compute-2")
    assert len(site.terminal.ask("host list")) == 2
    assert not site.terminal.run("host set", "--extra", "gpu=False", "compute-1").code
    assert site.terminal.ask("host show", "1")["gpu"] == "False"
    assert site.terminal.ask("host property list") == [{"property": "gpu"}]


def test_2_3_4_slots(clean: Site) -> None:
    site = clean
    done = site.reserve("five", *FIRST_WEEK, amount=5, memory_mb=1024, disk_gb=10)
    assert not done.code
    (listed,) = site.terminal.ask("lease list")
    assert (listed["name"], listed["id"]) == ("five", site.leases()["five"])
    assert site.lease("five")["status"] == "PENDING"
    assert site.slots("five") == ["1"] * 5
    assert site.classes() == [site.resource_class("five")]
    assert site.inventory(site.resource_class("five")) == []
    one: dict[str, Any] = {"memory_mb": 128, "disk_gb": 1}
    site.refuse("apart", *FIRST_WEEK, amount=3, affinity="False", **one)
    done = site.reserve("apart", *FIRST_WEEK, amount=2, affinity="False", **one)
    assert not done.code
    assert sorted(site.slots("apart")) == ["1", "2"]
    assert not site.reserve("one", *SECOND_WEEK, amount=2, affinity="True", **one).code
    assert len(set(site.slots("one"))) == 1
    small: dict[str, Any] = {"memory_mb": 64, "disk_gb": 1}
    site.refuse("ten", *FIRST_WEEK, amount=10, **small)
    assert not site.reserve("nine", *FIRST_WEEK, amount=9, **small).code
    site.refuse("more", *FIRST_WEEK, amount=1, **small)
    assert not site.terminal.run("lease delete", "nine").code
    assert not site.reserve("more", *FIRST_WEEK, amount=1, **small).code


def test_5_to_9_a_lease_in_use(clean: Site) -> None:
    site = clean
    assert not site.reserve("used").code
    site.wait_for("used", "ACTIVE")
    name = site.resource_class("used")
    assert sum(site.inventory(name)) == 3
    # 6: every candidate has the host and its child; as many as there are slots.
    query = f"resources=VCPU:1,MEMORY_MB:512,DISK_GB:5,{name}:1"
    for candidate in site.candidates(query)["allocation_requests"]:
        assert set(candidate["allocations"]) == {
            site.hosts["compute-1"],
            site.children()["blazar_compute-1"],
        }
    servers = [site.boot(name) for _ in range(4)]
    assert [bool(server) for server in servers] == [True, True, True, False]
    # 7: the free pool.
    everywhere = site.candidates("resources=VCPU:1")["allocation_requests"]
    assert len(everywhere) == 2
    outside = f"resources=VCPU:1&member_of=!in:{POOL}"
    assert site.candidates(outside)["allocation_requests"] == []
    # 8: what is reserved stays; leases get longer, and larger, not smaller.
    host = site.terminal.fail("host delete", "compute-1")
    assert "Can't delete host 1. The host is reserved." in host
    end = site.lease("used")["end_date"]
    done = site.terminal.run("lease set", "--prolong-for", "1h", "used")
    assert not done.code, done
    assert site.lease("used")["end_date"] > end
    assert site.inventory(name) == [3]
    reservation = site.lease("used")["reservations"][0]["id"]
    change = ("lease set", "--reservation")
    assert not site.terminal.run(*change, f"id={reservation},amount=4", "used").code
    assert sum(site.inventory(name)) == 4
    smaller = site.terminal.fail(*change, f"id={reservation},amount=2", "used")
    assert "doesn't allow to reduce/replace" in smaller
    assert sum(site.inventory(name)) == 4
    shown = site.terminal.ask("allocation show", "host", "1")["reservations"]
    assert shown.count('"lease_id"') == 4
    # 9: everything goes with the lease.
    assert not site.terminal.run("lease delete", "used").code
    for server in servers[:3]:
        assert site.placement.get(f"/allocations/{server}")["allocations"] == {}
    assert site.inventory(name) == []
    assert site.classes() == []


def test_10_a_lease_ends_by_itself(clean: Site) -> None:
    site = clean
    assert not site.reserve("short", "--end-date", in_a_while()).code
    name = site.resource_class("short")
    server = site.boot(name)
    lease = site.wait_for("short", "TERMINATED")
    assert lease["reservations"][0]["status"] == "deleted"
    assert {event["status"] for event in lease["events"]} == {"DONE"}
    assert site.classes() == []
    assert site.placement.get(f"/allocations/{server}")["allocations"] == {}


def test_11_a_reservation_provider_is_created_again(clean: Site) -> None:
    site = clean
    child = site.children()["blazar_compute-2"]
    path = f"/resource_providers/{child}"
    assert site.placement.call("DELETE", path).status == 204
    assert not site.reserve("both", amount=2, affinity="False").code
    assert site.lease("both")["status"] == "ACTIVE"
    assert site.children()["blazar_compute-2"] != child


def test_14_two_processes_run_each_event_once(clean: Site) -> None:
    site = clean
    with running(site.configuration, "events"):
        soon = in_a_while()
        later = time.strftime("%Y-%m-%d %H:%M", time.gmtime(time.time() + 3600))
        child = site.children()["blazar_compute-1"]
        before = site.placement.generation(child)
        names = ["a", "b", "c"]
        for name in names:
            done = site.reserve(name, "--start-date", soon, "--end-date", later)
            assert not done.code, done
        for name in names:
            site.wait_for(name, "ACTIVE")
    # Each successful write increments the generation, however many attempts it took.
    assert site.placement.generation(child) == before + 3


def test_the_hosts_are_removed(clean: Site) -> None:
    site = clean
    for name in ("compute-1", "compute-2"):
        assert not site.terminal.run("host delete", name).code
    assert site.children() == {}
    assert site.placement.get(f"/resource_providers?member_of={POOL}") == {
        "resource_providers": []
    }
