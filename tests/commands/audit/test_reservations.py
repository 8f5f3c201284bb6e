"""Claims of reserved slots live as long as their reservations."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from placement_clients.audit import cli
from tests.client import new_uuid
from tests.commands.audit.desk import Desk
from tests.serving import answering, serving

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


def class_of(reservation: str) -> str:
    return f"CUSTOM_RESERVATION_{reservation.upper().replace('-', '_')}"


def lease(reservation: str, status: str, lease_status: str) -> Any:
    about = [{"id": reservation, "status": status}]
    return {"id": new_uuid(), "status": lease_status, "reservations": about}


def test_claims_end_with_their_reservations(own_desk: Desk) -> None:
    reservations = [new_uuid() for _ in range(4)]
    for each in reservations:
        path = f"/resource_classes/{class_of(each)}"
        assert own_desk.client.call("PUT", path).status == 201
    slots = {class_of(each): 5 for each in reservations}
    host = own_desk.host("blazar_1", None, **slots)
    own_desk.claim({own_desk.host("compute-1", VCPU=8): {"VCPU": 1}})
    claims = [own_desk.claim({host: {class_of(each): 1}}) for each in reservations]
    leases = [
        lease(reservations[0], "active", "ACTIVE"),
        lease(reservations[1], "deleted", "ACTIVE"),
        lease(reservations[2], "active", "TERMINATED"),
    ]

    def service(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        assert environ["PATH_INFO"] == "/v1/leases"
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps({"leases": leases}).encode()]

    with serving(service) as served:
        url = ("--reservations", f"{served.url}/v1")
        status, out, _ = own_desk.run("--json", *url)
        found = {each["consumer"] for each in json.loads(out)["findings"]}
        assert (status, found) == (cli.FOUND, set(claims[1:]))
        status, out, _ = own_desk.run(
            *("--release", "--yes", "--undo-file", str(own_desk.undo), *url)
        )
        assert (status, out.count(": released\n")) == (cli.NOTHING, 3)
    assert own_desk.allocations(claims[0])["allocations"]


@pytest.mark.parametrize("answer", [b"[]", b'{"leases": [{}]}', b'{"leases": 5}', b"?"])
def test_an_answer_that_is_no_list_of_leases(own_desk: Desk, answer: bytes) -> None:
    with serving(answering("200 OK", answer)) as served:
        status, out, err = own_desk.run("--reservations", served.url)
    assert (status, out) == (cli.ERROR, "")
    assert err.startswith("placement-audit: ")
    assert len(err.splitlines()) == 1
