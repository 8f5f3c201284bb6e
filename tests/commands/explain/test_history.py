"""``placement-explain history`` prints what has changed as a person reads it."""

import io
import json
import re
from typing import Any

import pytest

from placement.objects.journal import recording
from placement.objects.journal.keeping import Keeper
from placement.objects.ledger import Ledger
from placement_clients.apply import cli as apply
from placement_clients.explain import cli
from placement_foundation.database.storage import Database
from tests.client import Client, new_uuid, wants
from tests.serving import Served


@pytest.fixture
def client(application: Any) -> Client:
    return Client(application)


def lines(
    service: Served, capsys: pytest.CaptureFixture[str], what: str
) -> tuple[int, list[str]]:
    status = cli.main(["history", what, "--url", service.url, "--token", "admin"])
    return status, capsys.readouterr().out.splitlines()


def test_it_says_when_and_by_whom_and_what(
    service: Served, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    provider, consumer = client.make_provider(VCPU=16), new_uuid()
    for amount, generation in ((4, None), (6, 1)):
        body = wants({provider: {"VCPU": amount}}, generation)
        assert client.call("PUT", f"/allocations/{consumer}", body).status == 204
    status, [second, first] = lines(service, capsys, consumer)
    assert status == 0
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC  req-[-0-9a-f]{36}  admin \(admin\)  "
    assert re.fullmatch(f"{when}{provider}: VCPU 0 → 4", first), first
    assert re.fullmatch(f"{when}{provider}: VCPU 4 → 6", second), second
    by_name = lines(service, capsys, provider)[1]
    assert by_name[:2] == [second, first]
    assert by_name[2].endswith("inventory: VCPU 0 → 16")
    assert f"provider.created: {provider} name none → {provider}" in by_name[3]


def test_it_says_what_traits_came_and_went(
    service: Served, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = client.make_provider(VCPU=16)
    for traits in (["HW_CPU_X86_VMX"], []):
        body = {
            "traits": traits,
            "resource_provider_generation": client.generation(provider),
        }
        path = f"/resource_providers/{provider}/traits"
        assert client.call("PUT", path, body).status == 200
    last, before = lines(service, capsys, provider)[1][:2]
    assert before.endswith("traits: +HW_CPU_X86_VMX")
    assert last.endswith("traits: -HW_CPU_X86_VMX")


def test_a_deleted_provider_has_a_history(
    service: Served, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = client.make_provider(VCPU=16)
    assert client.call("DELETE", f"/resource_providers/{provider}").status == 204
    status, printed = lines(service, capsys, provider)
    assert status == 0
    assert "provider.deleted: " in printed[0]
    assert "provider.created: " in printed[-1]


@pytest.mark.parametrize("what", ["compute-7", "8d2a0000-0000-4000-8000-000000000007"])
@pytest.mark.parametrize("gaps", [0, 1])
def test_of_what_is_unknown_it_says_so(
    service: Served,
    database: Database,
    journal: Keeper,
    capsys: pytest.CaptureFixture[str],
    what: str,
    gaps: int,
) -> None:
    for _ in range(gaps):
        Ledger(database, journal).write(recording.note_gap)
    arguments = ["history", what, "--url", service.url, "--token", "admin"]
    assert cli.main(arguments) == cli.NONE_SERVES == 1
    out, err = capsys.readouterr()
    assert err.endswith(f"placement-explain: nothing is known of {what}\n")
    assert out.count("journal.gap") == len(out.splitlines()) == gaps


def test_a_name_cannot_command_a_terminal(
    service: Served, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"name": "a\x1b]0;b\x07\x9b2J"}
    assert client.call("POST", "/resource_providers", body).status == 200
    arguments = ["--url", service.url, "--token", "admin"]
    shown = [
        (cli.main, ["history", body["name"]]),
        (cli.main, ["fleet"]),
        (apply.main, ["plan", "-"]),
    ]
    declared = {"trees": [{**body, "traits": ["CUSTOM_A"]}]}
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(declared).encode()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", stdin)
        for main, command in shown:
            main([*command, *arguments])
            out = capsys.readouterr().out
            assert out.replace("\n", "").isprintable()
            assert r"a\x1b]0;b\x07\x9b2J" in out
