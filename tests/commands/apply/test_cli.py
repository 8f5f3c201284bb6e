"""The command ``placement-apply``, as a shell and as a person meet it."""

import io
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from placement.errors import UnusableTable
from placement.objects import note
from placement_clients.apply import cli
from placement_foundation.database.storage import Database
from placement_foundation.errors import DatabaseUnavailable
from tests import programs, terminal
from tests.client import Client, new_uuid
from tests.property import declaring
from tests.serving import Between, Served, serving, without_ledger

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


def test_a_plan_shows_what_would_be_created(desk: Desk, client: Client) -> None:
    status, out, err = desk.declare(FLEET, "plan")
    assert status == cli.SOMETHING
    assert "+ compute-1\n" in out
    assert (
        f"    + compute-1: CUSTOM_FPGA 4, reserved 1, CUSTOM_RACK_17, in {RACK}" in out
    )
    assert "    + compute-1_gpu0: below compute-1, CUSTOM_GPU 1, CUSTOM_NVLINK" in out
    assert out.endswith("Hosts: 2 to create.\n")
    assert (err, fleet(client)) == ("", {})


def test_a_file_is_applied_and_then_nothing_differs(desk: Desk, client: Client) -> None:
    status, out, err = desk.declare(FLEET, "--yes")
    assert (status, err) == (cli.NOTHING, "")
    assert out.endswith("Hosts: 2 created.\n")
    assert fleet(client).keys() >= {"compute-1", "compute-2_gpu0"}
    assert desk.declare(FLEET, "plan") == (0, "Hosts: 2 unchanged.\n", "")


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


def test_what_is_pruned_is_shown(desk: Desk, client: Client) -> None:
    desk.declare(FLEET, "--yes")
    one = FLEET.replace("1..2", "1..1")
    status, out, _ = desk.declare(one, "plan", "--prune")
    assert status == cli.SOMETHING
    assert "- compute-2\n" in out
    assert desk.declare(one, "plan")[0] == cli.NOTHING
    status, out, _ = desk.declare(one, "--yes", "--prune")
    assert status == cli.NOTHING
    assert "Hosts: 1 removed, 1 unchanged." in out
    assert fleet(client).keys() == {"compute-1", "compute-1_gpu0"}


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


def test_an_empty_child_that_is_pruned_is_a_change(desk: Desk, client: Client) -> None:
    desk.declare("[{name: a, children: [{name: b}]}, {name: c}]", "--yes")
    status, out, _ = desk.declare("[{name: a}, {name: c}]", *("--yes", "--prune"))
    assert (status, out) == (
        cli.NOTHING,
        "~ a\n    - b\nHosts: 1 changed, 1 unchanged.\n",
    )
    assert fleet(client).keys() == {"a", "c"}


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


def test_what_is_refused_when_it_comes_to_pruning_is_an_error(
    desk: Desk, client: Client, application: "WSGIApplication"
) -> None:
    def grow() -> None:
        uuid = fleet(client)["a"]["uuid"]
        body = {
            "resource_provider_generation": client.generation(uuid),
            "inventories": {"VCPU": {"total": 8}},
        }
        path = f"/resource_providers/{uuid}/inventories"
        assert client.call("PUT", path, body).status == 200
        assert client.claim(new_uuid(), {uuid: {"VCPU": 8}}).status == 204

    network = Between(application, lambda *line: "a" in fleet(client), grow)
    with serving(network) as served:
        reached = Desk(served.url, desk.file, desk._capsys)
        text = "[{name: a, inventories: {VCPU: 4}}]"
        status, out, _ = reached.declare(text, "--yes", "--prune")
    reason = "8 VCPU of a are in use: a capacity of 4 is too small."
    assert (status, out) == (
        cli.ERROR,
        f"! a: {reason}\n    + a: VCPU 4\nHosts: 1 refused.\n",
    )


def test_a_host_that_is_in_use_is_not_pruned(desk: Desk, client: Client) -> None:
    desk.declare(FLEET, "--yes")
    before = fleet(client)
    uuid = before["compute-2_gpu0"]["uuid"]
    assert client.claim(new_uuid(), {uuid: {"CUSTOM_GPU": 1}}).status == 204
    one = FLEET.replace("1..2", "1..1")
    for options in (["plan"], ["--yes"]):
        status, out, _ = desk.declare(one, *options, "--prune")
        assert status == cli.ERROR
        reason = "1 CUSTOM_GPU of compute-2_gpu0 are in use, so it cannot be removed."
        assert f"! compute-2: {reason}\n" in out
    assert fleet(client) == before


def test_a_plan_is_coloured_on_a_terminal(desk: Desk) -> None:
    desk.declare(FLEET, "--yes")
    text = FLEET.replace("1..2", "2..3").replace("total: 4", "total: 8")
    desk.file.write_text(text)
    program: list[str | Path] = [PROGRAM, "plan", desk.file, "--prune"]
    status, printed = terminal.run([*program, "--url", desk.url, "--token", "admin"])
    assert status == cli.SOMETHING
    for colour, line in ((31, "- compute-1"), (33, "~ compute-2"), (32, "+ compute-3")):
        assert f"\x1b[{colour}m{line}" in printed


def test_a_plan_has_its_status_without_a_reader(desk: Desk) -> None:
    desk.file.write_text(FLEET)
    arguments = ["plan", str(desk.file), "--url", desk.url, "--token", "admin"]
    program = [str(PROGRAM), *arguments]
    with programs.without_reader() as pipe:
        done = subprocess.run(program, stdout=pipe, check=False)
    assert done.returncode == cli.SOMETHING


def test_a_conflict_names_the_other_owner(desk: Desk) -> None:
    desk.declare(FLEET, "--yes")
    other = "- {name: compute-1, inventories: {CUSTOM_FPGA: 9}}"
    status, out, _ = desk.declare(other, "plan", "--owner", "gpu-team")
    assert status == cli.ERROR
    assert "! compute-1: another owner declares otherwise; --force takes it over" in out
    assert "4, reserved 1 -> 9 (fleet declares otherwise)" in out
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
    # The bar is complete, and goes in the end.
    assert bool(re.search(r"applying .*2/2", printed)) == (status == 0)


def test_a_document_is_not_mixed_with_the_plan(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", terminal.Person("y\n"))
    status, out, err = desk.declare(FLEET, "--json")
    assert status == cli.NOTHING
    assert [each["result"] for each in json.loads(out)["trees"]] == ["created"] * 2
    assert err.startswith("+ compute-1\n")
    assert err.endswith("Hosts: 2 to create.\nApply this? [y/N] ")


def test_an_old_placement_gets_ordinary_calls(old_desk: Desk, client: Client) -> None:
    status, out, err = old_desk.declare(FLEET, "plan")
    assert status == cli.SOMETHING
    assert "this Placement has no /ledger/v1: ordinary calls are used" in err
    assert "without owners" in err
    assert "names are not kept" in err
    assert "Hosts: 2 to create." in out
    assert fleet(client) == {}
    assert old_desk.declare(FLEET, "--yes")[0] == cli.NOTHING
    there = fleet(client)
    assert there["compute-1"]["inventories"]["CUSTOM_FPGA"]["reserved"] == 1
    assert there["compute-1"]["aggregates"] == [RACK]
    assert there["compute-1_gpu0"]["traits"] == ["CUSTOM_NVLINK"]
    status, out, _ = old_desk.declare(FLEET, "plan")
    assert (status, out) == (cli.NOTHING, "Hosts: 2 unchanged.\n")
    changed = "- {name: compute-1, inventories: {CUSTOM_FPGA: null, VCPU: 4}}"
    status, out, _ = old_desk.declare(changed, "--yes")
    assert status == cli.NOTHING
    assert "    - compute-1/inventories/CUSTOM_FPGA\n" in out
    assert fleet(client)["compute-1"]["inventories"].keys() == {"VCPU"}
    # Nothing that is left out is removed.
    assert fleet(client)["compute-1"]["traits"] == ["CUSTOM_RACK_17"]
    status, out, _ = old_desk.declare("- {name: compute-1_gpu0}", "plan")
    assert status == cli.ERROR
    assert "! compute-1_gpu0: compute-1_gpu0 is compute-1_gpu0 below" in out
    for option in ("--prune", "--force"):
        status, _, err = old_desk.declare(FLEET, "plan", option)
        assert status == cli.ERROR
        assert "there are no owners" in err
    assert "does not know what was declared" in old_desk.run("drift")[2]
    exported = old_desk.run("export", "--all")[1]
    assert "compute-2_gpu0" in exported


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ("traits: [HW_NOPE]", "No such trait: HW_NOPE."),
        ("inventories: {NOPE: 1}", "No such resource class: NOPE."),
        ("children: [{name: c, traits: [HW_NOPE]}]", "No such trait: HW_NOPE."),
        ("children: [{name: there}]", "there is there below nothing there; only"),
    ],
)
def test_ordinary_calls_refuse_a_tree_before_any_of_it_is_written(
    old_desk: Desk, client: Client, part: str, reason: str
) -> None:
    old_desk.declare("- {name: there}", "--yes")
    before = fleet(client)
    children = "" if "children" in part else ", children: [{name: b}]"
    text = f"[{{name: a, {part}{children}}}, {{name: d, traits: [HW_CPU_X86_AVX]}}]"
    status, planned, _ = old_desk.declare(text, "plan")
    assert status == cli.ERROR
    assert f"! a: {reason}" in planned
    assert fleet(client) == before
    status, out, _ = old_desk.declare(text, "--yes")
    assert status == cli.ERROR
    assert f"! a: {reason}" in out
    assert fleet(client).keys() == {"there", "d"}


def test_ordinary_calls_refuse_a_name_that_another_has_before_anything_is_written(
    old_desk: Desk, client: Client
) -> None:
    old_desk.declare("[{name: there}, {name: a}]", "--yes")
    before = fleet(client)
    child = f"{{name: there, uuid: {RACK}}}"
    text = f"[{{name: a, traits: [HW_CPU_X86_AVX], children: [{child}]}}]"
    for command in ("plan", "--yes"):
        status, out, _ = old_desk.declare(text, command)
        assert status == cli.ERROR
        assert "! a: there has the UUID " in out
    assert fleet(client) == before


def test_ordinary_calls_take_a_ratio_as_it_is_stored(
    old_desk: Desk, client: Client
) -> None:
    inventory = "{total: 8, allocation_ratio: 1.23457}"
    old_desk.declare(f"[{{name: a, inventories: {{VCPU: {inventory}}}}}]", "--yes")
    before = fleet(client)
    exact = inventory.replace("1.23457", "1.23456789")
    text = f"[{{name: a, inventories: {{VCPU: {exact}}}}}]"
    assert old_desk.declare(text, "plan")[0] == 0
    assert old_desk.declare(text, "--yes")[0] == 0
    assert fleet(client) == before


def answering_once(application: "WSGIApplication", status: str) -> "WSGIApplication":
    """Return a service that answers one request to apply, and later ones otherwise."""
    answered: list[bool] = []

    def service(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> "Iterable[bytes]":
        if environ["PATH_INFO"] == "/ledger/v1/apply":
            if answered:
                start_response(status, [("Content-Type", "application/json")])
                return [b'{"errors": [{"detail": "not now"}]}']
            answered.append(True)
        return application(environ, start_response)

    return service


def test_a_ledger_that_has_answered_is_there(
    desk: Desk,
    client: Client,
    application: "WSGIApplication",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cli, "PORTION", 1)
    with serving(answering_once(application, "404 Not Found")) as served:
        reached = Desk(served.url, desk.file, desk._capsys)
        status, _, err = reached.declare("[{name: a}, {name: b}]", "--yes")
    assert status == cli.ERROR
    assert err == "placement-apply: Placement refuses this: not now (HTTP 404)\n"
    assert set(served.lines) == {"POST /ledger/v1/apply"}
    assert fleet(client).keys() == {"a"}


@pytest.mark.parametrize("kind", ["inventories", "traits", "aggregates"])
def test_an_agent_that_writes_meanwhile_is_not_undone_by_ordinary_calls(
    desk: Desk, client: Client, application: "WSGIApplication", kind: str
) -> None:
    host = client.make_provider()
    path = f"/resource_providers/{host}/{kind}"
    theirs = {
        "inventories": {"MEMORY_MB": {"total": 64}},
        "traits": ["HW_CPU_X86_VMX"],
        "aggregates": [new_uuid()],
    }[kind]

    def write() -> None:
        generation = {"resource_provider_generation": client.generation(host)}
        answer = client.call("PUT", path, {**generation, kind: theirs})
        assert answer.status == 200

    network = Between(
        without_ledger(application), lambda *line: line == ("PUT", path), write
    )
    ours = "inventories: {VCPU: 8}, traits: [HW_CPU_X86_AVX]"
    with serving(network) as served:
        reached = Desk(served.url, desk.file, desk._capsys)
        text = f"- {{name: {host}, {ours}, aggregates: [{RACK}]}}"
        assert reached.declare(text, "--yes")[0] == cli.NOTHING
    found = fleet(client)[host]
    there = {*found["inventories"], *found["traits"], *found["aggregates"]}
    assert there == {"VCPU", "HW_CPU_X86_AVX", RACK, *theirs}


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
@pytest.mark.parametrize("is_old", [False, True])
def test_an_exported_cloud_applied_to_an_empty_one_is_equal(
    desk: Desk,
    client: Client,
    database: Database,
    application: "WSGIApplication",
    seed: int,
    is_old: bool,
) -> None:
    a_cloud(random.Random(seed), client)
    before = fleet(client)
    with serving(without_ledger(application)) as served:
        reached = Desk(served.url, desk.file, desk._capsys) if is_old else desk
        status, exported, _ = reached.run("export", "--all")
        assert status == cli.NOTHING
        for each in reversed(client.get("/ledger/v1/fleet")["providers"]):
            path = f"/resource_providers/{each['uuid']}"
            assert client.call("DELETE", path).status == 204
        assert reached.declare(exported, "--yes")[0] == cli.NOTHING, (seed, exported)
        assert fleet(client) == before, (seed, exported)
        assert reached.declare(exported, "plan")[0] == cli.NOTHING
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


@pytest.mark.parametrize("is_old", [False, True])
def test_hosts_with_odd_names_are_exported_and_applied(
    desk: Desk, client: Client, application: "WSGIApplication", is_old: bool
) -> None:
    for name in ODD_NAMES:
        host = {"name": name, "uuid": new_uuid()}
        assert client.call("POST", "/resource_providers", host).status == 200
        child = {"name": f"{name[:190]}/child", "parent_provider_uuid": host["uuid"]}
        assert client.call("POST", "/resource_providers", child).status == 200
    before = fleet(client)
    assert before.keys() >= {*ODD_NAMES}
    with serving(without_ledger(application)) as served:
        reached = Desk(served.url, desk.file, desk._capsys) if is_old else desk
        formats = [[]] if is_old else [[], ["--json"]]
        exports = [reached.run("export", "--all", *each)[1] for each in formats]
        some = ("{n}", "yes", "☃ 😀", "after ")
        hosts = [f"--host={name}" for name in some]
        few = reached.run("export", *hosts)[1]
        for exported in exports:
            for each in reversed(client.get("/ledger/v1/fleet")["providers"]):
                path = f"/resource_providers/{each['uuid']}"
                assert client.call("DELETE", path).status == 204
            status, out, err = reached.declare(exported, "--yes")
            assert status == cli.NOTHING, (out, err)
            assert fleet(client) == before
        assert reached.declare(few, "plan")[:2] == (
            cli.NOTHING,
            "Hosts: 4 unchanged.\n",
        )


def test_names_that_were_deleted_meanwhile_are_made_again(
    desk: Desk, client: Client
) -> None:
    desk.declare(FLEET, "--yes")
    exported = desk.run("export")[1]
    for provider in fleet(client).values():
        for kind in ("inventories", "traits"):
            path = f"/resource_providers/{provider['uuid']}/{kind}"
            assert client.call("DELETE", path).status == 204
    named = ["traits/CUSTOM_NVLINK", "traits/CUSTOM_RACK_17"]
    named += ["resource_classes/CUSTOM_FPGA", "resource_classes/CUSTOM_GPU"]
    for name in named:
        assert client.call("DELETE", f"/{name}").status == 204
    # What was declared of it does not bring it back into an export.
    assert "CUSTOM" not in desk.run("export")[1]
    assert desk.run("drift")[0] == cli.SOMETHING
    assert desk.declare(exported, "--yes")[1].endswith("Hosts: 2 changed.\n")
    for name in named:
        assert client.call("GET", f"/{name}").status in (200, 204)
    assert desk.run("export")[1] == exported


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


@pytest.mark.parametrize("body", [b"", b"[]", b'{"trees": 1, "providers": null}'])
@pytest.mark.parametrize("arguments", [["plan", "FILE"], ["export"], ["drift"]])
def test_an_answer_that_is_not_from_placement_is_an_error(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    body: bytes,
) -> None:
    def elsewhere(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> "Iterable[bytes]":
        start_response("200 OK", [])
        return [body]

    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET)
    given = [each.replace("FILE", str(file)) for each in arguments]
    with serving(elsewhere) as served:
        assert cli.main([*given, "--url", served.url]) == cli.ERROR
    assert "the answer is not from Placement" in capsys.readouterr().err


def test_no_answer_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET)
    assert cli.main(["plan", str(file), "--url", "http://127.0.0.1:9"]) == cli.ERROR


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


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (UnusableTable("The table notes is missing."), cli.NOTHING),
        (DatabaseUnavailable("Please retry."), cli.ERROR),
    ],
)
def test_only_a_service_without_a_table_for_names_exports_none(
    desk: Desk,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    fault: Exception,
    expected: int,
) -> None:
    host = client.make_provider(VCPU=8)

    def fail(*unused: object, **unused_too: object) -> None:
        raise fault

    monkeypatch.setattr(note, "load", fail)
    status, out, _ = desk.run("export", "--all")
    assert status == expected
    assert out.startswith(f"trees:\n- name: {host}\n") == (status == cli.NOTHING)


def test_large_files_are_sent_in_portions(
    desk: Desk, service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "PORTION", 3)
    text = "- {name: 'h{n}', range: {n: 1..8}}"
    assert "Hosts: 8 created." in desk.declare(text, "--yes")[1]
    assert service.lines.count("POST /ledger/v1/apply") == 3


def test_what_was_done_before_an_error_is_shown(
    desk: Desk, application: "WSGIApplication", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "PORTION", 2)
    printed = []
    for options in ([], ["--json"]):
        with serving(answering_once(application, "500 Broken")) as served:
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


def test_what_ordinary_calls_have_done_before_an_error_is_shown(
    desk: Desk, application: "WSGIApplication"
) -> None:
    def service(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> "Iterable[bytes]":
        if "name=b" in environ["QUERY_STRING"]:
            start_response("500 Broken", [("Content-Type", "application/json")])
            return [b'{"errors": [{"detail": "not now"}]}']
        return without_ledger(application)(environ, start_response)

    with serving(service) as served:
        reached = Desk(served.url, desk.file, desk._capsys)
        status, out, err = reached.declare("[{name: a}, {name: b}]", "--yes")
    assert status == cli.ERROR
    assert "not now (HTTP 500)" in err
    assert out == "+ a\n    + a: a\nHosts: 1 created.\n"
