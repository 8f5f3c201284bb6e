"""The command ``placement-apply``, as a shell and as a person meet it."""

import io
import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from placement_clients.apply import applying, cli
from placement_foundation.database.storage import Database
from tests import terminal
from tests.client import Client, new_uuid
from tests.property import declaring
from tests.serving import Served, serving, without_ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PROGRAM = Path(sys.executable).with_name("placement-apply")
RACK = "5c1f0000-0000-4000-8000-000000000017"
FLEET = f"""\
trees:
- name: compute-{{n}}
  range: {{n: 1..2}}
  aggregates: [rack-17]
  traits: [CUSTOM_RACK_17]
  inventories:
    CUSTOM_FPGA: {{total: 4, reserved: 1}}
  children:
  - name: compute-{{n}}_gpu0
    inventories: {{CUSTOM_GPU: 1}}
    traits: [CUSTOM_NVLINK]
aggregates: {{rack-17: {RACK}}}
"""


class Desk:
    """A user of the command, with a file."""

    def __init__(
        self, url: str, file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.url = url
        self.file = file
        self._capsys = capsys

    def run(self, *arguments: str) -> tuple[int, str, str]:
        status = cli.main([*arguments, "--url", self.url, "--token", "admin"])
        printed = self._capsys.readouterr()
        return status, printed.out, printed.err

    def declare(self, text: str, *arguments: str) -> tuple[int, str, str]:
        self.file.write_text(text)
        return self.run(*arguments, str(self.file))


@pytest.fixture
def desk(service: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(service.url, tmp_path / "fleet.yaml", capsys)


@pytest.fixture
def old_desk(
    application: "WSGIApplication", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> "Iterator[Desk]":
    """Give a user of a Placement without ``/ledger/v1``."""
    with serving(without_ledger(application)) as served:
        yield Desk(served.url, tmp_path / "fleet.yaml", capsys)


@pytest.fixture
def client(application: "WSGIApplication") -> Client:
    return Client(application)


def fleet(client: Client) -> dict[str, Any]:
    """Return what there is, by name, without what no file says."""
    kept = ("uuid", "parent_provider_uuid", "inventories", "traits", "aggregates")
    return {
        each["name"]: {
            name: sorted(each[name]) if isinstance(each[name], list) else each[name]
            for name in kept
        }
        for each in client.get("/ledger/v1/fleet")["providers"]
    }


def test_changes_are_shown_with_what_was_before(desk: Desk) -> None:
    desk.declare(FLEET, "--yes")
    changed = FLEET.replace("total: 4", "total: 8").replace("CUSTOM_RACK", "CUSTOM_ROW")
    status, out, _ = desk.declare(changed, "plan")
    assert status == cli.SOMETHING
    assert (
        "    ~ compute-1/inventories/CUSTOM_FPGA: 4, reserved 1 -> 8, reserved 1\n"
        in out
    )
    assert "    + compute-1/traits/CUSTOM_ROW_17\n" in out
    assert "    - compute-1/traits/CUSTOM_RACK_17\n" in out
    assert "Hosts: 2 to change.\n" in out


def test_a_child_that_is_pruned_is_shown(desk: Desk, client: Client) -> None:
    desk.declare(FLEET, "--yes")
    text = re.sub("  children:(\n  .*)+", "", FLEET)
    assert "compute-{n}_gpu0" not in text
    planned = desk.declare(text, "plan", "--prune")[1]
    status, out, _ = desk.declare(text, "--yes", "--prune")
    assert status == cli.NOTHING
    assert "    - compute-1_gpu0\n" in out
    for printed in (planned, out):
        assert "it stays" not in printed
    assert out.endswith("Hosts: 2 changed.\n")
    assert fleet(client).keys() == {"compute-1", "compute-2"}


def test_what_is_left_to_others_is_shown_when_pruning(
    desk: Desk, client: Client
) -> None:
    host = "name: a, inventories: {DISK_GB: 5}"
    desk.declare(f"[{{{host}, children: [{{name: b}}]}}]", "--yes")
    uuid = fleet(client)["a"]["uuid"]
    body = {
        "resource_provider_generation": client.generation(uuid),
        "inventories": {"DISK_GB": {"total": 6}},
    }
    path = f"/resource_providers/{uuid}/inventories"
    assert client.call("PUT", path, body).status == 200
    out = desk.declare("[{name: a}]", "--yes", "--prune")[1]
    left = "    ? a/inventories/DISK_GB was declared 5, is 6: it stays\n"
    assert out == f"~ a\n    - b\n{left}Hosts: 1 changed.\n"


def test_a_plan_is_coloured_on_a_terminal(desk: Desk) -> None:
    desk.declare(FLEET, "--yes")
    text = FLEET.replace("1..2", "2..3").replace("total: 4", "total: 8")
    desk.file.write_text(text)
    program: list[str | Path] = [PROGRAM, "plan", desk.file, "--prune"]
    status, printed = terminal.run([*program, "--url", desk.url, "--token", "admin"])
    assert status == cli.SOMETHING
    for colour, line in ((31, "- compute-1"), (33, "~ compute-2"), (32, "+ compute-3")):
        assert f"\x1b[{colour}m{line}" in printed


def test_a_conflict_names_the_other_owner(desk: Desk) -> None:
    desk.declare(FLEET, "--yes")
    other = "- {name: compute-1, inventories: {CUSTOM_FPGA: 9}}"
    assert desk.declare(other, "--yes", "--owner", "gpu-team")[0] == cli.ERROR
    forced = ("--yes", "--owner", "gpu-team", "--force")
    assert desk.declare(other, *forced)[0] == cli.NOTHING


def test_a_refusal_says_why(desk: Desk) -> None:
    status, out, _ = desk.declare("- {name: a, traits: [HW_NOWHERE]}", "--yes")
    assert status == cli.ERROR
    assert "! a: No such trait(s): HW_NOWHERE.\nHosts: 1 refused.\n" in out


def test_drift_is_what_others_have_changed(desk: Desk, client: Client) -> None:
    desk.declare(FLEET, "--yes")
    assert desk.run("drift") == (cli.NOTHING, "", "")
    uuid = fleet(client)["compute-1"]["uuid"]
    body = {"resource_provider_generation": 0, "traits": []}
    client.call("PUT", f"/resource_providers/{uuid}/traits", body)
    status, out, _ = desk.run("drift", "--owner", "fleet")
    assert status == cli.SOMETHING
    expected = (
        "? compute-1/traits/CUSTOM_RACK_17: declared present, is absent (fleet)\n"
    )
    assert out == expected
    assert desk.run("drift") == (cli.SOMETHING, expected, "")
    assert desk.run("drift", "--owner", "gpu-team") == (cli.NOTHING, "", "")
    assert json.loads(desk.run("drift", "--json")[1])["declared"][0]["uuid"] == uuid


def test_nobody_to_ask(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    status, out, err = desk.declare(FLEET)
    assert (status, out) == (cli.ERROR, "")
    assert "--yes is needed where there is no terminal" in err


@pytest.mark.parametrize(("reply", "status"), [(b"y\n", 0), (b"\n", 1)])
def test_a_person_is_asked(
    desk: Desk, client: Client, reply: bytes, status: int
) -> None:
    desk.file.write_text(FLEET)
    told, printed = terminal.run(
        [PROGRAM, desk.file, "--url", desk.url, "--token", "admin"], reply
    )
    assert told == status
    assert "\x1b[32m+ compute-1" in printed
    assert "Apply this? [y/N]" in printed
    assert bool(fleet(client)) == (status == 0)


def test_a_document_is_not_mixed_with_the_plan(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", terminal.Person("y\n"))
    status, out, err = desk.declare(FLEET, "--json")
    assert status == cli.NOTHING
    assert [each["result"] for each in json.loads(out)["trees"]] == ["created"] * 2
    assert err.startswith("+ compute-1\n")
    assert err.endswith("Hosts: 2 to create.\nApply this? [y/N] ")


def answering_twice(application: "WSGIApplication", status: str) -> "WSGIApplication":
    """Return a service that answers two requests to apply, and later ones otherwise."""
    answered: list[bool] = []

    def service(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> "Iterable[bytes]":
        if environ["PATH_INFO"] == "/ledger/v1/apply":
            if len(answered) == 2:
                start_response(status, [("Content-Type", "application/json")])
                return [b'{"errors": [{"detail": "not now"}]}']
            answered.append(True)
        return application(environ, start_response)

    return service


def a_cloud(rng: random.Random, client: Client) -> None:
    """Make some random trees, through the Placement API."""
    client.call("PUT", "/traits/CUSTOM_FAST")
    client.call("PUT", "/resource_classes/CUSTOM_FPGA")
    known: list[str | None] = [None]
    for number in range(rng.randint(3, 8)):
        uuid = new_uuid()
        name = rng.choice(("yes-", "0o1", "1e", "host ", "ü: ", "- ")) + str(number)
        body = {"name": name, "uuid": uuid, "parent_provider_uuid": rng.choice(known)}
        assert client.call("POST", "/resource_providers", body).status == 200
        known.append(uuid)
        path = f"/resource_providers/{uuid}"
        inventories = {
            each: {
                "total": rng.randint(1, 99),
                "allocation_ratio": rng.choice((1.0, 1.5, 16.0)),
                "step_size": rng.choice((1, 2)),
                "min_unit": rng.choice((1, 2)),
                "max_unit": rng.choice((2, 99)),
                "reserved": rng.choice((0, 1)),
            }
            for each in ("VCPU", "MEMORY_MB", "CUSTOM_FPGA")
            if rng.random() < 0.5
        }
        generation = {"resource_provider_generation": 0}
        put = {**generation, "inventories": inventories}
        assert client.call("PUT", f"{path}/inventories", put).status == 200
        traits = [t for t in ("CUSTOM_FAST", "HW_CPU_X86_AVX") if rng.random() < 0.5]
        generation = {"resource_provider_generation": 1}
        put = {**generation, "traits": traits}
        assert client.call("PUT", f"{path}/traits", put).status == 200
        generation = {"resource_provider_generation": 1 + bool(traits)}
        aggregates = [each for each in declaring.AGGREGATES if rng.random() < 0.5]
        put = {**generation, "aggregates": aggregates}
        assert client.call("PUT", f"{path}/aggregates", put).status == 200


@pytest.mark.parametrize("seed", range(4))
def test_an_exported_cloud_applied_to_an_empty_one_is_equal(
    desk: Desk, client: Client, database: Database, seed: int
) -> None:
    a_cloud(random.Random(seed), client)
    before = fleet(client)
    status, exported, _ = desk.run("export", "--all")
    assert status == cli.NOTHING
    for each in reversed(client.get("/ledger/v1/fleet")["providers"]):
        path = f"/resource_providers/{each['uuid']}"
        assert client.call("DELETE", path).status == 204
    assert desk.declare(exported, "--yes")[0] == cli.NOTHING, (seed, exported)
    assert fleet(client) == before, (seed, exported)
    assert desk.declare(exported, "plan")[0] == cli.NOTHING
    assert desk.run("export", "--all")[1] == exported


# Names that a file could take for something else, or for its own signs.
ODD_NAMES = [
    *("yes", "No", "null", "~", "true", "0o14", "0x1F", "1e3", ".5", "12", "-7"),
    *("2026-11-23", "12:30:45", ".inf", "=", "<<", "{a}", "{n}", "[b]", "a: b", "a #b"),
    *("'", '"', "it's", 'a "b"', "\\n", "a\\", "%TAG", "@at", "`c`", "!tag", "&a"),
    *("|", ">", "- a", "? a", ":", "#", ",", " before", "after ", "\ttab", "a  b"),
    *("a\nb", "c\r\nd", "line\u2028end", "Größe", "計算", "☃ 😀", "e\u0301", "\ufeffx"),
    *("x" * 200, "---", "..."),
]


def test_hosts_with_odd_names_are_exported_and_applied(
    desk: Desk, client: Client
) -> None:
    for name in ODD_NAMES:
        host = {"name": name, "uuid": new_uuid()}
        assert client.call("POST", "/resource_providers", host).status == 200
        child = {"name": f"{name[:190]}/child", "parent_provider_uuid": host["uuid"]}
        assert client.call("POST", "/resource_providers", child).status == 200
    before = fleet(client)
    assert before.keys() >= {*ODD_NAMES}
    exports = [desk.run("export", "--all", *each)[1] for each in ([], ["--json"])]
    some = ("{n}", "yes", "☃ 😀", "after ")
    few = desk.run("export", *(f"--host={name}" for name in some))[1]
    for exported in exports:
        for each in reversed(client.get("/ledger/v1/fleet")["providers"]):
            path = f"/resource_providers/{each['uuid']}"
            assert client.call("DELETE", path).status == 204
        status, out, err = desk.declare(exported, "--yes")
        assert status == cli.NOTHING, (out, err)
        assert fleet(client) == before
    assert desk.declare(few, "plan")[:2] == (cli.NOTHING, "Hosts: 4 unchanged.\n")


def test_another_placement_cannot_be_used(old_desk: Desk) -> None:
    ways = [("plan",), ("--yes",), ("--yes", "--prune")]
    answers = [old_desk.declare(FLEET, *way) for way in ways]
    answers += [old_desk.run("drift"), old_desk.run("export")]
    complaint = "this Placement has no /ledger/v1, which placement-apply needs"
    for answer in answers:
        assert answer == (cli.ERROR, "", f"placement-apply: {complaint}\n")


@pytest.mark.parametrize("text", ["", "\n", "# soon\n", "---\n", "null\n", "\ufeff"])
def test_a_file_without_a_document_removes_nothing(
    desk: Desk, client: Client, text: str
) -> None:
    desk.declare(FLEET, "--yes")
    before = fleet(client)
    for options in (["plan"], ["--yes"], ["--yes", "--prune-all"]):
        status, out, err = desk.declare(text, "--prune", *options)
        assert (status, out) == (cli.ERROR, "")
        assert "fleet.yaml:1: the file declares nothing; write `trees: []`" in err
    assert fleet(client) == before
    # A second file that is empty is no less a mistake.
    empty = desk.file.with_name("empty.yaml")
    empty.touch()
    assert desk.declare(FLEET, "--prune", "--yes", str(empty))[0] == cli.ERROR
    assert fleet(client) == before


def test_most_of_a_fleet_is_removed_only_if_that_is_said(
    desk: Desk, client: Client
) -> None:
    def declare(count: int, *options: str) -> tuple[int, str, str]:
        text = f"- {{name: 'h{{n}}', range: {{n: 1..{count}}}}}" if count else "[]"
        return desk.declare(text, "--yes", *options)

    declare(24)
    status, out, err = declare(11, "--prune")
    assert (status, out) == (cli.ERROR, "")
    assert err == (
        "placement-apply: --prune would remove 13 of the 24 hosts that fleet declared: "
        "--prune-all does it\n"
    )
    assert len(fleet(client)) == 24
    # Half of them, or ten, may go.
    assert declare(12, "--prune")[0] == cli.NOTHING
    assert declare(1, "--prune")[0] == cli.ERROR
    assert declare(2, "--prune")[0] == cli.NOTHING
    declare(24)
    assert declare(0, "--prune-all")[0] == cli.NOTHING
    assert fleet(client) == {}


def change_between(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]
) -> None:
    """Let something change after a person has seen the plan, and before the yes."""

    def agrees(question: str) -> bool:
        change()
        return True

    monkeypatch.setattr(sys, "stdin", terminal.Person(""))
    monkeypatch.setattr(cli, "agrees", agrees)


@pytest.mark.parametrize("portion", [1, 500])
def test_a_value_that_changes_before_the_yes_is_not_set_back(
    desk: Desk, client: Client, monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    monkeypatch.setattr(applying, "PORTION", portion)
    desk.declare("[{name: a, inventories: {VCPU: 8}}, {name: b}]", "--yes")
    host = fleet(client)["a"]["uuid"]
    path = f"/resource_providers/{host}/inventories"

    def grow() -> None:
        body = {
            "resource_provider_generation": client.generation(host),
            "inventories": {"VCPU": {"total": 64}},
        }
        assert client.call("PUT", path, body).status == 200

    change_between(desk, monkeypatch, grow)
    more = "[{name: a, inventories: {VCPU: 16}}, {name: b, traits: [CUSTOM_B]}]"
    status, out, _ = desk.declare(more)
    assert status == cli.SOMETHING
    assert out.endswith("Hosts: 1 changed, 1 changed meanwhile.\n")
    assert fleet(client)["a"]["inventories"]["VCPU"]["total"] == 64
    assert fleet(client)["b"]["traits"] == ["CUSTOM_B"]
    # Planned again, and for whatever is there, it is.
    assert desk.declare(more, "--yes")[0] == cli.NOTHING
    assert fleet(client)["a"]["inventories"]["VCPU"]["total"] == 16


@pytest.mark.parametrize("portion", [1, 500])
def test_one_run_is_enough_in_portions_too(
    desk: Desk, client: Client, monkeypatch: pytest.MonkeyPatch, portion: int
) -> None:
    monkeypatch.setattr(applying, "PORTION", portion)
    a, b, c = (new_uuid() for _ in range(3))
    gpu = "{name: gpu, inventories: {CUSTOM_GPU: 1}}"
    desk.declare(
        f"[{{name: a, uuid: {a}, children: [{gpu}]}}, {{name: b, uuid: {b}}}]", "--yes"
    )
    card = fleet(client)["gpu"]["uuid"]
    assert client.claim(new_uuid(), {card: {"CUSTOM_GPU": 1}}).status == 204
    after = (
        f"[{{name: b, uuid: {a}}}, {{name: a, uuid: {b}}}, "
        f"{{name: c, uuid: {c}, children: [{gpu}]}}]"
    )
    status, out, _ = desk.declare(after, "--yes")
    assert (status, out.splitlines()[-1]) == (
        cli.NOTHING,
        "Hosts: 1 created, 2 changed.",
    )
    there = fleet(client)
    assert (there["a"]["uuid"], there["b"]["uuid"]) == (b, a)
    assert (there["gpu"]["uuid"], there["gpu"]["parent_provider_uuid"]) == (card, c)
    assert desk.declare(after, "plan")[0] == cli.NOTHING


def test_several_hosts_are_exported(desk: Desk, client: Client) -> None:
    desk.declare(FLEET.replace("1..2", "1..4"), "--yes")
    uuid = fleet(client)["compute-3"]["uuid"]
    asked = ("--host", "compute-1", "--host", uuid, "--host", "compute-1")
    status, out, _ = desk.run("export", *asked, "--json")
    assert status == cli.NOTHING
    trees = json.loads(out)["trees"]
    assert [tree["name"] for tree in trees] == ["compute-1", "compute-3"]
    assert [child["name"] for child in trees[0]["children"]] == ["compute-1_gpu0"]
    asked = ("--host", "compute-1", "--host", "compute-2_gpu0", "--host", "x")
    status, out, err = desk.run("export", *asked)
    assert (status, out) == (cli.ERROR, "")
    assert "There is no host compute-2_gpu0." in err


def test_an_export_without_all_leaves_out_what_agents_report(
    desk: Desk, client: Client
) -> None:
    host = client.make_provider(VCPU=8)
    name = next(iter(fleet(client)))
    text = f"- {{name: '{name}', traits: [CUSTOM_A], inventories: {{DISK_GB: 5}}}}"
    desk.declare(text, "--yes")
    _, out, _ = desk.run("export", "--host", name)
    assert out == (
        f"trees:\n- name: {name}\n  uuid: {host}\n  inventories:\n    DISK_GB: 5\n"
        "  traits:\n  - CUSTOM_A\n"
    )
    assert "VCPU: 8" in desk.run("export", "--host", host, "--all")[1]
    status, _, err = desk.run("export", "--host", "nobody")
    assert status == cli.ERROR
    assert "There is no host nobody." in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan"],
        ["drift", "a"],
        ["export", "a"],
        [],
        ["plan", "a", "--onwer", "b"],
        ["a", "--yes", "--host", "compute-1"],
        ["plan", "a", "--all"],
        ["drift", "--host", "compute-1"],
        ["export", "--owner", "b"],
    ],
)
def test_a_bad_command_is_reported(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == cli.ERROR == 1
    assert "usage: placement-apply FILE" in capsys.readouterr().err


def test_names_are_planned_given_and_pruned(desk: Desk, client: Client) -> None:
    text = f"aggregates: {{rack-17: {RACK}}}\nprojects: {{Größe: web, shop: 9f31}}"
    status, out, _ = desk.declare(text, "plan")
    assert status == cli.SOMETHING
    assert out == (
        f"~ names\n    + aggregates/{RACK}: rack-17\n    + projects/9f31: shop\n"
        "    + projects/web: Größe\nHosts: none.\n"
    )
    assert client.get("/ledger/v1/names") == {"aggregates": {}, "projects": {}}
    assert desk.declare(text, "--yes")[0] == cli.NOTHING
    named = {
        "aggregates": {RACK: "rack-17"},
        "projects": {"web": "Größe", "9f31": "shop"},
    }
    assert client.get("/ledger/v1/names") == named
    assert desk.declare(text, "plan") == (cli.NOTHING, "Hosts: none.\n", "")
    fewer = "projects: {web: web}"
    assert "    ~ projects/web: Größe -> web\n" in desk.declare(fewer, "--yes")[1]
    assert client.get("/ledger/v1/names")["aggregates"] == {RACK: "rack-17"}
    for command in ("plan", "--yes"):
        out = desk.declare(fewer, command, "--prune")[1]
        assert f"    - aggregates/{RACK}\n    - projects/9f31\n" in out
    assert client.get("/ledger/v1/names") == {
        "aggregates": {},
        "projects": {"web": "web"},
    }


def test_an_export_has_the_names(desk: Desk, client: Client) -> None:
    text = (
        f"aggregates: {{rack-17: {RACK}, rack-18: {new_uuid()}}}\n"
        "projects: {Größe: web}\n"
        "trees: [{name: a, aggregates: [rack-17]}, {name: b}]"
    )
    desk.declare(text, "--yes")
    names = client.get("/ledger/v1/names")
    _, out, _ = desk.run("export", "--host", "a")
    assert out.startswith(f"aggregates:\n  rack-17: {RACK}\ntrees:\n- name: a\n")
    assert desk.run("export", "--host", "b")[1].startswith("trees:\n- name: b\n")
    _, exported, _ = desk.run("export")
    assert desk.declare(exported, "plan") == (cli.NOTHING, "Hosts: 2 unchanged.\n", "")
    desk.declare("[]", "--prune", "--yes")
    assert client.get("/ledger/v1/names") == {"aggregates": {}, "projects": {}}
    desk.declare(exported, "--yes")
    assert client.get("/ledger/v1/names") == names


def test_what_was_done_before_an_error_is_shown(
    desk: Desk, application: "WSGIApplication", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applying, "PORTION", 2)
    printed = []
    for options in ([], ["--json"]):
        with serving(answering_twice(application, "500 Broken")) as served:
            reached = Desk(served.url, desk.file, desk._capsys)
            text = "- {name: 'h{n}', range: {n: 1..3}}"
            status, out, err = reached.declare(text, "--yes", *options)
        assert status == cli.ERROR
        assert "not now (HTTP 500)" in err
        printed.append(out)
    assert "+ h2\n" in printed[0]
    assert printed[0].endswith("Hosts: 2 created.\n")
    told = {each["name"]: each["result"] for each in json.loads(printed[1])["trees"]}
    assert told == {"h1": "unchanged", "h2": "unchanged"}


def test_what_was_in_use_when_it_was_shown_stays(
    desk: Desk, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "[{name: a, inventories: {VCPU: 8}}, {name: b}]"
    desk.declare(text, "--yes")
    consumer, host = new_uuid(), fleet(client)["a"]["uuid"]
    assert client.claim(consumer, {host: {"VCPU": 1}}).status == 204
    path = f"/allocations/{consumer}"
    change_between(desk, monkeypatch, lambda: client.call("DELETE", path))
    status, out, _ = desk.declare("[{name: b}, {name: c}]", "--prune")
    assert status == cli.SOMETHING
    assert "! a: It differs from the plan that was shown: plan it again." in out
    assert out.endswith("Hosts: 1 created, 1 changed meanwhile, 1 unchanged.\n")
    assert fleet(client).keys() == {"a", "b", "c"}
