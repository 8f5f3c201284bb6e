"""``placement-nodes`` and ``placement-nodes-sync``, as an operator meets them."""

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from placement_foundation.observing import telemetry
from placement_foundation.observing.telemetry import Measure
from placement_nodes import measure
from placement_nodes.cmd import nodes as command
from placement_nodes.cmd import nodes_sync
from placement_nodes.db import migration
from placement_nodes.sync.agent import Tally
from placement_nodes.sync.report import Report
from tests import backends, programs
from tests.nodes.world import GOLD, World

SERVE = "placement_nodes.cmd.nodes"
SYNC = "placement_nodes.cmd.nodes_sync"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a machine without any configuration."""
    programs.unconfigure(monkeypatch, tmp_path)
    return tmp_path


@contextmanager
def running(*arguments: str, home: Path) -> Iterator[str]:
    """Run the service on a free port, and give its URL."""
    with programs.start(
        SERVE, "serve", "--port", "0", "--workers", "1", *arguments, home=home
    ) as process:
        assert process.stdout
        found = re.search(r"http://\S+:\d+", process.stdout.readline())
        assert found
        try:
            yield found[0]
        finally:
            process.terminate()


def test_one_command_serves_an_embedded_database(home: Path) -> None:
    with running(home=home) as url:
        with urllib.request.urlopen(f"{url}/v1/nodes", timeout=30) as answer:
            assert json.load(answer) == {"nodes": []}
            assert answer.headers["X-OpenStack-Ironic-API-Version"] == "1.1"
        with urllib.request.urlopen(f"{url}/healthcheck", timeout=30) as answer:
            assert json.load(answer) == {"status": "ok"}


def test_without_authentication_other_machines_are_not_served(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    assert command.main(["serve", "--port", "0", "--host", "0.0.0.0"]) == 1
    assert "--insecure" in capsys.readouterr().err
    assert not (home / "data").exists()


def test_tables_are_made_by_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with backends.empty_database(tmp_path) as url:
        file = tmp_path / "nodes.conf"
        file.write_text(f"[database]\nconnection = {url}\n")
        asked = ["--config-file", str(file)]
        assert command.main(["serve", "--port", "0", *asked]) == 1
        assert "run placement-nodes db sync" in capsys.readouterr().err
        for _ in range(2):
            assert command.main(["db", "sync", *asked]) == 0
        database = backends.connect(url)
        assert migration.SCHEMA.version(database) == migration.SCHEMA.head
        database.engine.dispose()


def test_a_broken_configuration_is_reported_in_one_line(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / "nodes.conf"
    file.write_text("[api]\nauth_strategy = everybody\n")
    for arguments in (["serve", "--port", "0"], ["db", "sync"]):
        assert command.main([*arguments, "--config-file", str(file)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("placement-nodes: ")
        assert "everybody" in line


def test_servers_import_the_service(tmp_path: Path) -> None:
    script = "from placement_nodes.wsgi import application as a; print(a)"
    with backends.empty_database(tmp_path) as url:
        environment = programs.environment(tmp_path)
        environment["OS_DATABASE__CONNECTION"] = url
        environment["OS_DATABASE__SYNC_ON_STARTUP"] = "true"
        environment["OS_API__AUTH_STRATEGY"] = "noauth2"
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert "Surrounded" in done.stdout
        database = backends.connect(url)
        assert migration.SCHEMA.version(database) == migration.SCHEMA.head
        database.engine.dispose()


def sync(world: World, home: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the agent as a program."""
    urls = ["--nodes-url", world.nodes_service.url]
    urls += ["--placement-url", world.service.url, "--placement-token", "admin"]
    return programs.run(SYNC, *urls, *arguments, home=home)


def test_nodes_are_copied_to_placement_by_a_command(world: World, home: Path) -> None:
    uuid = world.enrol("n1", "CUSTOM_A")
    code, output, _ = sync(world, home, "--dry-run")
    assert (code, world.writes()) == (0, [])
    assert f"{uuid}: create the provider {uuid}\n" in output
    code, output, _ = sync(world, home, "--once")
    assert code == 0
    assert output.endswith(
        "1 synchronised, 1 changed, 0 removed, 0 left out, 0 failed, 0 unanswered, "
        "0 held\n"
    )
    assert world.candidates(f"resources={GOLD}:1&required=CUSTOM_A") == {uuid}
    world.nodes.call("DELETE", "/v1/nodes/n1")
    # It is the only one: the list has to say so twice.
    assert sync(world, home, "--once", "--remove-many")[0] == 1
    assert sync(world, home, "--once", "--remove-many")[0] == 0
    assert world.placement.list_providers() == []


def run(*arguments: str) -> int:
    return nodes_sync.main(["--once", *arguments])


def test_the_exit_code_tells_what_went_wrong(
    world: World, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = "http://127.0.0.1:9"
    nodes = ["--nodes-url", world.nodes_service.url]
    placement = ["--placement-url", world.service.url, "--placement-token", "admin"]
    world.enrol("n1")
    assert run(*nodes, *placement, "--node", "n9") == 1
    assert run(*nodes, "--placement-url", nobody, "--placement-token", "admin") == 1
    assert run(*nodes, *placement[:2]) == 1
    assert run("--nodes-url", nobody, *placement) == 3
    capsys.readouterr()
    assert run(*nodes, *placement[2:]) == 2
    assert "--placement-token needs --placement-url" in capsys.readouterr().err
    assert run(*nodes) == 2
    assert "[placement] auth_type is not set" in capsys.readouterr().err
    assert run("--config-file", str(home / "none.conf"), *nodes, *placement) == 2
    assert run(*nodes, *placement, "--interval", "0") == 2
    assert "--interval 0: Should be" in capsys.readouterr().err
    file = home / "nodes.conf"
    file.write_text("[sync]\nparallel = 0\n")
    assert run(*nodes, *placement, "--config-file", str(file)) == 2
    complaint = capsys.readouterr().err
    assert "parallel" in complaint
    assert str(file) in complaint
    file.write_bytes(b"# \xfc\n[sync]\n")
    assert run(*nodes, *placement, "--config-file", str(file)) == 2
    assert "can't decode byte 0xfc" in capsys.readouterr().err
    state = home / "data" / "placement-nodes" / "providers.json"
    state.write_text("{")
    assert run(*nodes, *placement) == 2
    assert str(state) in capsys.readouterr().err


def test_the_agent_runs_until_it_is_stopped(world: World, home: Path) -> None:
    world.enrol("n1", "CUSTOM_A")
    urls = ["--nodes-url", world.nodes_service.url]
    urls += ["--placement-url", world.service.url, "--placement-token", "admin"]
    with programs.start(SYNC, "--interval", "1", *urls, home=home) as process:
        assert process.stdout
        lines = iter(process.stdout.readline, "")
        programs.read_until(lines, "set the traits to CUSTOM_A")
        world.nodes.set_traits("n1", ["CUSTOM_B"])
        programs.read_until(lines, "set the traits to CUSTOM_B")
        process.terminate()
        process.communicate(timeout=30)
        assert process.returncode == 0


def test_nodes_are_listed_by_their_traits(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.enrol("n1", "CUSTOM_RED", "CUSTOM_FOO")
    world.enrol("n2", "CUSTOM_RED", "CUSTOM_BLUE")
    world.enrol("n3", "CUSTOM_FOO")
    for asked, names in (
        ([], ["n1", "n2", "n3"]),
        (["--trait", "CUSTOM_RED"], ["n1", "n2"]),
        (["--trait", "CUSTOM_RED", "--trait", "CUSTOM_BLUE"], ["n2"]),
        (
            ["--any-trait", "CUSTOM_BLUE", "--any-trait", "CUSTOM_FOO"],
            ["n1", "n2", "n3"],
        ),
        (["--trait", "CUSTOM_FOO", "--not-trait", "CUSTOM_RED"], ["n3"]),
    ):
        url = ["--url", world.nodes_service.url, "--token", "admin"]
        assert command.main(["list", *url, *asked]) == 0
        head, *lines = capsys.readouterr().out.splitlines()
        assert head.split()[:2] == ["uuid", "name"]
        assert [line.split()[1] for line in lines] == names
    assert command.main(["list", "--url", "http://127.0.0.1:9"]) == 1
    assert "cannot be reached" in capsys.readouterr().err


def test_the_agent_is_configured_by_a_file_and_says_how_it_is(
    world: World, home: Path
) -> None:
    uuid = world.enrol("n1")
    port = programs.free_port()
    file = home / "nodes.conf"
    file.write_text(
        "[baremetal]\nauth_type = none\n"
        f"endpoint_override = {world.nodes_service.url}\n"
        "[placement]\nauth_type = admin_token\ntoken = admin\n"
        f"endpoint = {world.service.url}\nendpoint_override = {world.service.url}\n"
        f"[sync]\ninterval = 1\nmonitoring_address = 127.0.0.1:{port}\n"
        f"state_file = {home / 'mine'}\n"
    )
    asked = ["--config-file", str(file)]
    with programs.start(SYNC, *asked, home=home) as process:
        assert process.stdout
        programs.read_until(iter(process.stdout.readline, ""), "set the inventory")
        url = f"http://127.0.0.1:{port}"
        read = urllib.request.urlopen
        assert read(f"{url}/livez", timeout=30).read() == b"ok\n"
        # What a pass did is logged a moment before it is counted.
        wanted = {
            'passes_total{outcome="complete"}',
            'nodes{outcome="synchronised"} 1.0',
        }
        while wanted:
            counted = read(f"{url}/metrics", timeout=30).read().decode()
            wanted = {each for each in wanted if each not in counted}
        ready = read(f"{url}/readyz", timeout=30).read().decode()
        assert ready == "nodes: ok\nplacement: ok\n"
        process.terminate()
        process.communicate(timeout=30)
        assert process.returncode == 0
    assert json.loads((home / "mine").read_text())["providers"] == [uuid]


def test_an_agent_that_no_placement_answers_is_not_ready() -> None:
    now = 1000.0
    report = Report(60, clock=lambda: now)
    assert report.reads_nodes()
    assert report.reaches_placement()
    now += 241
    assert not report.reads_nodes()
    report.heard("nodes")
    assert report.reads_nodes()
    report.made(Tally(failed={"a"}, unanswered={"a"}))
    assert not report.reaches_placement()
    report.heard("placement")
    assert report.reaches_placement()
    report.skipped()
    assert report.reads_nodes()


def test_a_long_pass_does_not_mean_that_the_nodes_cannot_be_read() -> None:
    now = 1000.0
    report = Report(60, clock=lambda: now)
    report.heard("nodes")
    now += 900
    assert report.reads_nodes()
    assert not report.reaches_placement()
    report.made(Tally())
    now += 240
    assert report.reads_nodes()
    now += 1
    assert not report.reads_nodes()
    report.heard("nodes")
    report.skipped()
    now += 241
    assert not report.reads_nodes()


def test_removals_that_wait_are_measured() -> None:
    class Counts(telemetry.Observer):
        held = -1.0

        def record(
            self, measured: Measure, amount: float, labels: Mapping[str, str]
        ) -> None:
            if measured is measure.REMOVALS_HELD:
                self.held = amount

    counts = Counts()
    telemetry.add(counts)
    try:
        Report(60).made(Tally(failed={"a", "b"}, held={"a", "b"}))
    finally:
        telemetry.remove(counts)
    assert counts.held == 2
