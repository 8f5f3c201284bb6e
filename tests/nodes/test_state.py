"""States of a node: provisioning, power, maintenance, validation."""

from typing import Any

import pytest

from tests.nodes.caller import Answer, Caller

INSTANCE = "5d1fe3b0-6c5c-4a58-b4a6-2b1f7f1c3a01"
STATES = ["enroll", "manageable", "available", "active"]
WAYS = {
    "enroll": [],
    "manageable": ["manage"],
    "available": ["manage", "provide"],
    "active": ["manage", "provide", "active"],
}
ALLOWED = {
    ("enroll", "manage"): "manageable",
    ("manageable", "provide"): "available",
    ("available", "manage"): "manageable",
    ("available", "active"): "active",
    ("active", "deleted"): "available",
}


def ask(nodes: Caller, target: object) -> Answer:
    path = "/v1/nodes/n1/states/provision"
    return nodes.call("PUT", path, {"target": target})


@pytest.mark.parametrize("state", STATES)
def test_a_node_goes_from_state_to_state(nodes: Caller, state: str) -> None:
    for target in ("manage", "provide", "active", "deleted", "rebuild", ""):
        uuid = nodes.enrol("n1")
        nodes.provision("n1", *WAYS[state])
        answer = ask(nodes, target)
        states = nodes.get("/v1/nodes/n1/states")
        after = ALLOWED.get((state, target))
        if after:
            assert answer.status == 202
            link = "http://localhost/v1/nodes/n1/states"
            assert answer.headers["Location"] == link
            assert states["provision_updated_at"]
        else:
            assert answer.status == 400
            assert answer.fault == (
                f'The requested action "{target}" can not be performed on node '
                f'"{uuid}" while it is in state "{state}".'
            )
        assert states["provision_state"] == after or state
        assert states["target_provision_state"] is None
        nodes.call("PUT", "/v1/nodes/n1/maintenance")
        assert nodes.call("DELETE", "/v1/nodes/n1").status == 204


def test_power_goes_with_the_state(nodes: Caller) -> None:
    nodes.enrol("n1")
    seen = []
    for target in ("manage", "provide", "active", "deleted"):
        nodes.provision("n1", target)
        seen.append(nodes.get("/v1/nodes/n1")["power_state"])
    assert seen == ["power off", "power off", "power on", "power off"]
    nodes.call("PUT", "/v1/nodes/n1/states/power", {"target": "power on"})
    nodes.provision("n1", "manage")
    assert nodes.get("/v1/nodes/n1")["power_state"] == "power on"


def test_the_end_of_an_instance_leaves_the_traits(nodes: Caller) -> None:
    nodes.enrol("n1", "CUSTOM_A")
    nodes.provision("n1", "manage", "provide")
    nodes.change("n1", instance_info={"traits": ["CUSTOM_A"]}, instance_uuid=INSTANCE)
    nodes.provision("n1", "active", "deleted")
    node = nodes.get("/v1/nodes/n1")
    assert (node["instance_info"], node["instance_uuid"]) == ({}, None)
    assert node["traits"] == ["CUSTOM_A"]


@pytest.mark.parametrize(
    ("target", "state"),
    [("power on", "power on"), ("power off", "power off"), ("rebooting", "power on")],
)
def test_power_is_switched(nodes: Caller, target: str, state: str) -> None:
    nodes.enrol("n1")
    answer = nodes.call("PUT", "/v1/nodes/n1/states/power", {"target": target})
    assert answer.status == 202
    assert nodes.get("/v1/nodes/n1/states")["power_state"] == state


@pytest.mark.parametrize(
    "body", [{}, {"target": None}, {"target": "soft power off"}, {"target": []}, 1]
)
def test_a_bad_target_is_refused(nodes: Caller, body: object) -> None:
    nodes.enrol("n1")
    assert nodes.call("PUT", "/v1/nodes/n1/states/power", body).status == 400
    body = body if body != {"target": "soft power off"} else {"target": "fly"}
    assert nodes.call("PUT", "/v1/nodes/n1/states/provision", body).status == 400
    assert nodes.get("/v1/nodes/n1/states")["power_state"] is None


def test_maintenance_begins_and_ends(nodes: Caller) -> None:
    nodes.enrol("n1")
    path = "/v1/nodes/n1/maintenance"

    def shown() -> tuple[bool, str | None]:
        node = nodes.get("/v1/nodes/n1")
        return node["maintenance"], node["maintenance_reason"]

    for body, reason in [({"reason": "smoke"}, "smoke"), (None, None), ({}, None)]:
        assert nodes.call("PUT", path, body).status == 202
        assert shown() == (True, reason)
    refused: list[Any] = [{"reason": 1}, {"because": "smoke"}, []]
    for bad in refused:
        assert nodes.call("PUT", path, bad).status == 400
    for _ in range(2):
        assert nodes.call("DELETE", path).status == 202
        assert shown() == (False, None)


def test_unknown_nodes_have_no_states(nodes: Caller) -> None:
    for method, path, body in [
        ("GET", "states", None),
        ("PUT", "states/provision", {"target": "manage"}),
        ("PUT", "states/power", {"target": "power on"}),
        ("PUT", "maintenance", None),
        ("DELETE", "maintenance", None),
        ("GET", "validate", None),
    ]:
        answer = nodes.call(method, f"/v1/nodes/n9/{path}", body)
        assert (answer.status, answer.fault) == (404, "Node n9 could not be found.")


def missing(uuid: str, *names: str) -> str:
    return (
        "Cannot specify instance traits that are not also set on the node. Node "
        f"{uuid} is missing traits {', '.join(names)}"
    )


def unreadable(uuid: str) -> str:
    return (
        f"Error parsing traits from Node {uuid} instance_info field. A list of strings "
        "is expected."
    )


@pytest.mark.parametrize(
    ("wanted", "fault"),
    [
        (["CUSTOM_A"], None),
        (["CUSTOM_A", "CUSTOM_A"], None),
        ([], None),
        (None, None),
        (["CUSTOM_X"], "CUSTOM_X"),
        (["CUSTOM_X", "CUSTOM_A", "CUSTOM_B"], "CUSTOM_B, CUSTOM_X"),
        ("CUSTOM_A", "unreadable"),
        (["CUSTOM_A", 1], "unreadable"),
        ({"CUSTOM_A": 1}, "unreadable"),
        (0, "unreadable"),
        (False, "unreadable"),
    ],
)
def test_traits_of_the_instance_are_among_those_of_the_node(
    nodes: Caller, wanted: object, fault: str | None
) -> None:
    uuid = nodes.enrol("n1", "CUSTOM_A")
    nodes.provision("n1", "manage", "provide")
    nodes.change("n1", instance_info={"traits": wanted})
    reason = None
    if fault:
        reason = unreadable(uuid) if fault == "unreadable" else missing(uuid, fault)
    validation = nodes.get("/v1/nodes/n1/validate")
    assert validation["deploy"] == {"result": not reason, "reason": reason or ""}
    others = ["boot", "console", "inspect", "management", "network", "power", "raid"]
    for kind in (*others, "storage"):
        assert validation[kind] == {"result": True, "reason": ""}
    before = nodes.get("/v1/nodes/n1")
    answer = ask(nodes, "active")
    if reason:
        prefix = f"Failed to validate deploy or power info for node {uuid}: "
        assert (answer.status, answer.fault) == (400, prefix + reason)
        assert nodes.get("/v1/nodes/n1") == before
    else:
        assert answer.status == 202


def test_a_trait_that_an_instance_uses_may_be_removed(nodes: Caller) -> None:
    nodes.enrol("n1", "CUSTOM_A", instance_info={"traits": ["CUSTOM_A"]})
    assert nodes.call("DELETE", "/v1/nodes/n1/traits/CUSTOM_A").status == 204
    assert not nodes.get("/v1/nodes/n1/validate")["deploy"]["result"]
