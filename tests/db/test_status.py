"""``placement-status upgrade check``: what it finds, and its exit codes."""

import configparser
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import sqlalchemy as sa

from placement import app
from placement.cmd import status
from placement.db import migration, models
from placement_foundation import option
from placement_foundation.database.storage import Database
from placement_foundation.serving import upgrade
from placement_nodes.db import migration as nodes
from placement_reservations.db import migration as reservations
from tests import backends, programs
from tests.client import Client, new_uuid
from tests.db import legacy
from tests.settings import make_config

# oslo.upgradecheck draws its table with an old name of the style.
pytestmark = pytest.mark.filterwarnings("ignore:the 'ALL' constant is deprecated")

MODULE = "placement.cmd.status"
SCHEMA, ROOTS, CONSUMERS, POLICY, OWN_TABLES = (
    "Database Schema",
    "Missing Root Provider IDs",
    "Incomplete Consumers",
    "Policy File JSON to YAML Migration",
    "Tables Of This Service",
)
HEALTHY = """\
+-------------------------------------------+
| Upgrade Check Results                     |
+-------------------------------------------+
| Check: Database Schema                    |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Missing Root Provider IDs          |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Incomplete Consumers               |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Policy File JSON to YAML Migration |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Tables Of This Service             |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
"""


@pytest.fixture
def configured(tmp_path: Path, empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__MAX_RETRIES", "1")
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", empty_url)


@pytest.fixture
def migrated(configured: None, empty: Database) -> Database:
    migration.SCHEMA.upgrade(empty)
    return empty


def results(capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[str, str]]:
    """Return result and details as they were printed, keyed by check."""
    lines = [line.strip("|").rstrip() for line in capsys.readouterr().out.splitlines()]
    text = "\n".join(line.removeprefix(" ") for line in lines)
    found = {}
    for cell in text.split("\nCheck: ")[1:]:
        name, rest = cell.split("\nResult: ")
        result, details = rest.split("\nDetails: ")
        details = details.split("\n+")[0]
        found[name] = result, " ".join(part.strip() for part in details.split("\n"))
    return found


def test_a_healthy_database_is_ready(
    migrated: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    legacy.fill(migrated)
    assert status.main(["upgrade", "check"]) == 0
    assert capsys.readouterr() == (HEALTHY, "")


def test_a_consumer_without_record_is_a_warning(
    migrated: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    legacy.add_allocation_without_consumer(migrated)
    legacy.add_allocation_without_consumer(migrated)
    assert status.main(["upgrade", "check"]) == 1
    found = results(capsys)
    assert found[CONSUMERS][0] == "Warning"
    assert found[CONSUMERS][1].startswith(
        "There are 1 incomplete consumers table records for existing allocations. "
    )
    assert "placement-manage db online_data_migrations" in found[CONSUMERS][1]
    assert found[ROOTS] == found[POLICY] == ("Success", "None")


def test_a_provider_without_root_is_a_failure(
    migrated: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    legacy.add_provider_without_root(migrated)
    legacy.add_allocation_without_consumer(migrated)
    assert status.main(["upgrade", "check"]) == 2
    found = results(capsys)
    assert found[ROOTS][0] == "Failure"
    assert found[ROOTS][1].startswith(
        "There is at least one resource provider table record which misses its root "
        "provider id. "
    )
    assert "db online_data_migrations" in found[ROOTS][1]
    assert found[CONSUMERS][0] == "Warning"


def test_a_database_without_the_tables_of_this_service_is_a_warning(
    migrated: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with migrated.engine.begin() as connection:
        models.FOREST_STAMPS.drop(connection)
    assert status.main(["upgrade", "check"]) == 1
    found = results(capsys)
    assert found[OWN_TABLES][0] == "Warning"
    assert found[OWN_TABLES][1].startswith(
        "The table forest_stamps is missing: run placement-manage db sync. "
    )
    assert found[ROOTS] == found[CONSUMERS] == found[POLICY] == ("Success", "None")


def test_a_database_of_openstack_placement_is_ready(
    migrated: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with migrated.engine.begin() as connection:
        models.OWN.drop_all(connection)
    assert status.main(["upgrade", "check"]) == 0
    found = results(capsys)
    assert found.pop(OWN_TABLES) == ("Success", status.NO_OWN_TABLES)
    assert set(found.values()) == {("Success", "None")}


def test_a_schema_that_is_not_migrated_is_a_failure(
    configured: None, empty: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    migration.SCHEMA.upgrade(empty, legacy.CONSUMERS)
    legacy.fill(empty)
    assert status.main(["upgrade", "check"]) == 2
    found = results(capsys)
    assert found[SCHEMA][0] == "Failure"
    assert found[SCHEMA][1].startswith(
        "The database lacks the table consumer_types, the column "
        "consumers.consumer_type_id. Run the command "
    )
    # What needs it is refused, and no bug.
    client = Client(app.build(make_config(), empty))
    claimed = client.claim(new_uuid(), {legacy.HOST: {"VCPU": 1}})
    usages = client.call("GET", f"/usages?project_id={legacy.PROJECT}")
    for answer in (claimed, usages):
        assert answer.status == 503
        assert "db sync" in answer.detail


def test_a_constraint_that_is_missing_is_a_failure(
    migrated: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "uniq_traits0name"
    kind = migrated.engine.dialect.name
    if kind == "sqlite":
        pytest.skip("it cannot drop a constraint")
    what = "INDEX" if kind == "mysql" else "CONSTRAINT"
    with migrated.engine.begin() as connection:
        connection.execute(sa.text(f"ALTER TABLE traits DROP {what} {name}"))
    assert status.main(["upgrade", "check"]) == 2
    assert results(capsys)[SCHEMA][1].startswith(
        f"The database lacks the UNIQUE constraint {name} of traits. "
    )


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("policy.json", '{"admin_api": "role:admin"}', 2),
        ("policy.yaml", '{"admin_api": "role:admin"}', 2),
        ("policy.yaml", "admin_api: role:admin\n", 0),
    ],
)
def test_a_policy_file_must_be_yaml(
    migrated: Database,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    text: str,
    code: int,
) -> None:
    (tmp_path / name).write_text(text)
    monkeypatch.setenv("OS_OSLO_POLICY__POLICY_FILE", str(tmp_path / name))
    assert status.main(["upgrade", "check"]) == code
    assert results(capsys)[POLICY][0] == ("Failure" if code else "Success")


def test_any_word_does_for_check_and_json_is_not_made(
    migrated: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status.main(["upgrade", "anything", "--json"]) == 0
    assert capsys.readouterr() == (HEALTHY, "")


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    "arguments",
    [[], ["upgrade"], ["downgrade", "check"], ["--version"], ["upgrade", "a", "b"]],
)
def test_what_cannot_be_understood_is_an_error(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        status.main(arguments)
    assert refused.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("usage: placement-status")


@pytest.mark.usefixtures("configured")
def test_a_database_without_tables_cannot_be_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert status.main(["upgrade", "check"]) == 255
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == (
        "placement-status: the database has no tables of Placement: run "
        "placement-manage db sync\n"
    )


@pytest.mark.usefixtures("configured")
def test_a_database_out_of_reach_cannot_be_checked(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/no/such/directory/placement.db"
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", url)
    assert status.main(["upgrade", "check"]) == 255
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "placement-status: unable to open database file"


@pytest.mark.embedded
def test_the_table_need_not_be_read(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/placement.db"
    environment = programs.environment(tmp_path, url)
    sync = [sys.executable, "-m", "placement.cmd.manage", "db", "sync"]
    subprocess.run(sync, env=environment, check=True)
    with programs.without_reader() as output:
        done = subprocess.run(
            [sys.executable, "-m", MODULE, "upgrade", "check"],
            env=environment,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")


SERVICES = ("placement-nodes", "placement-reservations")
HEADS = dict(zip(SERVICES, (nodes.SCHEMA, reservations.SCHEMA), strict=True))


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let exactly those entry points exist that the package declares."""
    setup = configparser.ConfigParser()
    setup.read(Path(__file__).parents[2] / "setup.cfg")
    lines = setup["options.entry_points"][upgrade.GROUP].strip().splitlines()
    declared = []
    for line in lines:
        name, value = map(str.strip, line.split("="))
        declared.append(metadata.EntryPoint(name, value, upgrade.GROUP))
    assert [each.name for each in declared] == list(SERVICES)
    missing = metadata.EntryPoint("other", "no_such_package:PROGRAM", upgrade.GROUP)
    found = {upgrade.GROUP: [*declared, missing]}
    monkeypatch.setattr(metadata, "entry_points", lambda group: found[group])


def configure_service(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{name}.conf").write_text(text)
    monkeypatch.setenv(option.directory_variable(name), str(tmp_path))


def test_a_service_that_is_not_configured_is_not_checked(
    services: None, migrated: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status.main(["upgrade", "check"]) == 0
    assert capsys.readouterr() == (HEALTHY, "")


@pytest.mark.parametrize("name", SERVICES)
def test_the_database_of_a_service_must_be_migrated(
    services: None,
    migrated: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    with backends.empty_database(tmp_path) as url:
        text = f"[database]\nconnection = {url}\nmax_retries = 1\n"
        configure_service(name, text, tmp_path, monkeypatch)
        assert status.main(["upgrade", "check"]) == 2
        result, details = results(capsys)[f"Database Of {name}"]
        assert result == "Failure"
        assert "Its database has no tables" in details
        assert f"`{name} db sync`" in details
        database = backends.connect(url)
        HEADS[name].upgrade(database)
        database.engine.dispose()
        assert status.main(["upgrade", "check"]) == 0
        assert results(capsys)[f"Database Of {name}"] == ("Success", "None")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "[database]\nconnection = sqlite:////nosuch/a.db\n",
            "database cannot be used",
        ),
        ("[api]\nauth_strategy = wrong\n", "configuration cannot be used"),
    ],
)
def test_a_service_that_cannot_serve_is_a_failure(
    services: None,
    migrated: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    reason: str,
) -> None:
    name = "placement-reservations"
    configure_service(name, text, tmp_path, monkeypatch)
    assert status.main(["upgrade", "check"]) == 2
    found = results(capsys)
    assert found[f"Database Of {name}"][0] == "Failure"
    assert reason in found[f"Database Of {name}"][1]
    assert found[ROOTS] == ("Success", "None")
