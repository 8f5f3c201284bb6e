"""The service as the ``openstack`` command line uses it: ``tox -e clients``.

Here is what the client's own tests leave out; ``test_client_suites.py`` runs those.
"""

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
LATEST = "1.39"
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
