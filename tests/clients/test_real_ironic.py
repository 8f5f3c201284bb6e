"""The agent between a real Ironic and Placement: ``tox -e ironic``.

Ironic is one process with its API and its conductor, whose hardware is fake.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import webob
from webob.client import send_request_app

from placement_clients.client import Client
from placement_clients.record import Inventory
from tests import programs
from tests.client import new_uuid
from tests.clients.keystone_process import wait_for
from tests.db.test_restart import wait_until
from tests.nodes.caller import Caller
from tests.nodes.world import GOLD, World, gold
from tests.serving import Served

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        importlib.util.find_spec("ironic") is None,
        reason="ironic is installed by tox -e ironic",
    ),
]

SYNC = "placement_nodes.cmd.nodes_sync"
CONFIGURATION = """
[DEFAULT]
auth_strategy = noauth
host = conductor
my_ip = 127.0.0.1
rpc_transport = none
state_path = {directory}
{pin}
enabled_hardware_types = fake-hardware
enabled_bios_interfaces = no-bios
enabled_boot_interfaces = fake
enabled_console_interfaces = no-console
enabled_deploy_interfaces = fake
enabled_firmware_interfaces = no-firmware
enabled_inspect_interfaces = no-inspect
enabled_management_interfaces = fake
enabled_network_interfaces = noop
enabled_power_interfaces = fake
enabled_raid_interfaces = no-raid
enabled_rescue_interfaces = no-rescue
enabled_storage_interfaces = noop
enabled_vendor_interfaces = no-vendor
[api]
host_ip = 127.0.0.1
port = {port}
# Nodes in an answer at most, whatever a client asks for.
max_limit = 3
[conductor]
automated_clean = false
[database]
connection = sqlite:///{directory}/ironic.db
[oslo_concurrency]
lock_path = {directory}
[service_catalog]
auth_type = none
"""
BUSY = "reservation,target_power_state,target_provision_state"
# An Ironic that acts as this release: the first with traits, and the one before it.
WITH_TRAITS, WITHOUT_TRAITS = "10.1", "10.0"


class Ironic(Caller):
    """A user of Ironic, who waits until a node has reached its state."""

    def __init__(self, url: str) -> None:
        super().__init__(send_request_app)
        self.url = url

    def send(
        self, method: str, path: str, body: Any = None, **how: Any
    ) -> webob.Response:
        return super().send(method, f"{self.url}{path}", body, **how)

    def set_traits(self, node: str, traits: Any) -> None:
        body = {"traits": list(traits)}
        assert self.send("PUT", f"/v1/nodes/{node}/traits", body).status_int == 204

    def provision(self, node: str, *targets: str) -> None:
        for target in targets:
            super().provision(node, target)
            self.settle(node)

    def switch_off(self, node: str) -> None:
        """Make the power state known: that of fake hardware is not at first."""
        path = f"/v1/nodes/{node}/states/power"
        assert self.call("PUT", path, {"target": "power off"}).status == 202
        self.settle(node)

    def settle(self, node: str) -> None:
        """Wait until nothing works on a node."""
        until = time.monotonic() + programs.PATIENCE_SECONDS
        while time.monotonic() < until:
            fields = self.get(f"/v1/nodes/{node}?fields={BUSY}")
            if not any(fields[name] for name in BUSY.split(",")):
                return
            time.sleep(0.05)
        raise TimeoutError(f"{node} stays busy: {fields}")


@contextmanager
def running(directory: Path, port: int, release: str | None = None) -> Iterator[str]:
    """Run Ironic, and give its URL once it answers."""
    file = directory / "ironic.conf"
    pin = f"pin_release_version = {release}" if release else ""
    file.write_text(CONFIGURATION.format(directory=directory, port=port, pin=pin))
    programs_of_ironic = Path(sys.executable).parent
    with (directory / "output").open("a") as output:
        if not (directory / "ironic.db").exists():
            subprocess.run(
                [
                    programs_of_ironic / "ironic-dbsync",
                    *("--config-file", file, "create_schema"),
                ],
                check=True,
                stdout=output,
                stderr=output,
            )
        process = subprocess.Popen(
            [programs_of_ironic / "ironic", "--config-file", file],
            env={**os.environ, "HOME": str(directory)},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(url, process)
            yield url
        finally:
            # Asked to end, it would wait for connections.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def world_of(url: str, service: Served, placement: Client, directory: Path) -> World:
    return World(Ironic(url), Served(url), service, placement, directory / "state")


def has_traits(world: World, uuid: str, traits: set[str]) -> bool:
    return world.placement.list_providers(uuid=uuid) != [] and (
        world.traits(uuid) == traits
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "ironic"
    directory.mkdir()
    return directory


@pytest.mark.parametrize("release", [None, WITH_TRAITS])
def test_nodes_of_a_real_ironic_are_copied(
    service: Served, placement: Client, home: Path, release: str | None
) -> None:
    with running(home, programs.free_port(), release) as url:
        world = world_of(url, service, placement, home)
        ironic = world.nodes
        assert isinstance(ironic, Ironic)
        uuids = {
            name: world.enrol(name, "CUSTOM_RAID1", "HW_CPU_X86_VMX")
            for name in (f"n{number}" for number in range(7))
        }
        one, two, three, four, five, six, seven = uuids.values()
        assert world.run(parallel=4).synchronised == set(uuids.values())
        # The list has three pages.
        assert len(ironic.get("/v1/nodes")["nodes"]) == 3
        # Nothing is known yet of their power.
        assert all(world.inventories(uuid) == gold(1) for uuid in uuids.values())
        assert world.candidates(f"resources={GOLD}:1") == set()
        for name in uuids:
            ironic.switch_off(name)
        world.run(parallel=4)
        asked = f"resources={GOLD}:1&required=CUSTOM_RAID1,HW_CPU_X86_VMX"
        assert world.candidates(asked) == set(uuids.values())
        assert world.run(parallel=4).changed == set()

        ironic.set_traits("n0", ["CUSTOM_RAID5"])
        ironic.change("n1", resource_class="baremetal.silver")
        ironic.patch("n2", {"op": "remove", "path": "/resource_class"})
        ironic.call("PUT", "/v1/nodes/n3/maintenance", {"reason": "a fan"})
        ironic.change("n4", instance_uuid=new_uuid())
        ironic.change("n5", name="renamed")
        assert ironic.call("DELETE", "/v1/nodes/n6").status == 204
        tally = world.run(parallel=4)
        assert tally.changed == {one, two, three, four, five}
        assert (tally.removed, tally.left_out) == ({seven}, {three})
        assert tally.failed == set()
        assert world.traits(one) == {"CUSTOM_RAID5"}
        assert world.inventories(two) == {
            "CUSTOM_BAREMETAL_SILVER": Inventory(total=1, max_unit=1)
        }
        assert world.inventories(three) == {}
        assert world.inventories(four) == world.inventories(five) == gold(1)
        assert placement.list_providers(uuid=seven) == []
        assert world.candidates(f"resources={GOLD}:1") == {one, six}
        assert world.run(node="renamed").synchronised == {six}
        assert world.run(parallel=4).changed == set()


def test_an_ironic_without_traits_is_refused(
    service: Served, placement: Client, home: Path
) -> None:
    with running(home, programs.free_port(), WITHOUT_TRAITS) as url:
        urls = ["--nodes-url", url, "--placement-url", service.url]
        code, output, complaint = programs.run(
            SYNC, "--once", *urls, "--placement-token", "admin", home=home
        )
    assert (code, output) == (3, "")
    assert "nothing was done: the node service answered 406" in complaint
    assert "The supported version range is: [1.1, 1.36]" in complaint
    assert service.calls == []


def test_the_agent_waits_for_a_real_ironic_that_is_away(
    service: Served, placement: Client, home: Path
) -> None:
    port = programs.free_port()
    urls = ["--nodes-url", f"http://127.0.0.1:{port}", "--placement-url", service.url]
    urls += ["--placement-token", "admin"]
    with programs.start(SYNC, "--interval", "1", *urls, home=home) as agent:
        assert agent.stderr
        assert "the node service cannot be reached" in agent.stderr.readline()
        for trait in ("CUSTOM_A", "CUSTOM_B"):
            with running(home, port) as url:
                world = world_of(url, service, placement, home)
                if trait == "CUSTOM_A":
                    uuid = world.enrol("n1")
                world.nodes.set_traits("n1", [trait])
                wait_until(partial(has_traits, world, uuid, {trait}))
        agent.terminate()
        agent.communicate(timeout=30)
        assert agent.returncode == 0
