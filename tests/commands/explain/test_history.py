"""``placement-explain history`` prints what has changed as a person reads it."""

import re
from typing import Any

import pytest

from placement_clients.explain import cli
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
    when = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  req-[-0-9a-f]{36}  admin \(admin\)  "
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


def test_what_is_unknown_has_no_history(
    service: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines(service, capsys, "compute-7") == (1, [])
