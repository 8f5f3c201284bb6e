"""The command ``placement-apply``, as a shell and as a person meet it."""

import io
import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from placement_clients.apply import cli
from placement_foundation.database.storage import Database
from tests import terminal
from tests.client import Client, new_uuid
from tests.property import declaring
from tests.serving import Served, serving, without_ledger

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

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


def test_an_old_placement_gets_ordinary_calls(
    application: "WSGIApplication",
    client: Client,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving(without_ledger(application)) as served:
        desk = Desk(served.url, tmp_path / "fleet.yaml", capsys)
        status, out, err = desk.declare(FLEET, "plan")
        assert status == cli.SOMETHING
        assert "this Placement has no /ledger/v1: ordinary calls are used" in err
        assert "without owners" in err
        assert "Hosts: 2 to create." in out
        assert fleet(client) == {}
        assert desk.declare(FLEET, "--yes")[0] == cli.NOTHING
        there = fleet(client)
        assert there["compute-1"]["inventories"]["CUSTOM_FPGA"]["reserved"] == 1
        assert there["compute-1"]["aggregates"] == [RACK]
        assert there["compute-1_gpu0"]["traits"] == ["CUSTOM_NVLINK"]
        status, out, _ = desk.declare(FLEET, "plan")
        assert (status, out) == (cli.NOTHING, "Hosts: 2 unchanged.\n")
        changed = "- {name: compute-1, inventories: {CUSTOM_FPGA: null, VCPU: 4}}"
        status, out, _ = desk.declare(changed, "--yes")
        assert status == cli.NOTHING
        assert "    - compute-1/inventories/CUSTOM_FPGA\n" in out
        assert fleet(client)["compute-1"]["inventories"].keys() == {"VCPU"}
        # Nothing that is left out is removed.
        assert fleet(client)["compute-1"]["traits"] == ["CUSTOM_RACK_17"]
        status, out, _ = desk.declare("- {name: compute-1_gpu0}", "plan")
        assert status == cli.ERROR
        assert "! compute-1_gpu0: compute-1_gpu0 is compute-1_gpu0 below" in out
        for option in ("--prune", "--force"):
            status, _, err = desk.declare(FLEET, "plan", option)
            assert status == cli.ERROR
            assert "there are no owners" in err
        assert "does not know what was declared" in desk.run("drift")[2]
        exported = desk.run("export", "--all")[1]
        assert "compute-2_gpu0" in exported


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
    assert desk.declare(exported, "--yes")[0] == cli.NOTHING, (seed, exported)
    assert fleet(client) == before, (seed, exported)
    assert desk.declare(exported, "plan")[0] == cli.NOTHING
    assert desk.run("export", "--all")[1] == exported


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


@pytest.mark.parametrize("arguments", [["plan"], ["drift", "a"], ["export", "a"], []])
def test_a_bad_command_is_reported(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(arguments)
    assert "usage: placement-apply FILE" in capsys.readouterr().err


def test_no_answer_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET)
    assert cli.main(["plan", str(file), "--url", "http://127.0.0.1:9"]) == cli.ERROR


def test_large_files_are_sent_in_portions(
    desk: Desk, service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "PORTION", 3)
    text = "- {name: 'h{n}', range: {n: 1..8}}"
    assert "Hosts: 8 created." in desk.declare(text, "--yes")[1]
    assert service.lines.count("POST /ledger/v1/apply") == 3
