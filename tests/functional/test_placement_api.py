"""What ``placement-api`` refuses to serve, and how it says so."""

import socket
import stat
from pathlib import Path

import pytest
import sqlalchemy as sa

from placement.cmd import api
from placement_foundation.serving import program
from tests import programs

pytestmark = pytest.mark.embedded

BELIEVING = ["[api]", "auth_strategy = noauth2"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a machine without any configuration."""
    programs.unconfigure(monkeypatch, tmp_path)
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


def test_a_policy_that_cannot_be_parsed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home / "policy.yaml", "]: [")
    assert "the policy cannot be used" in refuse(capsys)
    # It was reported before anything was created.
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


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("PLACEMENT_DATABASE__CONNECTION", "nosuchdialect://x", "nosuchdialect"),
        ("PLACEMENT_DATABASE__CONNECTION", "oracle://a/b", "oracle"),
        ("PLACEMENT_DATABASE__CONNECTION", "foo", "Could not parse"),
        ("PLACEMENT_DATABASE__CONNECTION", "", "Could not parse"),
        ("PLACEMENT_DATABASE__CONNECTION", "mysql://u@h:many/x", "many"),
        ("PLACEMENT_DATABASE__MAX_POOL_SIZE", "abc", "max_pool_size"),
        ("API__AUTH_STRATEGY", "noauth3", "'noauth3'"),
        (
            "PLACEMENT__ALLOCATION_CANDIDATES_GENERATION_STRATEGY",
            "sideways",
            "'sideways'",
        ),
        ("CORS__MAX_AGE", "old", "max_age"),
        ("DEFAULT__LOG_ROTATION_TYPE", "sideways", "log_rotation_type"),
    ],
)
def test_an_option_that_cannot_be_used(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    value: str,
    told: str,
) -> None:
    monkeypatch.setenv(f"OS_{option}", value)
    line = refuse(capsys)
    assert told in line


@pytest.mark.parametrize(
    "option", ["log_file = /nowhere/x.log", "default_log_levels = nonsense"]
)
def test_a_log_that_cannot_be_written(home: Path, option: str) -> None:
    path = write(home / "log.conf", "[DEFAULT]", option)
    arguments = ["--port", "0", "--config-file", str(path)]
    code, output, error = programs.run("placement.cmd.api", *arguments, home=home)
    assert (code, output) == (1, "")
    *_, line = error.splitlines()
    assert line.startswith("placement-api: the log cannot be written: ")
    assert "Traceback" not in error


def test_an_option_of_keystone_that_cannot_be_used(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_API__AUTH_STRATEGY", "keystone")
    monkeypatch.setenv("OS_KEYSTONE_AUTHTOKEN__MEMCACHE_SECURITY_STRATEGY", "sideways")
    assert "memcache_security_strategy" in refuse(capsys)


def test_a_file_that_is_not_a_database(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home / "garbage.db", "garbage" * 100)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", f"sqlite:///{path}")
    assert "file is not a database" in refuse(capsys)


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_an_invalid_number_of_processes(
    capsys: pytest.CaptureFixture[str], count: str
) -> None:
    with pytest.raises(SystemExit):
        api.main(["--workers", count])
    assert f"{count} is not a number from 1 on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("PLACEMENT_DATABASE", "CONNECTION_DEBUG", "-1"),
        ("PLACEMENT_DATABASE", "CONNECTION_DEBUG", "1000"),
        ("PLACEMENT", "ALLOCATION_CONFLICT_RETRY_COUNT", "-1"),
        ("PLACEMENT", "MAX_ALLOCATION_CANDIDATES", "-1"),
    ],
)
def test_a_number_that_the_contract_does_not_bound(
    monkeypatch: pytest.MonkeyPatch, group: str, name: str, value: str
) -> None:
    monkeypatch.setenv(f"OS_{group}__{name}", value)
    config = program.configure(api.PROGRAM, None)
    assert config[group.lower()][name.lower()] == int(value)


def test_the_embedded_database_is_for_its_owner(home: Path) -> None:
    directory = home / "data" / "placement"
    directory.mkdir(parents=True, mode=0o755)
    (directory / "placement.db").touch(mode=0o644)
    program.prepare_database(api.PROGRAM, program.configure(api.PROGRAM, None))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    engine = sa.create_engine(f"sqlite:///{directory}/placement.db")
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE traits SET name = 'CUSTOM_A' WHERE id = 1"))
        modes = {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
        assert len(list(directory.iterdir())) == 3
    engine.dispose()
    assert modes == {0o600}


def test_believing_everybody_where_others_can_reach_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "--insecure" in refuse(capsys, "--host", "0.0.0.0")


def test_an_address_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"port {port}" in refuse(capsys, "--port", str(port))
