"""The node service as its real clients use it: ``tox -e baremetal``.

The ``openstack baremetal`` command line, and the library openstacksdk.
"""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import programs
from tests.clients.test_osc_placement import Done, Shell

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        importlib.util.find_spec("ironicclient") is None,
        reason="the clients are installed by tox -e baremetal",
    ),
]

PAGE = Path(__file__).parents[2] / "docs" / "placement-nodes.rst"
PROGRAM = "placement_nodes.cmd.nodes"
# The version that the client asks for by default, and one that it can be told to use.
VERSIONS = ("", "1.37")
STATES = "provision_state"


class Terminal(Shell):
    """A terminal in which a user manages nodes."""

    def __init__(self, url: str, home: Path) -> None:
        super().__init__(url, home)
        self.url = url
        self.options = ["--os-auth-type=none", f"--os-endpoint={url}"]

    def run(self, command: str, *arguments: str, version: str = "") -> Done:
        asked = [f"--os-baremetal-api-version={version}"] if version else []
        words = [*self.options, *asked, "baremetal", *command.split(), *arguments]
        assert self._batch.stdin
        assert self._batch.stdout
        self._batch.stdin.write(json.dumps(words) + "\n")
        self._batch.stdin.flush()
        return Done(*json.loads(self._batch.stdout.readline()))

    def ask(self, command: str, *arguments: str, version: str = "") -> Any:
        """Return the table or record that a command prints."""
        return super().ask(command, *arguments, version=version)

    def say(self, command: str, *arguments: str, version: str = "") -> str:
        """Return the output of a command that does not print a table."""
        done = self.run(command, *arguments, version=version)
        assert (done.code, done.complaints) == (0, ""), done
        return done.output.strip()

    def complaint(self, command: str, *arguments: str, version: str = "") -> str:
        """Return the error message of a command."""
        done = self.run(command, *arguments, version=version)
        assert done.code == 1, done
        return done.complaints

    def traits(self, node: str, version: str = "") -> set[str]:
        table = self.ask("node trait list", node, version=version)
        return {row["traits"] for row in table}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    home = tmp_path_factory.mktemp("home")
    with programs.serving(PROGRAM, "serve", "--workers", "1", home=home) as url:
        shell = Terminal(url, home)
        yield shell
        shell.close()


@pytest.fixture
def node(shell: Terminal) -> Iterator[str]:
    """Enrol a node with a resource class, and return its name."""
    shell.ask(
        "node create",
        *("--driver", "fake-hardware", "--name", "n1"),
        *("--resource-class", "baremetal.gold"),
    )
    yield "n1"
    shell.run("node maintenance set", "n1")
    assert shell.run("node delete", "n1").code == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_traits(shell: Terminal, node: str, version: str) -> None:
    added = ["CUSTOM_FOO", "HW_CPU_X86_VMX"]
    said = shell.say("node add trait", node, *added, version=version)
    assert said.splitlines() == [f"Added trait {trait}" for trait in added]
    assert shell.traits(node, version) == set(added)
    said = shell.say("node remove trait", node, "CUSTOM_FOO", version=version)
    assert said == "Removed trait CUSTOM_FOO"
    assert shell.traits(node, version) == {"HW_CPU_X86_VMX"}
    shell.say("node remove trait", "--all", node, version=version)
    assert shell.traits(node, version) == set()


def test_bad_traits(shell: Terminal, node: str) -> None:
    complaint = shell.complaint("node add trait", node, "custom_bad")
    assert "Schema error for trait: 'custom_bad' is not valid" in complaint
    assert "(HTTP 400)" in complaint
    complaint = shell.complaint("node remove trait", node, "CUSTOM_NO")
    assert "doesn't have a trait 'CUSTOM_NO'" in complaint
    complaint = shell.complaint("node trait list", "n9")
    assert "Node n9 could not be found. (HTTP 404)" in complaint


@pytest.mark.parametrize("version", VERSIONS)
def test_lists(shell: Terminal, node: str, version: str) -> None:
    shell.say("node add trait", node, "CUSTOM_B", "CUSTOM_A")
    fields = ["--fields", "uuid", "name", "traits"]
    [row] = shell.ask("node list", *fields, version=version)
    assert (row["name"], row["traits"]) == ("n1", ["CUSTOM_A", "CUSTOM_B"])
    shown = shell.ask("node show", node, *fields, version=version)
    assert (shown["name"], shown["traits"]) == ("n1", ["CUSTOM_A", "CUSTOM_B"])
    assert shown["uuid"] == row["uuid"]
    [row] = shell.ask("node list", version=version)
    assert (row["name"], row["provision_state"]) == ("n1", "enroll")
    [row] = shell.ask("node list", "--long", version=version)
    assert (row["name"], row["traits"]) == ("n1", ["CUSTOM_A", "CUSTOM_B"])
    assert row["resource_class"] == "baremetal.gold"


def test_pages_of_a_list(shell: Terminal, node: str) -> None:
    for name in ("n2", "n3"):
        shell.ask("node create", "--driver", "fake-hardware", "--name", name)
    rows = shell.ask("node list", "--limit", "2")
    assert [row["name"] for row in rows] == ["n1", "n2"]
    rows = shell.ask("node list", "--marker", rows[-1]["uuid"])
    assert [row["name"] for row in rows] == ["n3"]
    # The client sorts the nodes that it has received.
    rows = shell.ask("node list", "--sort", "name:desc")
    assert [row["name"] for row in rows] == ["n3", "n2", "n1"]
    rows = shell.ask("node list", "--resource-class", "baremetal.gold")
    assert [row["name"] for row in rows] == ["n1"]
    said = shell.say("node delete", "n2", "n3")
    assert said.splitlines() == ["Deleted node n2", "Deleted node n3"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_node_from_enrolment_to_an_instance_and_back(
    shell: Terminal, node: str, version: str
) -> None:
    def state() -> tuple[str, str]:
        fields = ["--fields", STATES, "power_state"]
        shown = shell.ask("node show", node, *fields, version=version)
        return shown[STATES], shown["power_state"]

    def reason() -> tuple[bool, str]:
        rows = shell.ask("node validate", node, version=version)
        [row] = [row for row in rows if row["Interface"] == "deploy"]
        assert len(rows) == 9
        return row["Result"], row["Reason"]

    shell.say("node manage", node, "--wait", "5", version=version)
    assert state() == ("manageable", "power off")
    shell.say("node provide", node, "--wait", "5", version=version)
    assert state() == ("available", "power off")
    wanted = 'traits=["CUSTOM_X"]'
    shell.say("node set", node, "--instance-info", wanted, version=version)
    good, why = reason()
    assert not good
    assert why.endswith("is missing traits CUSTOM_X")
    complaint = shell.complaint("node deploy", node, version=version)
    assert "Failed to validate deploy or power info for node" in complaint
    assert state() == ("available", "power off")
    shell.say("node add trait", node, "CUSTOM_X", version=version)
    assert reason() == (True, "")
    shell.say("node deploy", node, "--wait", "5", version=version)
    assert state() == ("active", "power on")
    complaint = shell.complaint("node manage", node, version=version)
    assert 'The requested action "manage" can not be performed' in complaint
    shell.say("node undeploy", node, version=version)
    assert state() == ("available", "power off")
    assert shell.traits(node, version) == {"CUSTOM_X"}


def test_other_changes(shell: Terminal, node: str) -> None:
    shell.say("node maintenance set", node, "--reason", "smoke")
    shown = shell.ask("node show", node)
    assert (shown["maintenance"], shown["maintenance_reason"]) == (True, "smoke")
    shell.say("node maintenance unset", node)
    shell.say("node power on", node)
    assert shell.ask("node show", node)["power_state"] == "power on"
    shell.say("node set", node, "--extra", "rack=5", "--resource-class", "silver")
    shell.say("node set", node, "--property", "cpus=4")
    shell.say("node unset", node, "--extra", "rack")
    shown = shell.ask("node show", node)
    assert (shown["extra"], shown["resource_class"]) == ({}, "silver")
    assert shown["properties"] == {"cpus": 4}
    complaint = shell.complaint("node set", node, "--driver", "none")
    assert "There is no driver 'none'" in complaint
    [row] = shell.ask("driver list")
    assert row["name"] == "fake-hardware"


# Deprecation warnings of the library itself.
@pytest.mark.filterwarnings("ignore:::openstack")
def test_the_library(shell: Terminal, tmp_path: Path) -> None:
    import openstack

    connection: Any = openstack.connect(
        auth_type="none", endpoint=shell.url, baremetal_endpoint_override=shell.url
    )
    baremetal = connection.baremetal
    node = baremetal.create_node(
        driver="fake-hardware", name="sdk", resource_class="gold"
    )
    baremetal.add_node_trait(node, "CUSTOM_A")
    baremetal.add_node_trait(node, "CUSTOM_B")
    assert baremetal.get_node("sdk").traits == ["CUSTOM_A", "CUSTOM_B"]
    baremetal.remove_node_trait(node, "CUSTOM_A")
    [found] = baremetal.nodes(fields=["uuid", "name", "traits"])
    assert (found.name, found.traits) == ("sdk", ["CUSTOM_B"])
    baremetal.set_node_traits(node, ["CUSTOM_C", "HW_CPU_X86_VMX"])
    assert baremetal.get_node("sdk").traits == ["CUSTOM_C", "HW_CPU_X86_VMX"]
    [whole] = baremetal.nodes(details=True)
    assert (whole.resource_class, whole.provision_state) == ("gold", "enroll")
    baremetal.set_node_provision_state(node, "manage", wait=True)
    baremetal.set_node_provision_state(node, "provide", wait=True)
    assert baremetal.get_node("sdk").provision_state == "available"
    baremetal.update_node(node, extra={"rack": 5})
    assert baremetal.get_node("sdk").extra == {"rack": 5}
    assert baremetal.validate_node(node)["deploy"].result
    baremetal.delete_node(node)
    assert list(baremetal.nodes()) == []
