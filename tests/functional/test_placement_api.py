"""What ``placement-api`` refuses to serve, and how it says so."""

import os
import socket
from pathlib import Path

import pytest

from placement.cmd import api

BELIEVING = ["[api]", "auth_strategy = noauth2"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a machine without any configuration."""
    for name in list(os.environ):
        if name.startswith("OS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def refuse(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command, which must fail, and return its one line."""
    assert api.main(["--port", "0", *arguments]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith("placement-api: ")
    return line


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_missing_file(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere.conf" in refuse(capsys, "--config-file", str(home / "nowhere.conf"))


def test_a_missing_file_in_the_directory_of_the_environment(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_PLACEMENT_CONFIG_DIR", str(home / "there"))
    assert "there/placement.conf" in refuse(capsys)


def test_the_directory_of_the_environment_is_read(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home / "there/placement.conf", "[api]", "auth_strategy = everybody")
    monkeypatch.setenv("OS_PLACEMENT_CONFIG_DIR", str(home / "there"))
    assert "everybody" in refuse(capsys)


def test_a_policy_that_cannot_be_parsed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home / "policy.yaml", "]: [")
    assert "the policy cannot be used" in refuse(capsys)
    # It was told before anything was made.
    assert not (home / "data").exists()


def test_a_database_without_tables(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(
        home / "placement.conf",
        *BELIEVING,
        "[placement_database]",
        f"connection = sqlite:///{home}/empty.db",
    )
    assert "placement-manage db sync" in refuse(capsys, "--config-file", str(path))


def test_believing_everybody_where_others_can_reach_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "--insecure" in refuse(capsys, "--host", "0.0.0.0")


def test_an_address_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"port {port}" in refuse(capsys, "--port", str(port))
