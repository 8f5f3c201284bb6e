"""Nodes: enrolled, shown, patched, removed; and documents that are open to all."""

import uuid
from typing import Any

import pytest

from placement_foundation.database.storage import Database
from placement_nodes import app
from tests.nodes import options
from tests.nodes.caller import Caller

UUID = "2fd2f3a6-20c2-4c5b-94a7-5a7f2f0c2a11"
OTHER = "2fd2f3a6-20c2-4c5b-94a7-5a7f2f0c2a12"
DRIVER = "fake-hardware"
MEMBERS = {
    "uuid",
    "name",
    "driver",
    "resource_class",
    "properties",
    "extra",
    "driver_info",
    "instance_info",
    "instance_uuid",
    "maintenance",
    "maintenance_reason",
    "power_state",
    "target_power_state",
    "provision_state",
    "target_provision_state",
    "provision_updated_at",
    "last_error",
    "chassis_uuid",
    "reservation",
    "deploy_interface",
    "created_at",
    "updated_at",
    "traits",
    "links",
}


def test_a_node_is_enrolled_and_shown(nodes: Caller) -> None:
    body = {
        "driver": DRIVER,
        "name": "n1",
        "uuid": UUID.upper().replace("-", ""),
        "resource_class": "baremetal.gold",
        "properties": {"cpus": 4, "weird": ["\u0000", "\U0001f600"]},
        "deploy_interface": "direct",
    }
    answer = nodes.call("POST", "/v1/nodes", body)
    assert answer.status == 201
    assert answer.headers["Location"] == f"http://localhost/v1/nodes/{UUID}"
    node = answer.document
    assert set(node) >= MEMBERS
    assert (node["uuid"], node["name"], node["driver"]) == (UUID, "n1", DRIVER)
    assert node["properties"] == body["properties"]
    assert node["extra"] == node["driver_info"] == node["instance_info"] == {}
    assert (node["deploy_interface"], node["boot_interface"]) == ("direct", "fake")
    assert (node["provision_state"], node["power_state"]) == ("enroll", None)
    assert (node["traits"], node["maintenance"]) == ([], False)
    assert node["created_at"].endswith("+00:00")
    assert len(node["created_at"]) == len("2026-11-20T20:54:01.872487+00:00")
    assert node["links"] == [
        {"href": f"http://localhost/v1/nodes/{UUID}", "rel": "self"},
        {"href": f"http://localhost/nodes/{UUID}", "rel": "bookmark"},
    ]
    for ident in (UUID, UUID.upper(), "n1"):
        assert nodes.get(f"/v1/nodes/{ident}") == node
    assert nodes.get("/v1/nodes/n1?fields=name,uuid") == {
        "name": "n1",
        "uuid": UUID,
        "links": node["links"],
    }


def test_a_node_needs_only_a_driver(nodes: Caller) -> None:
    node = nodes.call("POST", "/v1/nodes", {"driver": DRIVER}).document
    assert str(uuid.UUID(node["uuid"])) == node["uuid"]
    assert (node["name"], node["resource_class"]) == (None, None)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({}, "'driver' is a required property"),
        ({"driver": "no-hardware"}, "There is no driver 'no-hardware'"),
        ({"driver": DRIVER, "cow": 1}, "('cow' was unexpected)"),
        (
            {"driver": DRIVER, "traits": ["CUSTOM_A"]},
            "Additional properties are not allowed ('traits' was unexpected)",
        ),
        ({"driver": DRIVER, "provision_state": "active"}, "was unexpected"),
        ({"driver": DRIVER, "uuid": "1"}, "is not a 'uuid'"),
        ({"driver": DRIVER, "extra": []}, "is not of type"),
        ({"driver": DRIVER, "resource_class": "x" * 81}, "is too long"),
        ({"driver": DRIVER, "maintenance": 1}, "is not of type 'boolean'"),
        ({"driver": DRIVER, "deploy_interface": ""}, "deploy_interface"),
        ([], "is not of type 'object'"),
        (b"{", "Malformed JSON"),
        (b'{"driver": "fake-hardware", "extra": {"a": NaN}}', "Malformed JSON"),
        (b'{"driver": "fake-hardware", "name": "\\ud800"}', "Malformed JSON"),
        ({"driver": DRIVER, "extra": {"a": "x" * (1 << 20)}}, "too large"),
    ],
)
def test_a_bad_node_is_refused(nodes: Caller, body: Any, fault: str) -> None:
    answer = nodes.call("POST", "/v1/nodes", body)
    assert answer.status == 400
    assert fault in answer.fault
    assert "\n" not in answer.fault
    assert nodes.get("/v1/nodes") == {"nodes": []}


@pytest.mark.parametrize(
    "name",
    ["", "n 1", "n/1", "n1\n", "ä", UUID, UUID.replace("-", ""), "detail", "x" * 256],
)
def test_a_bad_name_is_refused(nodes: Caller, name: str) -> None:
    answer = nodes.call("POST", "/v1/nodes", {"driver": DRIVER, "name": name})
    assert answer.status == 400
    assert answer.fault == f"Cannot create node with invalid name '{name}'"
    nodes.enrol("n1")
    answer = nodes.patch("n1", {"op": "add", "path": "/name", "value": name})
    assert (answer.status, nodes.names()) == (400, ["n1"])


def test_unique_values_are_given_once(nodes: Caller) -> None:
    nodes.enrol("n1", uuid=UUID, instance_uuid=OTHER)
    nodes.enrol("N1")
    for taken in ({"name": "n1"}, {"uuid": UUID.upper()}, {"instance_uuid": OTHER}):
        answer = nodes.call("POST", "/v1/nodes", {"driver": DRIVER, **taken})
        assert answer.status == 409
        assert next(iter(taken.values())).lower() in answer.fault.lower()
    for field, value in (("name", "n1"), ("instance_uuid", OTHER)):
        change = {"op": "add", "path": f"/{field}", "value": value}
        assert nodes.patch("N1", change).status == 409
        assert nodes.patch("n1", change).status == 200


def test_a_node_in_use_is_not_given_to_another_instance(nodes: Caller) -> None:
    uuid = nodes.enrol("n1", instance_uuid=OTHER)
    take = {"op": "add", "path": "/instance_uuid", "value": UUID}
    answer = nodes.patch("n1", take)
    assert answer.status == 409
    assert answer.fault == f"Node {uuid} is associated with instance {OTHER}."
    assert nodes.patch("n1", {"op": "remove", "path": "/instance_uuid"}).status == 200
    assert nodes.patch("n1", take).document["instance_uuid"] == UUID


def test_a_patch_changes_the_fields_it_names(nodes: Caller) -> None:
    nodes.enrol("n1", "CUSTOM_A", extra={"a": 1}, resource_class="gold")
    answer = nodes.patch(
        "n1",
        {"op": "test", "path": "/extra/a", "value": 1},
        {"op": "replace", "path": "/name", "value": "n2"},
        {"op": "add", "path": "/instance_info/traits", "value": ["CUSTOM_X"]},
        {"op": "copy", "from": "/extra/a", "path": "/extra/b"},
        {"op": "move", "from": "/extra/a", "path": "/properties/c"},
        {"op": "remove", "path": "/resource_class"},
        {"op": "add", "path": "/deploy_interface", "value": "direct"},
        {"op": "add", "path": "/instance_uuid", "value": UUID.upper()},
        {"op": "add", "path": "/maintenance", "value": True},
    )
    assert answer.status == 200
    node = answer.document
    assert node == nodes.get("/v1/nodes/n2")
    assert node["instance_info"] == {"traits": ["CUSTOM_X"]}
    assert (node["extra"], node["properties"]) == ({"b": 1}, {"c": 1})
    assert (node["resource_class"], node["instance_uuid"]) == (None, UUID)
    assert (node["deploy_interface"], node["maintenance"]) == ("direct", True)
    assert (node["traits"], node["updated_at"] is None) == (["CUSTOM_A"], False)
    nodes.patch("n2", {"op": "remove", "path": "/deploy_interface"})
    nodes.patch("n2", {"op": "remove", "path": "/instance_uuid"})
    node = nodes.get("/v1/nodes/n2")
    assert (node["deploy_interface"], node["instance_uuid"]) == ("fake", None)


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        ({"op": "add", "path": "/traits", "value": []}, "Cannot patch /traits. "),
        ({"op": "add", "path": "/traits/-", "value": "A"}, "Cannot patch /traits. "),
        (
            {"op": "copy", "path": "/extra/a", "from": "/traits"},
            "Cannot patch /traits. ",
        ),
        ({"op": "replace", "path": "/uuid", "value": UUID}, "Cannot patch /uuid. "),
        (
            {"op": "replace", "path": "/provision_state", "value": "active"},
            "Cannot patch /provision_state. ",
        ),
        (
            {"op": "add", "path": "/power_state", "value": "x"},
            "Cannot patch /power_state",
        ),
        ({"op": "add", "path": "/cow", "value": 1}, "Cannot patch /cow. "),
        ({"op": "add", "path": "/", "value": 1}, "Cannot patch /. "),
        ({"op": "remove", "path": "/links"}, "Cannot patch /links. "),
        ({"op": "replace", "path": "", "value": {}}, "does not match"),
        ({"op": "replace", "path": "extra", "value": {}}, "does not match"),
        ({"op": "grow", "path": "/extra"}, "is not one of"),
        ({"op": "add", "path": "/extra/a"}, "Couldn't apply patch"),
        ({"op": "remove", "path": "/extra/none"}, "Couldn't apply patch"),
        ({"op": "replace", "path": "/extra/a/b", "value": 1}, "Couldn't apply patch"),
        ({"op": "test", "path": "/name", "value": "n2"}, "Couldn't apply patch"),
        ({"op": "copy", "path": "/extra/a"}, "Couldn't apply patch"),
        ({"op": "add", "path": "/name/0", "value": "n"}, "Couldn't apply patch"),
        ({"op": "add", "path": "/extra/~2", "value": 1}, "Couldn't apply patch"),
        ({"op": "remove", "path": "/driver"}, "'driver' is a required property"),
        (
            {"op": "add", "path": "/driver", "value": "none"},
            "There is no driver 'none'",
        ),
        ({"op": "add", "path": "/extra", "value": 1}, "is not of type"),
        ({"op": "add", "path": "/maintenance", "value": "yes"}, "is not of type"),
        ({"path": "/extra"}, "'op' is a required property"),
        (1, "is not of type 'object'"),
    ],
)
def test_a_bad_patch_changes_nothing(nodes: Caller, operation: Any, fault: str) -> None:
    nodes.enrol("n1", "CUSTOM_A", extra={"b": 1})
    before = nodes.get("/v1/nodes/n1")
    good = {"op": "add", "path": "/extra/good", "value": 1}
    answer = nodes.patch("n1", good, operation)
    assert answer.status == 400
    assert fault in answer.fault
    assert nodes.get("/v1/nodes/n1") == before


def test_a_patch_is_a_list(nodes: Caller) -> None:
    nodes.enrol("n1")
    body = {"op": "add", "path": "/extra/a", "value": 1}
    answer = nodes.call("PATCH", "/v1/nodes/n1", body)
    assert (answer.status, "is not of type 'array'" in answer.fault) == (400, True)
    before = nodes.get("/v1/nodes/n1")
    assert nodes.patch("n1").document == before


def test_a_patch_cannot_make_a_node_too_large(nodes: Caller) -> None:
    nodes.enrol("n1", extra={"a": "x" * 1000})
    double = [
        {"op": "copy", "from": "/extra", "path": f"/extra/{name}"} for name in "bc"
    ]
    answer = nodes.patch("n1", *double * 20)
    assert (answer.status, "The node is too" in answer.fault) == (400, True)
    large = {"op": "add", "path": "/extra/b", "value": "x" * (1 << 20)}
    answer = nodes.patch("n1", large)
    assert (answer.status, "The node is too large" in answer.fault) == (400, True)
    nodes.change("n1", extra={"a": [1]})
    end = {"op": "copy", "from": "/extra/a/-", "path": "/extra/b"}
    assert nodes.patch("n1", end).status == 400
    deep = {"op": "move", "from": "/extra", "path": "/properties/a"}
    deeper: list[dict[str, Any]] = [
        {"op": "add", "path": "/extra", "value": {}},
        {"op": "copy", "from": "/properties", "path": "/extra/a"},
        {"op": "copy", "from": "/extra", "path": "/properties"},
    ]
    for _ in range(100):
        answer = nodes.patch("n1", *deeper)
    assert (answer.status, "too deep" in answer.fault) == (400, True)
    assert nodes.patch("n1", deep).status == 400
    nested = "/extra"
    lower = []
    for _ in range(900):
        lower.append({"op": "add", "path": nested, "value": {"a": {}}})
        nested += "/a"
    for patch in (lower, [*lower, {"op": "copy", "from": "/extra", "path": "/extra"}]):
        answer = nodes.patch("n1", *patch)
        assert (answer.status, "too deep" in answer.fault) == (400, True)
    assert nodes.patch("n1", *[{"op": "remove", "path": "/extra"}] * 1001).status == 400


def test_the_end_of_maintenance_ends_its_reason(nodes: Caller) -> None:
    nodes.enrol("n1")
    nodes.call("PUT", "/v1/nodes/n1/maintenance", {"reason": "smoke"})
    assert nodes.get("/v1/nodes/n1")["maintenance_reason"] == "smoke"
    nodes.change("n1", maintenance=False)
    assert nodes.get("/v1/nodes/n1")["maintenance_reason"] is None


def test_a_node_is_removed_with_its_traits(nodes: Caller) -> None:
    nodes.enrol("n1", "CUSTOM_A", uuid=UUID)
    nodes.enrol("n2", "CUSTOM_A")
    assert nodes.call("DELETE", "/v1/nodes/n1").status == 204
    for method in ("GET", "DELETE", "PATCH"):
        answer = nodes.call(
            method, f"/v1/nodes/{UUID}", [] if method == "PATCH" else None
        )
        assert (answer.status, answer.fault) == (
            404,
            f"Node {UUID} could not be found.",
        )
    nodes.enrol("n1", uuid=UUID)
    assert nodes.traits("n1") == []
    assert nodes.names("traits=CUSTOM_A") == ["n2"]


def test_a_node_in_use_is_removed_in_maintenance_only(nodes: Caller) -> None:
    uuid = nodes.enrol("n1")
    nodes.provision("n1", "manage", "provide", "active")
    answer = nodes.call("DELETE", "/v1/nodes/n1")
    assert (answer.status, uuid in answer.fault) == (409, True)
    assert nodes.names() == ["n1"]
    nodes.call("PUT", "/v1/nodes/n1/maintenance")
    assert nodes.call("DELETE", "/v1/nodes/n1").status == 204


@pytest.mark.parametrize("targets", [(), ("manage",), ("manage", "provide")])
def test_a_node_that_is_not_in_use_is_removed(
    nodes: Caller, targets: tuple[str, ...]
) -> None:
    nodes.enrol("n1")
    nodes.provision("n1", *targets)
    assert nodes.call("DELETE", "/v1/nodes/n1").status == 204


def test_the_root_lists_the_versions(nodes: Caller) -> None:
    document = nodes.call("GET", "/", version=None).document
    version = {
        "id": "v1",
        "links": [{"href": "http://localhost/v1/", "rel": "self"}],
        "status": "CURRENT",
        "min_version": "1.1",
        "version": "1.37",
    }
    assert document["default_version"] == version
    assert document["versions"] == [version]
    assert {"name", "description"} < set(document)
    for path in ("/v1", "/v1/"):
        document = nodes.call("GET", path, version=None).document
        assert (document["id"], document["version"]) == ("v1", version)
        assert document["nodes"] == [
            {"href": "http://localhost/v1/nodes/", "rel": "self"},
            {"href": "http://localhost/nodes/", "rel": "bookmark"},
        ]
        assert {"links", "media_types", "drivers"} < set(document)


def test_drivers_are_those_of_the_configuration(nodes_database: Database) -> None:
    config = options.make_config({("nodes", "drivers"): ["ipmi", "redfish"]})
    nodes = Caller(app.build(config, nodes_database))
    drivers = nodes.get("/v1/drivers")["drivers"]
    assert [driver["name"] for driver in drivers] == ["ipmi", "redfish"]
    assert {driver["type"] for driver in drivers} == {"dynamic"}
    assert all(driver["hosts"] and driver["links"] for driver in drivers)
    assert nodes.call("POST", "/v1/nodes", {"driver": DRIVER}).status == 400
    assert nodes.call("POST", "/v1/nodes", {"driver": "ipmi"}).status == 201


def test_links_follow_the_request_or_the_public_endpoint(
    nodes: Caller, nodes_database: Database
) -> None:
    uuid = nodes.enrol("n1")
    answer = nodes.call("GET", "/v1/nodes/n1", headers={"Host": "metal:1"})
    assert answer.document["links"][0]["href"] == f"http://metal:1/v1/nodes/{uuid}"
    public = {("api", "public_endpoint"): "https://cloud.example/metal/"}
    nodes = Caller(app.build(options.make_config(public), nodes_database))
    href = f"https://cloud.example/metal/v1/nodes/{uuid}"
    assert nodes.get("/v1/nodes/n1")["links"][0]["href"] == href
    answer = nodes.call("PUT", "/v1/nodes/n1/traits/CUSTOM_A")
    assert answer.headers["Location"].startswith("https://cloud.example/metal/v1/")
    nodes.enrol("n2")
    link = nodes.get("/v1/nodes?limit=1")["next"]
    assert link.startswith("https://cloud.example/metal/v1/nodes?limit=1&marker=")


def test_unknown_nodes_are_not_found(nodes: Caller) -> None:
    for path in (
        "/v2",
        "/v1/cows",
        "/v1/nodes/n1/cows",
        "/nodes",
        "/v1/nodes/n1/states/x",
    ):
        answer = nodes.call("GET", path)
        assert (answer.status, answer.fault) == (
            404,
            "The resource could not be found.",
        )
    answer = nodes.call("PUT", "/v1/nodes", {})
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST")
    assert nodes.call("GET", "/v1/nodes/n1?cow=1").status == 404
    nodes.enrol("n1")
    answer = nodes.call("GET", "/v1/nodes/n1?cow=1")
    assert (answer.status, answer.fault) == (400, "Unexpected arguments: cow")
