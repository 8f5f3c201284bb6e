"""The claim loop: which refusals are final, and which are worth another attempt."""

import json
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from placement_clients import access
from placement_clients.client import Client
from placement_clients.errors import Timeout
from placement_clients.record import AGGREGATES, Candidates
from placement_clients.request import boot
from placement_clients.request.boot import Placed, Server
from placement_clients.request.errors import BadInput, NoValidHost, ServerTaken
from placement_clients.request.request import build
from tests.client import new_uuid
from tests.commands.request import cloud
from tests.commands.request.cloud import Cloud, flavor_m
from tests.serving import Served, serving
from tests.threads import at_once

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

CONCURRENT = "placement.concurrent_update"
LOST = (409, {"code": CONCURRENT, "detail": "Inventory changed meanwhile."})
FULL = (409, {"code": "placement.undefined_code", "detail": "exceed the capacity."})
TAKEN = (
    409,
    {
        "code": CONCURRENT,
        "detail": "consumer generation conflict - expected null but got 1",
    },
)
GONE = (400, {"detail": "Allocation for resource provider 'a' that does not exist."})
WRONG = (400, {"detail": "JSON does not validate"})
DONE: tuple[int, dict[str, str]] = (204, {})
FIRST, SECOND = (f"3f5b7d1c-6f8e-4c53-9c70-2a9d3c1f7e0{number}" for number in (1, 2))


class Placement:
    """A Placement with two hosts that answers claims as configured."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        self.answers = list(answers)
        self.claims: list[Any] = []

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        status, document = self.answer(environ)
        start_response(f"{status} Answer", [])
        return [json.dumps(document).encode()] if document else [b""]

    def answer(self, environ: "WSGIEnvironment") -> tuple[int, Any]:
        if environ["REQUEST_METHOD"] == "PUT":
            length = int(environ["CONTENT_LENGTH"])
            self.claims.append(json.loads(environ["wsgi.input"].read(length)))
            status, error = self.answers.pop(0)
            return status, {"errors": [error]} if error else None
        if environ["PATH_INFO"] == "/allocation_candidates":
            return 200, {
                "allocation_requests": [
                    {
                        "allocations": {host: {"resources": {"VCPU": 1}}},
                        "mappings": {"": [host]},
                    }
                    for host in (FIRST, SECOND)
                ],
                "provider_summaries": {
                    host: {"traits": [], "root_provider_uuid": host, "resources": {}}
                    for host in (FIRST, SECOND)
                },
            }
        return 200, {"allocations": {}}

    def boot(self, server: Server | None = None) -> Placed:
        with serving(self) as served:
            way = access.from_environment({}, url=served.url, token="admin")
            client = Client(way, pause=lambda seconds: None)
            return boot.boot(client, server or new_server(), build(flavor_m()))

    @property
    def tried(self) -> list[str]:
        """The hosts of the claims, in the order in which they came."""
        return [next(iter(claim["allocations"])) for claim in self.claims]


def new_server() -> Server:
    return Server(new_uuid(), "blue", "ann")


def test_the_first_candidate_is_claimed_as_it_came() -> None:
    placement = Placement(DONE)
    assert placement.boot().host == FIRST
    assert placement.claims == [
        {
            "allocations": {FIRST: {"resources": {"VCPU": 1}}},
            "mappings": {"": [FIRST]},
            "project_id": "blue",
            "user_id": "ann",
            "consumer_generation": None,
        }
    ]


@pytest.mark.parametrize(
    ("answers", "tried"),
    [
        ([LOST, DONE], [FIRST] * 2),
        ([LOST] * 4 + [DONE], [FIRST] * 5),
        ([LOST] * 5 + [DONE], [FIRST] * 5 + [SECOND]),
        ([LOST, FULL, DONE], [FIRST] * 2 + [SECOND]),
        ([FULL, DONE], [FIRST, SECOND]),
        ([GONE, DONE], [FIRST, SECOND]),
        ([FULL, LOST, DONE], [FIRST, SECOND, SECOND]),
    ],
)
def test_the_attempts_after_a_refusal(answers: Any, tried: list[str]) -> None:
    placement = Placement(*answers)
    assert placement.boot().host == tried[-1]
    assert placement.tried == tried


def test_no_candidate_has_room_any_more() -> None:
    placement = Placement(FULL, FULL)
    with pytest.raises(NoValidHost, match="none of 2 candidates has room any more"):
        placement.boot()


def test_another_claim_of_the_same_server_is_final() -> None:
    placement = Placement(TAKEN)
    with pytest.raises(ServerTaken, match="another client has booted it"):
        placement.boot()
    assert placement.tried == [FIRST]


def test_any_other_refusal_is_raised() -> None:
    with pytest.raises(BadInput, match="Placement refuses this: JSON does not"):
        Placement(WRONG).boot()


def test_a_type_of_consumer_asks_for_a_later_version(
    service: Served, small_cloud: Cloud
) -> None:
    server = Server(new_uuid(), "blue", "ann", consumer_type="INSTANCE")
    boot.boot(small_cloud.placement, server, build(flavor_m()))
    assert service.calls[-1].version == "1.38"
    path = f"/allocations/{server.uuid}"
    document = small_cloud.placement.get(path, version="1.38")
    assert document["consumer_type"] == "INSTANCE"


def test_a_server_that_holds_something_is_not_booted(
    service: Served, small_cloud: Cloud
) -> None:
    server = new_server()
    boot.boot(small_cloud.placement, server, build(flavor_m()))
    service.calls.clear()
    with pytest.raises(ServerTaken, match="holds something"):
        boot.boot(small_cloud.placement, server, build(flavor_m()))
    assert "PUT" not in {call.method for call in service.calls}


def test_of_two_clients_that_boot_one_server_one_fails(
    service: Served, small_cloud: Cloud
) -> None:
    server = new_server()
    both_have_looked = threading.Barrier(2)

    def after_both_have_looked(candidates: Candidates) -> Any:
        both_have_looked.wait(30)
        return candidates.found

    def attempt() -> str:
        way = access.from_environment({}, url=service.url, token="admin")
        try:
            return boot.boot(
                Client(way), server, build(flavor_m()), weigh=after_both_have_looked
            ).host
        except ServerTaken as exc:
            return str(exc)

    ended = at_once([attempt, attempt])
    (told,) = [each for each in ended if "another client has booted it" in each]
    (host,) = set(ended) - {told}
    held = small_cloud.placement.get_allocations(server.uuid)
    assert held == {host: {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 10}}


def test_the_host_is_not_the_provider_that_shares_with_it(
    small_cloud: Cloud,
) -> None:
    placement = small_cloud.placement
    placement.put("/resource_classes/CUSTOM_DISK", version="1.7")
    aggregate = new_uuid()
    host = cloud.provide(placement, "diskless", {"VCPU": 4, "FPGA": 1}, set())
    shared = {"MISC_SHARES_VIA_AGGREGATE"}
    pool = cloud.provide(placement, "a pool", {"CUSTOM_DISK": 9}, shared)
    for each in (host, pool):
        placement.change(each, AGGREGATES, lambda uuids: {*uuids, aggregate})
    wanted = "resources:VCPU=0 resources:MEMORY_MB=0 resources:DISK_GB=0 "
    request = build(
        flavor_m(wanted + "resources:FPGA=1 resources:CUSTOM_DISK=1"), strict=True
    )
    placed = boot.boot(placement, new_server(), request)
    assert set(placed.allocations) == {host, pool}
    assert placed.host == host


# Why nothing fits


@pytest.mark.parametrize(
    ("status", "document", "is_reason"),
    [
        (200, {"summary": "All full.", "changes": []}, True),
        (200, {"summary": 7}, False),
        (404, {}, False),
        (500, {}, False),
    ],
)
def test_the_reason_where_the_service_gives_one(
    status: int, document: Any, is_reason: bool
) -> None:
    class Full(Placement):
        def answer(self, environ: "WSGIEnvironment") -> tuple[int, Any]:
            if environ["PATH_INFO"] == "/ledger/v1/explanation":
                return status, document
            return 200, {"allocation_requests": [], "provider_summaries": {}}

    with pytest.raises(NoValidHost) as caught:
        Full().boot()
    assert caught.value.explanation == (document if is_reason else None)


def test_a_claim_without_an_answer_does_not_count_as_refused() -> None:
    class Slow(Placement):
        def answer(self, environ: "WSGIEnvironment") -> tuple[int, Any]:
            status, document = super().answer(environ)
            return (504 if status == 204 else status), document

    placement = Slow(DONE)
    with pytest.raises(Timeout):
        placement.boot()
    assert placement.tried == [FIRST]
