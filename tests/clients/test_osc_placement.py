"""The service as the ``openstack`` command line uses it: ``tox -e clients``."""

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import programs
from tests.client import new_uuid

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        importlib.util.find_spec("osc_placement") is None,
        reason="the client is installed by tox -e clients",
    ),
]

OPENSTACK = Path(sys.executable).with_name("openstack")
OLDEST, LATEST = "1.0", "1.39"
PATIENCE_SECONDS = 60


# Runs one command after the other, each as the program ``openstack`` would, in a fresh
# copy of a process that has loaded the client: that takes longer than most commands.
BATCH = """
import contextlib, io, json, os, sys
from openstackclient import shell

for line in sys.stdin:
    child = os.fork()
    if not child:
        output, complaints = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output):
            with contextlib.redirect_stderr(complaints):
                try:
                    code = shell.main(json.loads(line))
                except SystemExit as ended:
                    code = ended.code
        print(json.dumps([code, output.getvalue(), complaints.getvalue()]), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """How a command ended, and what it printed."""

    code: int
    output: str
    complaints: str


class Shell:
    """A terminal in which a user runs the command line client."""

    def __init__(self, url: str, home: Path) -> None:
        self.options = [
            "--os-auth-type=admin_token",
            f"--os-endpoint={url}",
            "--os-token=admin",
        ]
        self.environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
        self._batch = subprocess.Popen(
            [sys.executable, "-c", BATCH],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._batch.communicate(timeout=PATIENCE_SECONDS)

    def run(self, command: str, *arguments: str, version: str = LATEST) -> Done:
        asked = f"--os-placement-api-version={version}"
        words = [*self.options, asked, *command.split(), *arguments]
        assert self._batch.stdin
        assert self._batch.stdout
        self._batch.stdin.write(json.dumps(words) + "\n")
        self._batch.stdin.flush()
        return Done(*json.loads(self._batch.stdout.readline()))

    def do(self, command: str, *arguments: str, version: str = LATEST) -> None:
        """Run a command that prints nothing."""
        done = self.run(command, *arguments, version=version)
        assert done == Done(0, "", "")

    def ask(self, command: str, *arguments: str, version: str = LATEST) -> Any:
        """Return the table or record that a command prints."""
        done = self.run(command, *arguments, "-f", "json", version=version)
        assert done.code == 0, done
        return json.loads(done.output)

    def fail(self, command: str, *arguments: str, version: str = LATEST) -> str:
        """Return the error message of a command."""
        done = self.run(command, *arguments, version=version)
        assert done.code == 1, done
        return done.complaints

    def make_provider(self, *arguments: str) -> str:
        uuid = new_uuid()
        made = self.ask("resource provider create", uuid, "--uuid", uuid, *arguments)
        assert made["uuid"] == made["name"] == uuid
        return uuid

    def inventory(self, provider: str, *amounts: str) -> None:
        arguments = [word for amount in amounts for word in ("--resource", amount)]
        self.ask("resource provider inventory set", provider, *arguments)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    home = tmp_path_factory.mktemp("home")
    with programs.serving("placement.cmd.api", home=home) as url:
        shell = Shell(url, home)
        yield shell
        shell.close()


def column(table: list[dict[str, Any]], name: str) -> set[Any]:
    return {row[name] for row in table}


def test_the_program_itself(shell: Shell) -> None:
    done = subprocess.run(
        [OPENSTACK, *shell.options, *["resource", "provider", "list", "-f", "json"]],
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    assert isinstance(json.loads(done.stdout), list)
    assert done.stderr == ""


def test_resource_classes(shell: Shell) -> None:
    shell.do("resource class create", "CUSTOM_BOARD", version="1.2")
    assert "already exists" in shell.fail("resource class create", "CUSTOM_BOARD")
    shell.do("resource class set", "CUSTOM_BOARD", version="1.7")
    shell.do("resource class set", "CUSTOM_CARD")
    shown = shell.ask("resource class show", "CUSTOM_CARD", version="1.2")
    assert shown == {"name": "CUSTOM_CARD"}
    listed = column(shell.ask("resource class list", version="1.2"), "name")
    assert {"VCPU", "CUSTOM_BOARD", "CUSTOM_CARD"} <= listed
    shell.do("resource class delete", "CUSTOM_CARD")
    complaint = shell.fail("resource class show", "CUSTOM_CARD")
    assert "No such resource class CUSTOM_CARD. (HTTP 404)" in complaint
    complaint = shell.fail("resource class delete", "VCPU")
    assert "Cannot delete standard resource class VCPU. (HTTP 400)" in complaint


def test_traits(shell: Shell) -> None:
    shell.do("trait create", "CUSTOM_BLUE", version="1.6")
    shell.do("trait create", "CUSTOM_BLUE")
    assert shell.ask("trait show", "CUSTOM_BLUE") == {"name": "CUSTOM_BLUE"}
    assert "HW_NUMA_ROOT" in column(shell.ask("trait list", version="1.6"), "name")
    prefixed = shell.ask("trait list", "--name", "startswith:CUSTOM_BL")
    assert prefixed == [{"name": "CUSTOM_BLUE"}]
    listed = shell.ask("trait list", "--name", "in:CUSTOM_BLUE,CUSTOM_RED")
    assert listed == [{"name": "CUSTOM_BLUE"}]
    provider = shell.make_provider()
    shell.ask("resource provider trait set", provider, "--trait", "CUSTOM_BLUE")
    assert shell.ask("trait list", "--associated") == [{"name": "CUSTOM_BLUE"}]
    complaint = shell.fail("trait delete", "CUSTOM_BLUE")
    assert "is in use by a resource provider. (HTTP 409)" in complaint
    shell.do("resource provider trait delete", provider)
    shell.do("trait delete", "CUSTOM_BLUE")
    assert "No such trait(s): CUSTOM_BLUE" in shell.fail("trait show", "CUSTOM_BLUE")


@pytest.mark.parametrize("version", [OLDEST, "1.13", "1.20", LATEST])
def test_a_provider_from_creation_to_deletion(shell: Shell, version: str) -> None:
    uuid = new_uuid()
    arguments = [f"first {uuid}", "--uuid", uuid]
    made = shell.ask("resource provider create", *arguments, version=version)
    expected = {"uuid": uuid, "name": f"first {uuid}", "generation": 0}
    if version in ("1.20", LATEST):
        expected |= {"root_provider_uuid": uuid, "parent_provider_uuid": None}
    assert made == expected
    assert shell.ask("resource provider show", uuid, version=version) == expected
    found = shell.ask("resource provider list", "--uuid", uuid, version=version)
    assert found == [expected]
    expected["name"] = f"second {uuid}"
    arguments = [uuid, "--name", f"second {uuid}"]
    renamed = shell.ask("resource provider set", *arguments, version=version)
    assert renamed == expected
    found = shell.ask(
        "resource provider list", "--name", f"second {uuid}", version=version
    )
    assert found == [expected]
    shell.do("resource provider delete", uuid, version=version)
    complaint = shell.fail("resource provider show", uuid, version=version)
    assert f"No resource provider with uuid {uuid} found" in complaint


def test_trees_of_providers(shell: Shell) -> None:
    root, other = shell.make_provider(), shell.make_provider()
    child = shell.make_provider("--parent-provider", root)
    listed = shell.ask("resource provider list", "--in-tree", child, version="1.14")
    assert column(listed, "uuid") == {root, child}
    complaint = shell.fail("resource provider delete", root)
    assert "It has child resource providers. (HTTP 409)" in complaint
    move = [child, "--name", child, "--parent-provider", other]
    # The client knows no version between 1.29 and 1.37.
    complaint = shell.fail("resource provider set", *move, version="1.29")
    assert "re-parenting a provider is not currently allowed. (HTTP 400)" in complaint
    moved = shell.ask("resource provider set", *move, version="1.37")
    assert moved["parent_provider_uuid"] == moved["root_provider_uuid"] == other


def test_providers_are_found(shell: Shell) -> None:
    rich, poor = shell.make_provider(), shell.make_provider()
    shell.inventory(rich, "FPGA=8")
    shell.inventory(poor, "FPGA=2")
    shell.ask("resource provider trait set", rich, "--trait", "HW_GPU_API_DXVA")
    shell.ask("resource provider trait set", poor, "--trait", "HW_NIC_ACCEL_TLS")
    ours, theirs = new_uuid(), new_uuid()
    for provider, group in ((rich, ours), (poor, theirs)):
        arguments = [provider, "--aggregate", group, "--generation", "2"]
        shell.ask("resource provider aggregate set", *arguments)

    def find(*arguments: str, version: str = LATEST) -> set[str]:
        listed = shell.ask("resource provider list", *arguments, version=version)
        return column(listed, "uuid") & {rich, poor}

    assert find("--resource", "FPGA=2", version="1.4") == {rich, poor}
    assert find("--resource", "FPGA=3") == {rich}
    assert find("--required", "HW_GPU_API_DXVA", version="1.18") == {rich}
    assert find("--required", "HW_GPU_API_DXVA,HW_NIC_ACCEL_TLS") == {rich, poor}
    assert find("--forbidden", "HW_GPU_API_DXVA", version="1.22") == {poor}
    assert find("--member-of", ours, version="1.3") == {rich}
    assert find("--member-of", f"{ours},{theirs}") == {rich, poor}
    both = ["--member-of", ours, "--member-of", theirs]
    assert find(*both, version="1.24") == set()
    complaint = shell.fail("resource provider list", "--required", "CUSTOM_NOBODY")
    assert "No such trait(s): CUSTOM_NOBODY. (HTTP 400)" in complaint
    complaint = shell.fail("resource provider list", "--resource", "CUSTOM_NOBODY=1")
    assert "No such resource class CUSTOM_NOBODY. (HTTP 400)" in complaint


def test_inventories(shell: Shell) -> None:
    provider = shell.make_provider()
    defaults = {
        "allocation_ratio": 1.0,
        "min_unit": 1,
        "max_unit": 2147483647,
        "reserved": 0,
        "step_size": 1,
    }
    arguments = [provider, "--resource", "VCPU=8", "--resource", "VCPU:max_unit=4"]
    put = shell.ask("resource provider inventory set", *arguments, version=OLDEST)
    vcpu = {**defaults, "resource_class": "VCPU", "total": 8, "max_unit": 4}
    assert put == [vcpu]
    arguments = [provider, "--resource", "DISK_GB=100", "--amend"]
    put = shell.ask("resource provider inventory set", *arguments)
    disk = {**defaults, "resource_class": "DISK_GB", "total": 100}
    assert sorted(put, key=str) == sorted([vcpu, disk], key=str)
    arguments = [provider, "--resource", "VGPU=1", "--dry-run"]
    shell.ask("resource provider inventory set", *arguments)
    arguments = [provider, "VCPU", "--total", "16", "--reserved", "1"]
    put = shell.ask("resource provider inventory class set", *arguments)
    assert put == {**defaults, "total": 16, "reserved": 1}
    shown = shell.ask("resource provider inventory show", provider, "VCPU")
    assert shown == {**put, "used": 0}
    listed = shell.ask("resource provider inventory list", provider, version=OLDEST)
    assert column(listed, "resource_class") == {"VCPU", "DISK_GB"}
    assert column(listed, "used") == {0}
    arguments = [provider, "--resource-class", "VCPU"]
    shell.do("resource provider inventory delete", *arguments, version=OLDEST)
    complaint = shell.fail("resource provider inventory delete", *arguments)
    assert "No inventory of class VCPU found for delete (HTTP 404)" in complaint
    shell.do("resource provider inventory delete", provider, version="1.5")
    assert shell.ask("resource provider inventory list", provider) == []
    arguments = [provider, "--resource", "CUSTOM_NOBODY=8"]
    complaint = shell.fail("resource provider inventory set", *arguments)
    assert "No such resource class CUSTOM_NOBODY. (HTTP 400)" in complaint
    arguments = [provider, "--resource", "VCPU=8", "--resource", "VCPU:reserved=9"]
    complaint = shell.fail("resource provider inventory set", *arguments)
    assert "The reserved value is greater than total. (HTTP 400)" in complaint


def test_inventories_of_an_aggregate(shell: Shell) -> None:
    providers = {shell.make_provider(), shell.make_provider()}
    group = new_uuid()
    for provider in providers:
        arguments = [provider, "--aggregate", group]
        shell.ask("resource provider aggregate set", *arguments, version="1.1")
    arguments = [group, "--aggregate", "--resource", "VCPU=8"]
    put = shell.ask("resource provider inventory set", *arguments, version="1.3")
    assert column(put, "resource_provider") == providers
    assert column(put, "total") == {8}


def test_aggregates(shell: Shell) -> None:
    provider = shell.make_provider()
    one, other = new_uuid(), new_uuid()
    arguments = [provider, "--aggregate", one, "--aggregate", other]
    put = shell.ask("resource provider aggregate set", *arguments, version="1.1")
    assert put == [{"uuid": one}, {"uuid": other}]
    arguments = [provider, "--aggregate", other, "--generation", "0"]
    put = shell.ask("resource provider aggregate set", *arguments, version="1.19")
    assert put == [{"uuid": other}]
    listed = shell.ask("resource provider aggregate list", provider, version="1.1")
    assert listed == [{"uuid": other}]
    complaint = shell.fail("resource provider aggregate set", *arguments)
    assert "Please update the generation and try again. (HTTP 409)" in complaint


def test_traits_of_a_provider(shell: Shell) -> None:
    provider = shell.make_provider()
    arguments = [provider, "--trait", "HW_NUMA_ROOT", "--trait", "STORAGE_DISK_SSD"]
    put = shell.ask("resource provider trait set", *arguments, version="1.6")
    assert column(put, "name") == {"HW_NUMA_ROOT", "STORAGE_DISK_SSD"}
    listed = shell.ask("resource provider trait list", provider, version="1.6")
    assert column(listed, "name") == {"HW_NUMA_ROOT", "STORAGE_DISK_SSD"}
    shell.do("resource provider trait delete", provider)
    assert shell.ask("resource provider trait list", provider) == []
    arguments = [provider, "--trait", "CUSTOM_NOBODY"]
    complaint = shell.fail("resource provider trait set", *arguments)
    assert "No such trait(s): CUSTOM_NOBODY. (HTTP 400)" in complaint


@pytest.mark.parametrize("version", [OLDEST, "1.8", "1.12", "1.28", LATEST])
def test_allocations(shell: Shell, version: str) -> None:
    provider, other = shell.make_provider(), shell.make_provider()
    shell.inventory(provider, "VCPU=8", "DISK_GB=100")
    shell.inventory(other, "DISK_GB=100")
    consumer, project = new_uuid(), new_uuid()
    owner: list[str] = []
    if version != OLDEST:
        owner = ["--project-id", project, "--user-id", "ann"]
    if version == LATEST:
        owner += ["--consumer-type", "INSTANCE"]

    def claim(*allocations: str) -> list[str]:
        shares = [word for each in allocations for word in ("--allocation", each)]
        return [consumer, *shares, *owner]

    put = shell.ask(
        "resource provider allocation set",
        *claim(f"rp={provider},VCPU=2,DISK_GB=10", f"rp={other},DISK_GB=20"),
        version=version,
    )
    resources = {row["resource_provider"]: row["resources"] for row in put}
    assert resources == {provider: {"VCPU": 2, "DISK_GB": 10}, other: {"DISK_GB": 20}}
    shown = shell.ask("resource provider allocation show", consumer, version=version)
    assert sorted(shown, key=str) == sorted(put, key=str)
    if version in ("1.12", "1.28", LATEST):
        assert column(shown, "project_id") == {project}
        assert column(shown, "user_id") == {"ann"}
    if version == LATEST:
        assert column(shown, "consumer_type") == {"INSTANCE"}
    used = shell.ask("resource provider usage show", provider, version=version)
    assert {row["resource_class"]: row["usage"] for row in used} == {
        "VCPU": 2,
        "DISK_GB": 10,
    }
    complaint = shell.fail(
        "resource provider allocation set",
        *claim(f"rp={provider},VCPU=9"),
        version=version,
    )
    assert "Unable to allocate inventory" in complaint
    assert "(HTTP 409)" in complaint
    assert "in use" in shell.fail("resource provider inventory delete", provider)
    assert "has allocations" in shell.fail("resource provider delete", provider)
    shell.do("resource provider allocation delete", consumer, version=version)
    assert shell.ask("resource provider allocation show", consumer) == []


@pytest.mark.parametrize("version", ["1.12", "1.28", LATEST])
def test_parts_of_allocations_are_removed(shell: Shell, version: str) -> None:
    provider, other = shell.make_provider(), shell.make_provider()
    for each in (provider, other):
        shell.inventory(each, "VCPU=8", "DISK_GB=100")
    consumer = new_uuid()
    owner = ["--project-id", "blue", "--user-id", "ann"]
    if version == LATEST:
        owner += ["--consumer-type", "INSTANCE"]
    shares = [f"rp={each},VCPU=1,DISK_GB=1" for each in (provider, other)]
    words = [word for share in shares for word in ("--allocation", share)]
    arguments = [consumer, *words, *owner]
    shell.ask("resource provider allocation set", *arguments, version=version)

    def unset(*arguments: str) -> dict[str, Any]:
        left = shell.ask(
            "resource provider allocation unset", consumer, *arguments, version=version
        )
        return {row["resource_provider"]: row["resources"] for row in left}

    left = unset("--provider", provider, "--resource-class", "VCPU")
    assert left == {provider: {"DISK_GB": 1}, other: {"VCPU": 1, "DISK_GB": 1}}
    assert unset("--provider", other) == {provider: {"DISK_GB": 1}}
    if version == "1.12":
        # It expects to get the owner of the allocations that it has just deleted.
        shell.do("resource provider allocation delete", consumer, version=version)
    else:
        done = shell.run(
            "resource provider allocation unset", consumer, version=version
        )
        assert "(HTTP" not in done.complaints
    assert shell.ask("resource provider allocation show", consumer) == []


def test_usages_of_a_project(shell: Shell) -> None:
    provider, project = shell.make_provider(), new_uuid()
    shell.inventory(provider, "VCPU=8")
    for user in ("ann", "bob"):
        arguments = [new_uuid(), "--allocation", f"rp={provider},VCPU=2"]
        owner = ["--project-id", project, "--user-id", user]
        kind = ["--consumer-type", "INSTANCE"]
        shell.ask("resource provider allocation set", *arguments, *owner, *kind)
    used = shell.ask("resource usage show", project, version="1.9")
    assert used == [{"resource_class": "VCPU", "usage": 4}]
    used = shell.ask("resource usage show", project, "--user-id", "bob", version="1.9")
    assert used == [{"resource_class": "VCPU", "usage": 2}]
    # The client takes the consumer type for a class.
    (row,) = shell.ask("resource usage show", project)
    assert row["resource_class"] == "INSTANCE"
    assert row["usage"] == {"consumer_count": 2, "VCPU": 4}


def test_candidates(shell: Shell) -> None:
    root = shell.make_provider()
    children = [shell.make_provider("--parent-provider", root) for _ in range(2)]
    shell.inventory(root, "PGPU=8", "MEMORY_MB=1024")
    for child in children:
        shell.inventory(child, "VGPU=1")
    arguments = [children[0], "--trait", "HW_GPU_API_DXVA"]
    shell.ask("resource provider trait set", *arguments)
    group = new_uuid()
    for provider in (root, *children):
        generation = shell.ask("resource provider show", provider)["generation"]
        arguments = [provider, "--aggregate", group, "--generation", str(generation)]
        shell.ask("resource provider aggregate set", *arguments)

    def find(*arguments: str, version: str = LATEST) -> list[Any]:
        listed: list[Any] = shell.ask(
            "allocation candidate list", *arguments, version=version
        )
        return listed

    pgpu = ("--resource", "PGPU=2")
    for version in ("1.10", "1.17", LATEST):
        (row,) = find(*pgpu, version=version)
        assert row["resource provider"] == root
        assert "PGPU=0/8" in row["inventory used/capacity"].split(",")
    assert find("--resource", "PGPU=9") == []
    vgpu = ("--resource", "VGPU=1")
    assert column(find(*vgpu), "resource provider") == set(children)
    assert column(find(*vgpu, "--limit", "1", version="1.16"), "#") == {1}
    both = [*pgpu, *vgpu]
    assert column(find(*both, version="1.29"), "#") == {1, 2}
    assert find(*both, version="1.28") == []
    dxva = "HW_GPU_API_DXVA"
    assert column(find(*vgpu, "--required", dxva, version="1.17"), "#") == {1}
    assert column(find(*vgpu, "--required", f"{dxva},HW_NUMA_ROOT"), "#") == {1}
    assert column(find(*vgpu, "--forbidden", dxva, version="1.22"), "#") == {1}
    member = ["--member-of", group]
    assert column(find(*vgpu, *member, version="1.21"), "#") == {1, 2}
    assert find(*vgpu, *member, "--member-of", new_uuid(), version="1.24") == []
    two = ["--group", "1", *vgpu, "--group", "2", *vgpu]
    isolated = find(*two, "--group-policy", "isolate", version="1.29")
    assert column(isolated, "#") == {1, 2}
    shares = {row["resource provider"] for row in isolated if row["allocation"]}
    assert shares == set(children)
    complaint = shell.fail("allocation candidate list", "--resource", "CUSTOM_NO=1")
    assert "No such resource class CUSTOM_NO" in complaint
    assert "(HTTP 400)" in complaint


def test_a_provider_is_shown_with_its_allocations(shell: Shell) -> None:
    provider, consumer = shell.make_provider(), new_uuid()
    shell.inventory(provider, "VCPU=8")
    arguments = [consumer, "--allocation", f"rp={provider},VCPU=2"]
    owner = ["--project-id", "blue", "--user-id", "ann"]
    kind = ["--consumer-type", "INSTANCE"]
    shell.ask("resource provider allocation set", *arguments, *owner, *kind)
    for version in (OLDEST, LATEST):
        shown = shell.ask(
            "resource provider show", provider, "--allocations", version=version
        )
        assert shown["allocations"][consumer]["resources"] == {"VCPU": 2}
