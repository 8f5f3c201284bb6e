"""``placement-reservations``, as operators and web servers start it."""

import argparse
import dataclasses
import datetime
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pytest

from placement_foundation.serving import program
from placement_reservations import conf
from placement_reservations.cmd import reservations as command
from placement_reservations.db import migration
from placement_reservations.world import Rules
from tests import backends, programs
from tests.reservations.options import make_config

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("options", "runs_events"), [([], 1), (["--no-events"], 0)])
def test_events_are_run_unless_switched_off(
    monkeypatch: pytest.MonkeyPatch, options: list[str], runs_events: int
) -> None:
    begun: list[object] = []

    def begin(program: program.Program, asked: argparse.Namespace) -> int:
        program.begin(make_config())
        return 0

    monkeypatch.setattr(
        command, "PROGRAM", dataclasses.replace(command.PROGRAM, begin=begun.append)
    )
    monkeypatch.setattr(program, "serve", begin)
    assert command.main(["serve", "--port", "0", *options]) == 0
    assert len(begun) == runs_events


def test_operators_set_the_rules() -> None:
    seconds = {
        "claim_seconds": 11,
        "server_patience": 12,
        "end_retry_interval": 13,
        "watch_interval": 14,
    }
    minutes = {"cleaning_time": 1, "minutes_before_end_lease": 2}
    named = {("reservations", name): n for name, n in {**seconds, **minutes}.items()}
    second = datetime.timedelta(seconds=1)
    assert conf.rules(make_config(named)) == Rules(
        cleaning=60 * second,
        claim=11 * second,
        patience=12 * second,
        retry=13 * second,
        watch=14 * second,
        notice=120 * second,
    )
    assert conf.rules(make_config()) == Rules()


def test_events_are_run_by_a_process_of_their_own(tmp_path: Path) -> None:
    module = "placement_reservations.cmd.reservations"
    with programs.start(module, "events", home=tmp_path) as process:
        assert process.stdout
        assert process.stdout.readline() == "Running events. Ctrl-C stops it.\n"
        process.terminate()
        _, complaints = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in complaints


@pytest.mark.parametrize("arguments", [["serve", "--port", "0"], ["events"]])
@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["[placement]", "auth_type = password"], "auth_url"),
        (["[reservations]", "compute = nova"], "[nova] auth_type is not set"),
        (["[free_pool]", "aggregate = freepool"], "'freepool' doesn't match"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_reported_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    lines: list[str],
    fault: str,
) -> None:
    programs.unconfigure(monkeypatch, tmp_path)
    if "compute = nova" in lines:
        pytest.importorskip("openstack")
    file = tmp_path / "reservations.conf"
    file.write_text("\n".join(lines))
    assert command.main([*arguments, "--config-file", str(file)]) == 1
    told, complaint = capsys.readouterr()
    assert told == ""
    (line,) = complaint.splitlines()
    assert fault in line


def test_the_extra_for_nova_is_named_where_it_is_missing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    programs.unconfigure(monkeypatch, tmp_path)
    monkeypatch.setitem(sys.modules, "placement_reservations.compute.nova", None)
    monkeypatch.delattr("placement_reservations.compute.nova", raising=False)
    file = tmp_path / "reservations.conf"
    file.write_text("[reservations]\ncompute = nova\n")
    assert command.main(["events", "--config-file", str(file)]) == 1
    assert "placement-server[nova]" in capsys.readouterr().err


def test_servers_import_the_service(tmp_path: Path) -> None:
    module = "placement_reservations.wsgi"
    script = f"from {module} import application as a; print(callable(a))"
    with backends.empty_database(tmp_path) as url:
        environment = {
            **programs.environment(tmp_path),
            "OS_DATABASE__CONNECTION": url,
            "OS_DATABASE__SYNC_ON_STARTUP": "true",
            "OS_API__AUTH_STRATEGY": "noauth2",
            "OS_PLACEMENT__AUTH_TYPE": "none",
            "OS_PLACEMENT__ENDPOINT_OVERRIDE": "http://127.0.0.1:9",
        }
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.stdout == "True\n", done.stderr
        database = backends.connect(url)
        assert migration.SCHEMA.version(database) == migration.SCHEMA.head
        database.engine.dispose()


def test_make_serves_with_the_program_that_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = subprocess.run(
        ["make", "-n", "serve-reservations", "ARGS=--port 0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = [each for each in done.stdout.splitlines() if " serve " in each]
    program, *words = shlex.split(line)
    assert words == ["serve", "--port", "0"]
    (found,) = metadata.entry_points(group="console_scripts", name=Path(program).name)
    asked: list[Sequence[str]] = []

    def run(arguments: Sequence[str]) -> int:
        asked.append(arguments)
        return 0

    monkeypatch.setattr(command, "main", run)
    assert found.load()(words) == 0
    assert asked == [words]
