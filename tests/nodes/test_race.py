"""Concurrent writes of one node: the limit holds, and no write undoes another."""

from collections import Counter
from collections.abc import Callable
from functools import partial

from tests.client import new_uuid
from tests.nodes.caller import Caller
from tests.threads import at_once

MANY = [f"CUSTOM_T{number:02}" for number in range(58)]


def add(nodes: Caller, trait: str) -> int:
    return nodes.call("PUT", f"/v1/nodes/n1/traits/{trait}").status


def patch(nodes: Caller, name: str) -> int:
    change = {"op": "add", "path": f"/extra/{name}", "value": name}
    return nodes.patch("n1", change).status


def test_concurrent_additions_stop_at_50_traits(nodes: Caller) -> None:
    for before in (46, 49):
        nodes.enrol("n1", *MANY[:before])
        statuses = at_once([partial(add, nodes, trait) for trait in MANY[50:]])
        assert Counter(statuses) == {204: 50 - before, 400: 8 - (50 - before)}
        added = {
            trait
            for trait, status in zip(MANY[50:], statuses, strict=True)
            if status == 204
        }
        assert set(nodes.traits("n1")) == {*MANY[:before], *added}
        nodes.call("DELETE", "/v1/nodes/n1")


def take(nodes: Caller, instance: str) -> int:
    change = {"op": "add", "path": "/instance_uuid", "value": instance}
    return nodes.patch("n1", change).status


def test_one_of_several_instances_gets_a_node(nodes: Caller) -> None:
    nodes.enrol("n1")
    instances = [new_uuid() for _ in range(6)]
    statuses = at_once([partial(take, nodes, each) for each in instances])
    assert Counter(statuses) == {200: 1, 409: 5}
    taken = nodes.get("/v1/nodes/n1")["instance_uuid"]
    assert statuses[instances.index(taken)] == 200


def test_adding_one_trait_twice_at_once_is_no_conflict(nodes: Caller) -> None:
    nodes.enrol("n1", *MANY[:49])
    statuses = at_once([partial(add, nodes, MANY[49])] * 6)
    assert statuses == [204] * 6
    assert nodes.traits("n1") == MANY[:50]


def test_adding_and_replacing_come_one_after_the_other(nodes: Caller) -> None:
    def replace() -> int:
        path = "/v1/nodes/n1/traits"
        return nodes.call("PUT", path, {"traits": MANY[:50]}).status

    for _ in range(5):
        nodes.enrol("n1")
        writers: list[Callable[[], int]] = [replace, partial(add, nodes, MANY[57])]
        replaced, added = at_once(writers)
        found = set(nodes.traits("n1"))
        # The last write wins; there are never 51 traits.
        assert replaced == 200
        assert found == set(MANY[:50])
        assert added in (204, 400)
        nodes.call("DELETE", "/v1/nodes/n1")


def test_patches_at_once_are_all_applied(nodes: Caller) -> None:
    nodes.enrol("n1")
    names = "abcdef"
    assert at_once([partial(patch, nodes, name) for name in names]) == [200] * 6
    assert nodes.get("/v1/nodes/n1")["extra"] == dict(zip(names, names, strict=True))


def test_one_of_several_gets_a_name(nodes: Caller) -> None:
    body = {"driver": "fake-hardware", "name": "n1"}
    answers = at_once([partial(nodes.call, "POST", "/v1/nodes", body)] * 6)
    assert Counter(answer.status for answer in answers) == {201: 1, 409: 5}
    assert nodes.names() == ["n1"]


def test_one_of_several_provisions_a_node(nodes: Caller) -> None:
    nodes.enrol("n1")
    nodes.provision("n1", "manage", "provide")
    path, body = "/v1/nodes/n1/states/provision", {"target": "active"}
    answers = at_once([partial(nodes.call, "PUT", path, body)] * 4)
    assert Counter(answer.status for answer in answers) == {202: 1, 400: 3}


def test_a_node_that_is_removed_meanwhile_is_gone(nodes: Caller) -> None:
    for _ in range(5):
        nodes.enrol("n1", "CUSTOM_A")
        removed, added, changed = at_once(
            [
                lambda: nodes.call("DELETE", "/v1/nodes/n1").status,
                lambda: add(nodes, "CUSTOM_B"),
                lambda: (
                    nodes.patch(
                        "n1", {"op": "add", "path": "/extra/a", "value": 1}
                    ).status
                ),
            ]
        )
        assert removed == 204
        assert added in (204, 404)
        assert changed in (200, 404)
        assert nodes.get("/v1/nodes") == {"nodes": []}
