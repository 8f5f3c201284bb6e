"""The command ``placement-explain``, as a shell and as a person meet it."""

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import cloud
from docs import picture
from placement_clients.explain import cli, drawing
from placement_clients.output import NO_ANSWER
from placement_foundation.database.storage import Database
from tests import terminal
from tests.serving import Served, answering, serving

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PROGRAM = Path(sys.executable).with_name("placement-explain")
SERVED = "resources=VCPU:8&required=CUSTOM_TRUSTED"


class Desk:
    """A user of the command."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self._capsys = capsys

    def run(self, *arguments: str) -> tuple[int, str, str]:
        status = cli.main([*arguments, "--url", self.url, "--token", "admin"])
        printed = self._capsys.readouterr()
        return status, printed.out, printed.err


@pytest.fixture
def desk(
    service: Served, database: Database, capsys: pytest.CaptureFixture[str]
) -> Desk:
    cloud.plant(database, picture.hosts())
    return Desk(service.url, capsys)


def test_a_pipe_gets_no_colours_no_bars_and_no_blanks(desk: Desk) -> None:
    for query in (picture.QUERY, f"capacity {SERVED}", "fleet"):
        _, out, _ = desk.run(*query.split(" "))
        assert "\x1b" not in out
        assert "█" not in out
        assert not [line for line in out.splitlines() if line.endswith(" ")]


def test_it_reports_that_hosts_serve(desk: Desk) -> None:
    status, out, _ = desk.run(SERVED)
    assert status == cli.SERVES
    assert out.startswith("16 of 60 hosts serve this request.")
    assert "What would help" not in out


def test_it_names_the_holders_of_a_host_that_is_asked_about(desk: Desk) -> None:
    # Others serve, so no nearest hosts are listed.
    status, out, _ = desk.run("resources=VCPU:9", "--host", "compute1", "--holders")
    assert status == cli.SERVES
    _, _, verdicts = out.partition("compute1 does not serve")
    assert re.search(r"UNMET +9 VCPU .*\n +\d+ held by [0-9a-f-]{36}", verdicts)


def test_it_counts_claims(desk: Desk) -> None:
    status, out, _ = desk.run("capacity", "resources=VCPU:64")
    assert (status, out) == (cli.NONE_SERVES, "This cannot be claimed.\n")


def test_the_fleet_is_a_table_for_programs(desk: Desk) -> None:
    _, out, _ = desk.run("fleet", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 60 * 3
    assert rows[0]["resource_class"] == "VCPU"
    assert (rows[0]["capacity"], rows[0]["used"]) == ("64", "56")
    _, out, _ = desk.run("fleet", "--format", "json")
    assert len(json.loads(out)["providers"]) == 60


def test_no_name_is_a_formula_for_a_spreadsheet() -> None:
    names = dict.fromkeys(drawing.COLUMNS, "plain")
    provider = {**names, "name": "=1+1", "inventories": {}, "usages": {}}
    text = drawing.fleet_as_csv({"providers": [provider]})
    [row] = csv.DictReader(io.StringIO(text))
    assert (row["name"], row["uuid"]) == ("'=1+1", "plain")


def test_programs_choose_what_is_in_the_document(desk: Desk) -> None:
    status, out, _ = desk.run("fleet", "fields=traits", "--json")
    assert status == cli.SERVES
    assert "inventories" not in json.loads(out)["providers"][0]


def test_programs_get_the_document(desk: Desk) -> None:
    status, out, _ = desk.run(picture.QUERY, "--json")
    assert status == cli.NONE_SERVES
    assert json.loads(out)["serves"] == 0
    status, out, _ = desk.run("capacity", SERVED, "--json")
    assert json.loads(out)["exact"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["resources=VCPU:none"], "expected positive integer amount. Got: none."),
        (["resources=vcpu:1"], "Did you mean VCPU?"),
        (["resources=VCPU:1&colour=green"], "does not match any of the regexes"),
        (["resources=VCPU:1", "--host", "nobody"], "uuid or name nobody found"),
        (["capacity", "required=CUSTOM_TRUSTED"], "at least one resources"),
        (["fleet", "required=CUSTOM_NOWHERE"], "No such trait(s): CUSTOM_NOWHERE"),
    ],
)
def test_a_bad_query_is_reported(
    desk: Desk, arguments: list[str], complaint: str
) -> None:
    status, out, err = desk.run(*arguments)
    assert (status, out) == (cli.BAD_QUERY, "")
    assert complaint in err


@pytest.mark.parametrize(
    "arguments",
    [
        *(["capacity"], ["a=1", "b=2"], [], ["history", ""]),
        ["fleet", "--host", "compute1"],
        ["capacity", "a=1", "--holders"],
        ["a=1", "--format", "csv"],
        ["fleet", "name=a&fields=traits"],
        ["fleet", "repeats=number", "--format", "csv"],
    ],
)
def test_a_bad_command_is_reported(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == cli.BAD_QUERY
    assert "usage: placement-explain QUERY" in capsys.readouterr().err


def test_a_missing_answer_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([SERVED, "--url", "http://127.0.0.1:9"]) == NO_ANSWER
    assert "Placement could not be reached" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (
            "404 Not Found",
            b'{"errors": [{"status": 404, "detail": "not here"}]}',
            "Placement refuses this: not here (HTTP 404)",
        ),
        ("200 OK", b"come back later", "Placement could not be reached: "),
        ("503 Unavailable", b"come back later", "Placement could not be reached: "),
        (
            "503 Service Unavailable",
            b'{"errors": [{"detail": "no table", "code": "placement.table"}]}',
            "Placement cannot do this: no table (HTTP 503, ",
        ),
    ],
)
def test_it_says_what_prevents_an_answer(
    capsys: pytest.CaptureFixture[str], status: str, body: bytes, told: str
) -> None:
    with serving(answering(status, body)) as served:
        arguments = [SERVED, "--host", "a", "--url", served.url, "--token", "admin"]
        assert cli.main(arguments) == NO_ANSWER
    assert capsys.readouterr().err.startswith(f"placement-explain: {told}")


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"serves": 0, "history": null}'])
@pytest.mark.parametrize(
    "arguments", [[SERVED], ["capacity", SERVED], ["fleet"], ["history", "compute1"]]
)
def test_an_answer_that_is_not_from_placement_is_none(
    capsys: pytest.CaptureFixture[str], arguments: list[str], body: bytes
) -> None:
    def elsewhere(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> "Iterable[bytes]":
        start_response("200 OK", [])
        if environment["PATH_INFO"] == "/resource_providers":
            return [b'{"resource_providers": []}']
        return [body]

    with serving(elsewhere) as served:
        assert cli.main([*arguments, "--url", served.url]) == NO_ANSWER
    assert "the answer is not from Placement" in capsys.readouterr().err


def on_terminal(url: str, **environment: str) -> str:
    """Return what the program prints on a terminal of 100 columns."""
    arguments: list[str | Path] = [PROGRAM, picture.QUERY, "--url", url]
    arguments += ["--token", "admin"]
    status, printed = terminal.run(arguments, COLUMNS="100", **environment)
    assert status == cli.NONE_SERVES
    return printed


def test_a_terminal_gets_bars_and_colours(desk: Desk) -> None:
    coloured = on_terminal(desk.url)
    assert "█" in coloured
    assert "\x1b[32m" in coloured
    plain = on_terminal(desk.url, NO_COLOR="1")
    assert "█" in plain
    assert "\x1b[3" not in plain.replace("\x1b[3m", "")
