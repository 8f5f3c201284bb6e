"""Shells complete the arguments of every command."""

import configparser
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = configparser.ConfigParser()
SETUP.read(Path(__file__).parents[2] / "setup.cfg")
COMMANDS = dict(
    line.split(" = ")
    for line in SETUP["options.entry_points"]["console_scripts"].strip().splitlines()
) | {"placement-api": "placement.cmd.api:main"}
# Of each, something that is deep inside.
WORDS = {
    "placement-api": {"--port", "--workers"},
    "placement-apply": {"--owner", "--prune", "--shell_completion"},
    "placement-audit": {"--nova", "--release", "--older-than"},
    "placement-explain": {"--help", "--shell_completion"},
    "placement-feed": {"--webhook", "--state"},
    "placement-manage": {"online_data_migrations", "--microversion", "--repair"},
    "placement-nodes": {"db", "sync", "--port"},
    "placement-nodes-sync": {"--once", "--dry-run"},
    "placement-request": {"candidates", "--limit"},
    "placement-reservations": {"db", "sync", "--port"},
    "placement-status": {"upgrade", "check", "--config-file"},
}


def run(command: str, *arguments: str) -> None:
    module, _, name = COMMANDS[command].partition(":")
    try:
        code = getattr(importlib.import_module(module), name)(arguments)
    except SystemExit as ended:
        code = ended.code
    assert not code


def test_no_command_is_forgotten() -> None:
    assert WORDS.keys() == COMMANDS.keys()


@pytest.mark.parametrize("command", WORDS)
def test_bash_completes_the_arguments(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(command, "--shell_completion", "bash")
    script = capsys.readouterr().out
    assert set(re.findall(r"[\w-]+", script)) >= WORDS[command]
    done = subprocess.run(
        ["bash", "-c", f"{script}\ncomplete -p {command}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith(f" {command}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        "placement-request --shell_completion bash",
        "placement-manage --shell_completion bash",
        "placement-manage openapi",
    ],
)
def test_a_reader_may_leave_early(arguments: str) -> None:
    command, *rest = arguments.split()
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = subprocess.run(
            [Path(sys.executable).with_name(command), *rest],
            stdout=gone,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command", WORDS)
def test_zsh_gets_a_script(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(command, "--shell_completion", "zsh")
    script = capsys.readouterr().out
    assert f"#compdef {command}" in script or "bashcompinit" in script
    assert set(re.findall(r"[\w-]+", script)) >= WORDS[command]
