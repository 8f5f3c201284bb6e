"""The reservation API, as clients meet it."""

import dataclasses
import datetime
import re
from typing import Any
from urllib.parse import quote

import pytest

from placement_reservations import app, conf
from tests.reservations.cloud import DAY, POOL, Cloud, new_uuid, refusal
from tests.reservations.options import make_config
from tests.reservations.visitor import Visitor

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RESERVATION = {
    "amount": 3,
    "disk_gb": 10,
    "memory_mb": 512,
    "vcpus": 1,
    "resource_type": "virtual:instance",
    "affinity": "None",
    "resource_properties": "",
}
LEASE: dict[str, Any] = {
    "name": "l1",
    "start_date": "2030-03-05 10:00",
    "end_date": "2030-03-05 12:00",
    "reservations": [RESERVATION],
    "events": [],
    "before_end_date": None,
}


@pytest.fixture
def visitor(cloud: Cloud) -> Visitor:
    """Give an administrator, which every client is without Keystone."""
    return Visitor(app.build(make_config(), cloud.world))


def lease(**members: Any) -> dict[str, Any]:
    return {**LEASE, **members}


def wish(**members: Any) -> dict[str, Any]:
    return lease(reservations=[{**RESERVATION, **members}])


def without(document: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != name}


def create(visitor: Visitor, **members: Any) -> Any:
    answer = visitor.call("POST", "/v1/leases", lease(**members))
    assert answer.status == 201, answer
    return answer.document["lease"]


def test_the_list_of_versions(visitor: Visitor) -> None:
    for path in ("/", "/versions"):
        answer = visitor.call("GET", path)
        assert answer.status == 300
        assert answer.document == {
            "versions": [
                {
                    "id": "v1.0",
                    "status": "CURRENT",
                    "links": [{"href": "http://localhost/v1", "rel": "self"}],
                    "min_version": "1.0",
                    "max_version": "1.0",
                }
            ]
        }


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("reservation 1.0", 200),
        ("reservation latest", 200),
        ("compute 2.90", 200),
        ("reservation 1.1", 406),
        ("reservation two", 400),
    ],
)
def test_versions(visitor: Visitor, text: str, status: int) -> None:
    answer = visitor.call("GET", "/v1/leases", OpenStack_API_Version=text)
    assert answer.status == status
    assert answer.headers["OpenStack-API-Version"] == "reservation 1.0"
    assert answer.headers["Vary"] == "OpenStack-API-Version"


def test_a_lease_as_the_client_makes_it(visitor: Visitor) -> None:
    made = create(visitor)
    (reservation,) = made["reservations"]
    for found in (made["id"], reservation["id"], reservation["resource_id"]):
        assert UUID.fullmatch(found)
    stamp = r"2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}"
    assert re.fullmatch(stamp, made["created_at"])
    assert {**made, "created_at": 0, "updated_at": 0, "events": 0} == {
        "id": made["id"],
        "name": "l1",
        "user_id": "admin",
        "project_id": "admin",
        "start_date": "2030-03-05T10:00:00.000000",
        "end_date": "2030-03-05T12:00:00.000000",
        "status": "PENDING",
        "degraded": False,
        "status_reason": None,
        "trust_id": None,
        "created_at": 0,
        "updated_at": 0,
        "events": 0,
        "reservations": [
            {
                "id": reservation["id"],
                "lease_id": made["id"],
                "resource_id": reservation["resource_id"],
                "resource_type": "virtual:instance",
                "status": "pending",
                "missing_resources": False,
                "resources_changed": False,
                "created_at": reservation["created_at"],
                "updated_at": None,
                "vcpus": 1,
                "memory_mb": 512,
                "disk_gb": 10,
                "amount": 3,
                "affinity": None,
                "resource_properties": "",
                "flavor_id": reservation["id"],
                "aggregate_id": None,
                "server_group_id": None,
            }
        ],
    }
    times = {event["event_type"]: event["time"] for event in made["events"]}
    assert times == {
        "start_lease": "2030-03-05T10:00:00.000000",
        "before_end_lease": "2030-03-05T11:00:00.000000",
        "end_lease": "2030-03-05T12:00:00.000000",
    }
    assert {event["status"] for event in made["events"]} == {"UNDONE"}
    assert visitor.get("/v1/leases") == {"leases": [made]}
    assert visitor.get(f"/v1/leases/{made['id']}") == {"lease": made}
    assert visitor.call("DELETE", f"/v1/leases/{made['id']}").status == 204
    gone = visitor.call("GET", f"/v1/leases/{made['id']}")
    assert gone.status == 404
    assert gone.message == f"Object with {{'lease_id': '{made['id']}'}} not found"


@pytest.mark.parametrize("now", ["now", "2030-03-04 12:00"])
def test_a_lease_that_starts_now_has_started(
    visitor: Visitor, cloud: Cloud, now: str
) -> None:
    made = create(visitor, start_date=now, end_date="2030-03-04 12:02")
    assert made["status"] == "ACTIVE"
    assert made["start_date"] == "2030-03-04T12:00:00.000000"
    assert sum(*(each.values() for each in cloud.inventories().values())) == 3


def refuse_inventories(cloud: Cloud, status: int) -> None:
    def answer(call: str) -> None:
        if call.startswith("PUT") and call.endswith("/inventories"):
            raise refusal(status)

    cloud.wire.before = answer


def test_a_lease_that_cannot_start_now_says_that_it_waits(
    visitor: Visitor, cloud: Cloud
) -> None:
    refuse_inventories(cloud, 503)
    made = create(visitor, start_date="now")
    assert (made["status"], made["degraded"]) == ("STARTING", True)
    [start] = [each for each in made["events"] if each["event_type"] == "start_lease"]
    assert start["status"] == "IN_PROGRESS"
    cloud.wire.before = lambda call: None
    cloud.run_due(advance=datetime.timedelta(minutes=1))
    assert visitor.get(f"/v1/leases/{made['id']}")["lease"]["status"] == "ACTIVE"


def test_a_lease_that_is_refused_a_start_now_says_so(
    visitor: Visitor, cloud: Cloud
) -> None:
    refuse_inventories(cloud, 400)
    made = create(visitor, start_date="now")
    assert made["status"] == "ERROR"
    assert "HTTP 400" in made["status_reason"]
    assert [each["status"] for each in made["reservations"]] == ["error"]


def test_a_lease_is_changed(visitor: Visitor) -> None:
    made = create(visitor, start_date="now")
    path = f"/v1/leases/{made['id']}"
    answer = visitor.call("PUT", path, {"end_date": "2030-03-05 13:00"})
    assert answer.status == 200
    assert answer.document["lease"]["end_date"] == "2030-03-05T13:00:00.000000"
    assert answer.document["lease"]["status"] == "ACTIVE"
    reservation = {"id": made["reservations"][0]["id"], "amount": 4}
    answer = visitor.call("PUT", path, {"reservations": [reservation]})
    assert answer.document["lease"]["reservations"][0]["amount"] == 4
    answer = visitor.call("PUT", path, {"reservations": [{**reservation, "amount": 2}]})
    assert answer.status == 409
    assert answer.message.startswith("Instance reservation doesn't allow to reduce")


def test_without_notice_only_some_leases_have_an_event_before_their_end(
    cloud: Cloud,
) -> None:
    config = make_config({("reservations", "minutes_before_end_lease"): 0})
    world = dataclasses.replace(cloud.world, rules=conf.rules(config))
    visitor = Visitor(app.build(config, world))
    made = create(visitor)
    path = f"/v1/leases/{made['id']}"
    later = {"end_date": "2030-03-05 13:00"}
    longer = visitor.call("PUT", path, later).document["lease"]
    for shown in (made, longer):
        assert [event["event_type"] for event in shown["events"]] == [
            "start_lease",
            "end_lease",
        ]
    wanted = {"before_end_date": "2030-03-05 11:30"}
    for shown in (
        create(visitor, **wanted),
        visitor.call("PUT", path, wanted).document["lease"],
    ):
        times = {event["event_type"]: event["time"] for event in shown["events"]}
        assert times["before_end_lease"] == "2030-03-05T11:30:00.000000"
    cloud.turn(advance=2 * DAY)
    assert cloud.status(made["id"]) == "TERMINATED"


def test_a_pending_lease_that_is_moved_to_now_starts(visitor: Visitor) -> None:
    made = create(visitor)
    answer = visitor.call("PUT", f"/v1/leases/{made['id']}", {"start_date": "now"})
    assert answer.document["lease"]["status"] == "ACTIVE"


@pytest.mark.parametrize(
    ("said", "shown"),
    [(None, None), ("None", None), (True, True), ("True", True), ("False", False)],
)
def test_affinity(visitor: Visitor, said: Any, shown: Any) -> None:
    reservation = {**RESERVATION, "affinity": said, "amount": 2}
    made = create(visitor, reservations=[reservation])
    assert made["reservations"][0]["affinity"] is shown


def test_affinity_and_events_may_be_left_out(visitor: Visitor) -> None:
    reservation = without(without(RESERVATION, "affinity"), "resource_properties")
    body = without(
        without(lease(reservations=[reservation]), "events"), "before_end_date"
    )
    answer = visitor.call("POST", "/v1/leases", body)
    assert answer.document["lease"]["reservations"][0]["affinity"] is None


IMPOSSIBLE: list[tuple[Any, str]] = [
    *[
        (without(LEASE, name), name)
        for name in without(LEASE, "events")
        if name != "before_end_date"
    ],
    *[
        (lease(reservations=[without(RESERVATION, name)]), name)
        for name in ("vcpus", "memory_mb", "disk_gb", "amount", "resource_type")
    ],
    *[
        (wish(**{name: "two"}), "two")
        for name in ("vcpus", "memory_mb", "disk_gb", "amount", "affinity")
    ],
    (wish(amount=0), "amount"),
    (wish(amount=2**31), "amount"),
    (wish(vcpus=1.5), "1.5"),
    (wish(affinity=1), "affinity"),
    (wish(colour="red"), "colour"),
    (wish(resource_type="physical:host"), "physical:host"),
    (wish(resource_properties="gpu"), "Malformed requirements gpu"),
    (wish(resource_properties='["==", "$gpu", "1"]'), "gpu"),
    (lease(name=""), "name"),
    (lease(name="x" * 256), "name"),
    (lease(name="a\ud800"), "JSON"),
    (lease(colour="red"), "colour"),
    (lease(reservations=[]), "reservations"),
    (lease(events=[{"event_type": "notify"}]), "events"),
    (lease(start_date="tomorrow"), "start_date 'tomorrow'"),
    (lease(end_date="2030-03-05T12:00:00"), "end_date '2030-03-05T12:00:00'"),
    (lease(end_date="2030-02-30 12:00"), "end_date"),
    (lease(end_date="9999-12-31 23:59"), "after the year 9000"),
    (lease(start_date="2030-03-04 11:59"), "past"),
    (lease(end_date="2030-03-05 10:00"), "not after the start"),
    (lease(end_date="now"), "not after the start"),
    (lease(before_end_date="2030-03-05 12:01"), "before_end_date"),
    (lease(before_end_date="2030-03-05 09:59"), "before_end_date"),
    (lease(before_end_date="soon"), "before_end_date 'soon'"),
    (b'{"name": ', "Malformed JSON"),
    ([], "object"),
]


def test_leases_that_are_refused(visitor: Visitor, cloud: Cloud) -> None:
    for body, named in IMPOSSIBLE:
        answer = visitor.call("POST", "/v1/leases", body)
        assert answer.status == 400, (body, answer)
        assert named in answer.message
    assert visitor.get("/v1/leases") == {"leases": []}
    assert cloud.classes() == set()


def test_updates_that_are_refused(visitor: Visitor) -> None:
    table: list[Any] = [
        {},
        {"status": "ACTIVE"},
        {"end_date": "soon"},
        {"end_date": "2030-03-05 10:00"},
        {"reservations": [{"amount": 4}]},
        {"reservations": [{"id": "nosuch", "amount": 4}]},
        {"reservations": [{"id": "nosuch", "amount": 0}]},
        {"reservations": [{"id": "nosuch", "resource_type": "physical:host"}]},
        {"reservations": [{"id": "nosuch"}, {"id": "nosuch"}]},
        {"before_end_date": "2030-03-05 13:00"},
    ]
    made = create(visitor)
    for body in table:
        answer = visitor.call("PUT", f"/v1/leases/{made['id']}", body)
        assert answer.status == 400, answer
        assert visitor.get(f"/v1/leases/{made['id']}") == {"lease": made}


def test_too_much_is_a_conflict(visitor: Visitor) -> None:
    answer = visitor.call("POST", "/v1/leases", wish(amount=17))
    assert answer.status == 409
    assert answer.message.startswith("Not enough hosts available: 16 of 17 slots")
    assert visitor.get("/v1/leases") == {"leases": []}


def test_hosts_in_use_come_first(visitor: Visitor, cloud: Cloud) -> None:
    first, second = cloud.order(8), cloud.order(1)
    assert cloud.slots(second) == [2]
    visitor.call("DELETE", f"/v1/leases/{first}")
    assert cloud.slots(cloud.order(1)) == [2]


@pytest.mark.parametrize(
    ("affinity", "amount", "free"),
    [
        ("True", 9, "8 of 9 slots are free on one host."),
        ("False", 3, "2 of 3 slots are free, each on a different host."),
        ("None", 17, "16 of 17 slots are free."),
    ],
)
def test_only_slots_that_affinity_allows_are_counted(
    visitor: Visitor, affinity: str, amount: int, free: str
) -> None:
    there = "Host 1 has room for 8. Host 2 has room for 8."
    message = f"Not enough hosts available: {free} {there}"
    refused = visitor.call("POST", "/v1/leases", wish(affinity=affinity, amount=amount))
    assert refused.status == 409
    assert refused.message == f"{message} It does not fit within a year."
    query = f"vcpus=1&memory_mb=512&disk_gb=10&amount={amount}&affinity={affinity}"
    found = visitor.get(f"/v1/leases/free?{query}")
    until = "2030-04-03T12:00:00.000000"
    assert found == {"free": [], "until": until, "lacking": message}


def test_without_a_suitable_host_no_slot_is_free(visitor: Visitor) -> None:
    for host in visitor.get("/v1/os-hosts")["hosts"]:
        visitor.call("DELETE", f"/v1/os-hosts/{host['id']}")
    refused = visitor.call("POST", "/v1/leases", wish(affinity=True, amount=2))
    assert "0 of 2 slots are free on one host. It" in refused.message


def test_placement_is_unreachable(visitor: Visitor, cloud: Cloud) -> None:
    made = create(visitor, start_date="now")
    with cloud.wire.cut():
        for method, path, body in (
            ("POST", "/v1/leases", LEASE),
            ("POST", "/v1/os-hosts", {"name": "compute-3"}),
            ("DELETE", f"/v1/leases/{made['id']}", None),
        ):
            answer = visitor.call(method, path, body)
            assert answer.status == 503
            assert "Placement" in answer.message
            assert answer.headers["Retry-After"]
        assert [each["status"] for each in visitor.get("/v1/leases")["leases"]] == [
            "ERROR"
        ]
    assert visitor.call("DELETE", f"/v1/leases/{made['id']}").status == 204


def test_requests_to_placement_carry_the_request_id(
    visitor: Visitor, cloud: Cloud
) -> None:
    cloud.wire.request_ids.clear()
    inbound = "req-8d2ac8d2-4bc8-4d57-8d9b-3ea6a6f2b001"
    visitor.call("POST", "/v1/leases", LEASE, X_OpenStack_Request_ID=inbound)
    assert cloud.wire.request_ids == {inbound}


# Hosts


def test_hosts(visitor: Visitor, cloud: Cloud) -> None:
    cloud.make_host("compute-3", vcpus=4)
    body = {"name": "compute-3", "gpu": "True", "rack": 7, "ssd": True}
    answer = visitor.call("POST", "/v1/os-hosts", body)
    assert answer.status == 201
    host = answer.document["host"]
    assert {**host, "created_at": 0} == {
        "id": "3",
        "hypervisor_hostname": "compute-3",
        "service_name": "compute-3",
        "vcpus": 4,
        "memory_mb": 8192,
        "local_gb": 100,
        "cpu_info": "{}",
        "hypervisor_type": "QEMU",
        "hypervisor_version": 1,
        "availability_zone": "",
        "status": None,
        "reservable": True,
        "trust_id": None,
        "created_at": 0,
        "updated_at": None,
        "gpu": "True",
        "rack": "7",
        "ssd": "True",
    }
    child = cloud.children()["blazar_compute-3"]
    provider = cloud.placement.get(f"/resource_providers/{child}")
    assert provider["parent_provider_uuid"] == cloud.hosts["compute-3"]
    assert cloud.inventories_of("compute-3") == {}
    assert "compute-3" in cloud.pool()
    assert visitor.get("/v1/os-hosts/3") == {"host": host}
    assert len(visitor.get("/v1/os-hosts")["hosts"]) == 3
    changes = {"gpu": "False", "ssd": None, "zone": "b"}
    answer = visitor.call("PUT", "/v1/os-hosts/3", changes)
    assert answer.status == 200
    changed = answer.document["host"]
    assert (changed["gpu"], changed["zone"], "ssd" in changed) == ("False", "b", False)
    cloud.wire.calls.clear()
    assert visitor.call("DELETE", "/v1/os-hosts/3").status == 204
    # First out of the pool, then without its reservation provider.
    path = "/resource_providers"
    assert [call for call in cloud.wire.calls if not call.startswith("GET")] == [
        f"PUT {path}/{cloud.hosts['compute-3']}/aggregates",
        f"DELETE {path}/{child}",
    ]
    assert visitor.call("GET", "/v1/os-hosts/3").status == 404
    assert "blazar_compute-3" not in cloud.children()
    assert "compute-3" not in cloud.pool()


def test_a_host_keeps_its_other_aggregates(visitor: Visitor, cloud: Cloud) -> None:
    root = cloud.make_host("compute-3")
    path = f"/resource_providers/{root}/aggregates"
    others = {new_uuid(), new_uuid()}
    body = {
        "resource_provider_generation": cloud.placement.generation(root),
        "aggregates": sorted(others),
    }
    assert cloud.placement.call("PUT", path, body).status == 200
    visitor.call("POST", "/v1/os-hosts", {"name": "compute-3"})
    assert set(cloud.placement.get(path)["aggregates"]) == {*others, POOL}
    assert visitor.call("DELETE", "/v1/os-hosts/3").status == 204
    assert set(cloud.placement.get(path)["aggregates"]) == others


def test_hosts_that_cannot_be_added(visitor: Visitor, cloud: Cloud) -> None:
    answer = visitor.call("POST", "/v1/os-hosts", {"name": "nosuch-9"})
    assert (answer.status, answer.message) == (404, "Host 'nosuch-9' not found!")
    assert visitor.call("POST", "/v1/os-hosts", {"name": "compute-1"}).status == 409
    # A child is not a host.
    child = visitor.call("POST", "/v1/os-hosts", {"name": "blazar_compute-1"})
    assert child.status == 404
    root = cloud.make_host("compute-3")
    server = cloud.placement.claim(root, {root: {"VCPU": 1}})
    assert server.status == 204
    answer = visitor.call("POST", "/v1/os-hosts", {"name": "compute-3"})
    assert answer.status == 409
    assert root in answer.message
    assert cloud.placement.call("DELETE", f"/allocations/{root}").status == 204
    body = {"name": "blazar_compute-3", "parent_provider_uuid": root}
    assert cloud.placement.call("POST", "/resource_providers", body).status == 200
    answer = visitor.call("POST", "/v1/os-hosts", {"name": "compute-3"})
    assert (answer.status, answer.message) == (
        409,
        "Conflict on creating resource provider blazar_compute-3",
    )
    # It did not belong to the service.
    assert "blazar_compute-3" in cloud.children()
    assert "compute-3" not in cloud.pool()
    # Nor does the place in the pool of a host that another service keeps.
    cloud.world.compute.join_pool("compute-3")
    answer = visitor.call("POST", "/v1/os-hosts", {"name": "compute-3"})
    assert answer.status == 409
    assert "compute-3" in cloud.pool()


def test_capabilities_that_are_refused(visitor: Visitor) -> None:
    table: list[Any] = [
        {},
        {"name": ""},
        {"name": 1},
        {"name": "x" * 194},
        {"name": "compute-3", "vcpus": "9"},
        {"name": "compute-3", "id": "9"},
        {"name": "compute-3", "gpu": ["1"]},
        {"name": "compute-3", "gpu": None},
        {"name": "compute-3", "": "x"},
        {"name": "compute-3", "a b": "x"},
        {"name": "compute-3", "a/b": "x"},
    ]
    for body in table:
        assert visitor.call("POST", "/v1/os-hosts", body).status == 400


def test_changes_of_a_host_that_are_refused(visitor: Visitor) -> None:
    table: list[Any] = [{}, {"name": "x"}, {"vcpus": 9}, {"gpu": {}}]
    for body in table:
        assert visitor.call("PUT", "/v1/os-hosts/1", body).status == 400


def test_a_reserved_host_stays(visitor: Visitor) -> None:
    made = create(visitor)
    answer = visitor.call("DELETE", "/v1/os-hosts/1")
    assert answer.status == 409
    assert answer.message == "Can't delete host 1. The host is reserved."
    assert visitor.call("DELETE", f"/v1/leases/{made['id']}").status == 204
    assert visitor.call("DELETE", "/v1/os-hosts/1").status == 204


def test_a_host_whose_reservation_provider_is_gone_can_be_removed(
    visitor: Visitor, cloud: Cloud
) -> None:
    cloud.remove_slots()
    assert visitor.call("DELETE", "/v1/os-hosts/1").status == 204
    assert cloud.pool() == {"compute-2"}


def test_a_host_with_servers_stays(visitor: Visitor, cloud: Cloud) -> None:
    root = cloud.hosts["compute-1"]
    assert cloud.placement.claim(root, {root: {"VCPU": 1}}).status == 204
    answer = visitor.call("DELETE", "/v1/os-hosts/1")
    assert answer.status == 409
    assert "blazar_compute-1" in cloud.children()


def test_a_required_capability_cannot_be_removed(visitor: Visitor) -> None:
    visitor.call("PUT", "/v1/os-hosts/2", {"gpu": "True", "rack": "1"})
    wanted = {**RESERVATION, "resource_properties": '["==", "$gpu", "True"]'}
    create(visitor, reservations=[wanted])
    for change in ({"gpu": "False"}, {"gpu": None}):
        answer = visitor.call("PUT", "/v1/os-hosts/2", change)
        assert answer.status == 409
        assert "gpu" in answer.message
    assert visitor.call("PUT", "/v1/os-hosts/2", {"rack": "2"}).status == 200


def test_properties(visitor: Visitor) -> None:
    visitor.call("PUT", "/v1/os-hosts/1", {"gpu": "True", "rack": "1"})
    visitor.call("PUT", "/v1/os-hosts/2", {"gpu": "False"})
    path = "/v1/os-hosts/properties"
    assert visitor.get(path) == {
        "resource_properties": [{"property": "gpu"}, {"property": "rack"}]
    }
    gpu = {"property": "gpu", "private": False, "values": ["False", "True"]}
    rack = {"property": "rack", "private": False, "values": ["1"]}
    assert visitor.get(f"{path}?detail=True") == {"resource_properties": [gpu, rack]}
    answer = visitor.call("PATCH", f"{path}/gpu", {"private": True})
    assert answer.document == {"resource_property": {**gpu, "private": True}}
    assert visitor.get(path) == {"resource_properties": [{"property": "rack"}]}
    assert visitor.get(f"{path}?all=True")["resource_properties"][0] == {
        "property": "gpu"
    }
    assert visitor.call("PATCH", f"{path}/gpu", {"private": False}).status == 200
    assert len(visitor.get(path)["resource_properties"]) == 2
    assert visitor.call("PATCH", f"{path}/nosuch", {"private": True}).status == 404
    assert visitor.call("PATCH", f"{path}/gpu", {"private": "yes"}).status == 400
    assert visitor.call("GET", f"{path}?detail=maybe").status == 400
    assert visitor.call("GET", f"{path}?colour=red").status == 400


def test_allocations(visitor: Visitor) -> None:
    made, other = create(visitor), create(visitor)
    slot = {
        "id": made["reservations"][0]["id"],
        "lease_id": made["id"],
        "start_date": "2030-03-05T10:00:00.000000",
        "end_date": "2030-03-05T12:00:00.000000",
    }
    path = "/v1/os-hosts/allocations"
    found = visitor.get(path)["allocations"]
    assert [len(each["reservations"]) for each in found] == [6, 0]
    for query in (f"lease_id={made['id']}", f"reservation_id={slot['id']}"):
        assert visitor.get(f"{path}?{query}") == {
            "allocations": [
                {"resource_id": "1", "reservations": [slot] * 3},
                {"resource_id": "2", "reservations": []},
            ]
        }
    both = f"lease_id={other['id']}&reservation_id={slot['id']}"
    assert not visitor.get(f"{path}?{both}")["allocations"][0]["reservations"]
    shown = visitor.get("/v1/os-hosts/1/allocation")["allocation"]
    assert shown["resource_id"] == "1"
    assert len(shown["reservations"]) == 6
    assert visitor.call("GET", "/v1/os-hosts/9/allocation").status == 404


def test_flavors(visitor: Visitor) -> None:
    made = create(visitor)
    flavor_id = made["reservations"][0]["flavor_id"]
    flavor = visitor.get(f"/v1/flavors/{flavor_id}")["flavor"]
    name = f"CUSTOM_RESERVATION_{flavor_id.upper().replace('-', '_')}"
    assert flavor["name"] == f"reservation:{flavor_id}"
    assert (flavor["vcpus"], flavor["ram"], flavor["disk"]) == (1, 512, 10)
    assert flavor["extra_specs"] == {f"resources:{name}": "1"}
    assert flavor["os-flavor-access:is_public"] is False
    assert visitor.get("/v1/flavors") == {"flavors": [flavor]}
    assert visitor.call("GET", "/v1/flavors/nosuch").status == 404


def test_health(visitor: Visitor, cloud: Cloud) -> None:
    assert visitor.get("/healthcheck")["status"] == "ok"
    create(visitor)
    cloud.clock.advance(DAY)
    assert visitor.get("/healthcheck") == {
        "status": "late",
        "overdue_events": 1,
        "expired_claims": 0,
        "debts": 0,
    }
    cloud.turn()
    assert visitor.get("/healthcheck")["status"] == "ok"


def test_paths_and_methods(visitor: Visitor) -> None:
    assert visitor.call("GET", "/v1/nosuch").status == 404
    answer = visitor.call("PATCH", "/v1/leases")
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, POST"


OTHERS = ["01", "+1", " 1", "1_0", "0", "1.0", "\u0661", "-1", "9", "9" * 40, "x"]


@pytest.mark.parametrize("identifier", OTHERS)
def test_only_the_number_itself_names_a_host(visitor: Visitor, identifier: str) -> None:
    path = f"/v1/os-hosts/{quote(identifier)}"
    for method, body in (("GET", None), ("PUT", {"gpu": "1"}), ("DELETE", None)):
        assert visitor.call(method, path, body).status == 404
    assert len(visitor.get("/v1/os-hosts")["hosts"]) == 2


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/leases?status=ACTIVE"),
        ("POST", "/v1/leases?dry_run=1"),
        ("GET", "/v1/leases/{lease}?detail"),
        ("PUT", "/v1/leases/{lease}?force"),
        ("DELETE", "/v1/leases/{lease}?force=true"),
        ("GET", "/v1/os-hosts?name=x"),
        ("GET", "/v1/os-hosts/1?detail"),
        ("GET", "/v1/flavors?x=1"),
    ],
)
def test_an_unknown_parameter_is_refused(
    visitor: Visitor, method: str, path: str
) -> None:
    body: dict[str, str] | None = {} if method in ("POST", "PUT") else None
    refused = visitor.call(method, path.format(lease=create(visitor)["id"]), body)
    assert refused.status == 400
    assert path.partition("?")[2].partition("=")[0] in str(refused.document)
