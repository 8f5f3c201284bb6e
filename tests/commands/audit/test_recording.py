"""What an audit leaves with the service, for those who look there."""

from typing import TYPE_CHECKING, Any

import pytest

from placement_clients.audit import cli, drawing
from tests.client import new_uuid
from tests.commands.audit.desk import Desk
from tests.serving import serving, without_ledger

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def recorded(desk: Desk) -> list[dict[str, Any]]:
    audits: list[dict[str, Any]] = desk.client.get("/ledger/v1/audits")["audits"]
    return audits


def test_what_is_found_is_recorded(own_desk: Desk) -> None:
    desk = own_desk
    host = desk.host("compute-1", VCPU=8)
    orphan = desk.claim({host: {"VCPU": 2}}, project="blue")
    missing = new_uuid()
    desk.lives(missing, host="compute-1", resources={"VCPU": 4})
    assert desk.audit("--json")[0] == cli.FOUND
    assert recorded(desk) == []
    assert desk.audit("--record", "nova")[0] == cli.FOUND
    [audit] = recorded(desk)
    assert (audit["name"], audit["claims"], audit["living"]) == ("nova", 1, 1)
    counts = {"orphan": 1, "missing": 1, "wrong host": 0, "wrong amounts": 0}
    assert audit["counts"] == counts
    found = {each["kind"]: each for each in audit["findings"]}
    assert found["orphan"]["consumer"] == orphan
    assert found["orphan"]["host"] == "compute-1"
    assert found["orphan"]["resources"] == "VCPU 2"
    assert found["orphan"]["claimed_at"]
    assert found["missing"] == {
        "kind": "missing",
        "consumer": missing,
        "consumer_type": "unknown",
        "expected_host": "compute-1",
        "expected_resources": "VCPU 4",
    }


def test_the_last_audit_counts_without_what_was_released(
    own_desk: Desk,
) -> None:
    desk = own_desk
    host = desk.host("compute-1", VCPU=8)
    desk.claim({host: {"VCPU": 2}})
    young = desk.claim({host: {"VCPU": 2}}, hours=0)
    desk.lives(new_uuid())
    desk.age(young, 0.5)
    desk.audit("--record")
    assert len(recorded(desk)[0]["findings"]) == 3
    assert desk.release("--record")[0] == cli.FOUND
    [audit] = recorded(desk)
    assert audit["name"] == "audit"
    assert audit["counts"] == {
        "orphan": 1,
        "missing": 1,
        "wrong host": 0,
        "wrong amounts": 0,
    }
    assert young in str(audit["findings"])


@pytest.mark.parametrize("prevented_by", ["nobody", "file"])
def test_what_is_found_is_recorded_even_if_nothing_is_released(
    own_desk: Desk, prevented_by: str
) -> None:
    desk = own_desk
    orphan = desk.claim({desk.host("compute-1", VCPU=8): {"VCPU": 2}})
    if prevented_by == "file":
        desk.lives(new_uuid())
        desk.undo.touch()
    assert desk.release("--record")[0] == cli.ERROR
    [audit] = recorded(desk)
    assert audit["counts"]["orphan"] == 1
    assert orphan in str(audit["findings"])


def test_no_more_findings_are_recorded_than_the_service_keeps(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "MOST_RECORDED", 2)
    desk = own_desk
    desk.lives(*(new_uuid() for _ in range(5)))
    desk.audit("--record")
    [audit] = recorded(desk)
    assert len(audit["findings"]) == 2
    assert audit["counts"]["missing"] == 5


def test_another_placement_keeps_nothing(
    own_desk: Desk, application: "WSGIApplication"
) -> None:
    with serving(without_ledger(application)) as served:
        own_desk.url = served.url
        status, _, err = own_desk.audit("--record")
    assert status == cli.ERROR
    assert "no /ledger/v1/audits, so nothing is recorded" in err


@pytest.mark.parametrize(
    "arguments", [["--undo", "x", "--record"], ["--alive", "x", "--record", "Nova"]]
)
def test_a_bad_name_or_place_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(arguments)
    assert "placement-audit: error" in capsys.readouterr().err
