"""Traits of a node: set, added, removed, and how many there may be."""

from typing import Any

import pytest

from tests.nodes.caller import Caller

MANY = [f"CUSTOM_T{number:02}" for number in range(51)]


def test_traits_are_replaced_added_and_removed(nodes: Caller) -> None:
    uuid = nodes.enrol("n1")
    path = "/v1/nodes/n1/traits"
    assert nodes.traits("n1") == []
    wanted = ["HW_CPU_X86_VMX", "CUSTOM_FOO", "CUSTOM_FOO"]
    answer = nodes.call("PUT", path, {"traits": wanted})
    assert answer.status == 200
    assert answer.document == {"traits": ["CUSTOM_FOO", "HW_CPU_X86_VMX"]}
    answer = nodes.call("PUT", f"{path}/CUSTOM_BAR")
    assert (answer.status, answer.document) == (204, None)
    assert answer.headers["Location"] == f"http://localhost{path}/CUSTOM_BAR"
    assert nodes.traits(uuid) == ["CUSTOM_BAR", "CUSTOM_FOO", "HW_CPU_X86_VMX"]
    assert nodes.get("/v1/nodes/n1")["traits"] == nodes.traits("n1")
    assert nodes.call("DELETE", f"{path}/CUSTOM_FOO").status == 204
    answer = nodes.call("PUT", path, {"traits": ["CUSTOM_NEW"]})
    assert answer.document == {"traits": ["CUSTOM_NEW"]}
    for _ in range(2):
        assert nodes.call("DELETE", path).status == 204
        assert nodes.traits("n1") == []


def test_a_missing_trait_cannot_be_removed(nodes: Caller) -> None:
    uuid = nodes.enrol("n1", "CUSTOM_A")
    answer = nodes.call("DELETE", "/v1/nodes/n1/traits/CUSTOM_B")
    assert answer.status == 404
    assert answer.fault == f"Node {uuid} doesn't have a trait 'CUSTOM_B'"
    assert nodes.traits("n1") == ["CUSTOM_A"]


@pytest.mark.parametrize(
    "name",
    [
        "custom_bad",
        "CUSTOM_",
        "CUSTOM_a",
        "CUSTOM-A",
        "HW_NO_SUCH",
        "CUSTOM_" + "A" * 249,
        "CUSTOM_A%0A",
        "%00",
        "CUSTOM_%C3%84",
    ],
)
def test_a_bad_name_is_refused(nodes: Caller, name: str) -> None:
    nodes.enrol("n1", "CUSTOM_A")
    answer = nodes.call("PUT", f"/v1/nodes/n1/traits/{name}")
    assert answer.status == 400
    assert answer.fault.startswith("Schema error for trait: '")
    assert "is not valid" in answer.fault
    assert nodes.traits("n1") == ["CUSTOM_A"]


def test_a_list_with_a_bad_name_is_refused_whole(nodes: Caller) -> None:
    nodes.enrol("n1", "CUSTOM_A")
    body = {"traits": ["CUSTOM_B", "custom_bad"]}
    answer = nodes.call("PUT", "/v1/nodes/n1/traits", body)
    assert answer.status == 400
    assert answer.fault.startswith("Schema error for body: 'custom_bad' is not valid")
    assert nodes.traits("n1") == ["CUSTOM_A"]


@pytest.mark.parametrize(
    "body",
    [{}, {"traits": "CUSTOM_A"}, {"traits": [1]}, [], {"traits": [], "more": 1}, b"{"],
)
def test_a_body_other_than_a_list_of_traits_is_refused(
    nodes: Caller, body: object
) -> None:
    nodes.enrol("n1", "CUSTOM_A")
    assert nodes.call("PUT", "/v1/nodes/n1/traits", body).status == 400
    assert nodes.traits("n1") == ["CUSTOM_A"]


def test_the_longest_name_is_accepted(nodes: Caller) -> None:
    name = "CUSTOM_" + "A" * 248
    nodes.enrol("n1", name)
    assert nodes.traits("n1") == [name]


def test_a_trait_is_added_without_a_body(nodes: Caller) -> None:
    nodes.enrol("n1")
    path = "/v1/nodes/n1/traits/CUSTOM_A"
    json = {"Content-Type": "application/json"}
    nothing: list[Any] = [None, b"", {}]
    for body in nothing:
        assert nodes.call("PUT", path, body, headers=json).status == 204
    something: list[Any] = [{"a": 1}, [], "text", b"x"]
    for body in something:
        assert nodes.call("PUT", path, body).status == 400
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert nodes.call("PUT", path, b"a=b", headers=form).status == 400


def test_a_node_has_50_traits_at_most(nodes: Caller) -> None:
    uuid = nodes.enrol("n1", *MANY[:50])
    path = "/v1/nodes/n1/traits"
    refusal = (
        f"Could not modify traits for node {uuid} as it would exceed the maximum "
        "number of traits per node (51 vs. 50)"
    )
    for answer in (
        nodes.call("PUT", path, {"traits": MANY}),
        nodes.call("PUT", f"{path}/{MANY[50]}"),
    ):
        assert (answer.status, answer.fault) == (400, refusal)
        assert nodes.traits("n1") == MANY[:50]
    assert nodes.call("PUT", f"{path}/{MANY[0]}").status == 204
    repeated = {"traits": MANY[:50] * 2}
    assert nodes.call("PUT", path, repeated).status == 200


def test_unknown_nodes_have_no_traits(nodes: Caller) -> None:
    calls: list[tuple[str, str, Any]] = [
        ("GET", "/v1/nodes/n9/traits", None),
        ("PUT", "/v1/nodes/n9/traits", {"traits": []}),
        ("DELETE", "/v1/nodes/n9/traits", None),
        ("PUT", "/v1/nodes/n9/traits/CUSTOM_A", None),
        ("DELETE", "/v1/nodes/n9/traits/CUSTOM_A", None),
    ]
    for method, path, body in calls:
        answer = nodes.call(method, path, body)
        assert (answer.status, answer.fault) == (404, "Node n9 could not be found.")


def test_other_methods_are_not_allowed(nodes: Caller) -> None:
    nodes.enrol("n1", "CUSTOM_A")
    for method in ("GET", "POST"):
        answer = nodes.call(method, "/v1/nodes/n1/traits/CUSTOM_A")
        assert (answer.status, answer.headers["Allow"]) == (405, "PUT, DELETE")
    answer = nodes.call("POST", "/v1/nodes/n1/traits", {"traits": []})
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, PUT, DELETE")


def test_a_change_of_traits_is_a_change_of_the_node(nodes: Caller) -> None:
    nodes.enrol("n1")
    assert nodes.get("/v1/nodes/n1")["updated_at"] is None
    nodes.call("PUT", "/v1/nodes/n1/traits/CUSTOM_A")
    changed = nodes.get("/v1/nodes/n1")["updated_at"]
    assert changed
    nodes.call("PUT", "/v1/nodes/n1/traits/CUSTOM_A")
    assert nodes.get("/v1/nodes/n1")["updated_at"] == changed
