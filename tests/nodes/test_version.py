"""Versions: how a request names one, and what it changes."""

import json
from typing import Any

import pytest

from tests.nodes.caller import Answer, Caller

BOUNDS = {
    "X-OpenStack-Ironic-API-Minimum-Version": "1.1",
    "X-OpenStack-Ironic-API-Maximum-Version": "1.37",
}
SPOKEN = "X-OpenStack-Ironic-API-Version"


def bounds(answer: Answer) -> dict[str, Any]:
    return {name: answer.headers.get(name) for name in BOUNDS}


@pytest.mark.parametrize(
    ("headers", "spoken"),
    [
        ({}, "1.1"),
        ({"OpenStack-API-Version": "baremetal 1.20"}, "1.20"),
        ({"OpenStack-API-Version": "compute 2.1, baremetal 1.21"}, "1.21"),
        ({"OpenStack-API-Version": "baremetal latest"}, "1.37"),
        ({"OpenStack-API-Version": "compute 2.1"}, "1.1"),
        # As for Placement, an element without a number names no version.
        ({"OpenStack-API-Version": "baremetal"}, "1.1"),
        ({"OpenStack-API-Version": "baremetal 1.20, baremetal"}, "1.20"),
        (
            {
                "OpenStack-API-Version": "baremetal",
                "X-OpenStack-Ironic-API-Version": "1.9",
            },
            "1.9",
        ),
        ({"X-OpenStack-Ironic-API-Version": ""}, "1.1"),
        ({"X-OpenStack-Ironic-API-Version": "1.9"}, "1.9"),
        ({"X-OpenStack-Ironic-API-Version": "latest"}, "1.37"),
        (
            {
                "OpenStack-API-Version": "baremetal 1.30",
                "X-OpenStack-Ironic-API-Version": "1.9",
            },
            "1.30",
        ),
    ],
)
def test_an_answer_has_the_version_and_the_bounds(
    nodes: Caller, headers: dict[str, str], spoken: str
) -> None:
    for path in ("/", "/v1", "/v1/nodes", "/v1/nodes/none", "/v1/cow"):
        answer = nodes.call("GET", path, version=None, headers=headers)
        assert bounds(answer) == BOUNDS
        assert answer.headers[SPOKEN] == spoken


@pytest.mark.parametrize(
    "version", ["1.0", "1.38", "1.115", "2.1", "0.9", "1", "one", "1.x", "1.1.1"]
)
def test_another_version_is_not_acceptable(nodes: Caller, version: str) -> None:
    headers = ({SPOKEN: version}, {"OpenStack-API-Version": f"baremetal {version}"})
    for path in ("/", "/v1/", "/v1/nodes"):
        for header in headers:
            answer = nodes.call("GET", path, version=None, headers=header)
            assert answer.status == 406
            assert bounds(answer) == BOUNDS
            assert SPOKEN not in answer.headers
            told = json.loads(answer.document["error_message"])
            assert told["title"] == "Not Acceptable"
            assert "1.1 to 1.37" in told["faultstring"]


def test_names_identify_nodes_from_1_5_on(nodes: Caller) -> None:
    uuid = nodes.enrol("n1")
    assert nodes.call("GET", "/v1/nodes/n1", version="1.4").status == 404
    assert nodes.get("/v1/nodes/n1", version="1.5")["uuid"] == uuid
    assert nodes.get(f"/v1/nodes/{uuid}", version="1.1")["uuid"] == uuid


def test_the_resource_class_is_shown_from_1_21_on(nodes: Caller) -> None:
    uuid = nodes.enrol("n1", resource_class="gold")
    path = f"/v1/nodes/{uuid}"
    assert "resource_class" not in nodes.get(path, version="1.20")
    assert nodes.get(path, version="1.21")["resource_class"] == "gold"
    fields = "/v1/nodes?fields=resource_class"
    assert nodes.call("GET", fields, version="1.20").status == 406
    assert nodes.call("GET", fields, version="1.21").status == 200
    by_class = "/v1/nodes?resource_class=gold"
    assert nodes.call("GET", by_class, version="1.20").status == 400
    assert len(nodes.get(by_class, version="1.21")["nodes"]) == 1
    body = {"driver": "fake-hardware", "resource_class": "gold"}
    assert nodes.call("POST", "/v1/nodes", body, version="1.20").status == 400
    change = [{"op": "remove", "path": "/resource_class"}]
    assert nodes.call("PATCH", path, change, version="1.20").status == 400
    other = [{"op": "add", "path": "/extra/a", "value": 1}]
    assert nodes.call("PATCH", path, other, version="1.20").status == 200
    assert nodes.get(path)["resource_class"] == "gold"


def test_traits_are_hidden_below_1_37(nodes: Caller) -> None:
    uuid = nodes.enrol("n1", "CUSTOM_A")
    path = f"/v1/nodes/{uuid}"
    assert "traits" not in nodes.get(path, version="1.36")
    assert "traits" not in nodes.get("/v1/nodes/detail", version="1.36")["nodes"][0]
    for method, below in [
        ("GET", "/traits"),
        ("PUT", "/traits"),
        ("DELETE", "/traits"),
        ("PUT", "/traits/CUSTOM_B"),
        ("DELETE", "/traits/CUSTOM_A"),
    ]:
        answer = nodes.call(method, path + below, version="1.36")
        assert (answer.status, answer.fault) == (406, "Request not acceptable.")
    for query in ("/v1/nodes?fields=traits", f"{path}?fields=uuid,traits"):
        answer = nodes.call("GET", query, version="1.36")
        assert (answer.status, answer.fault) == (406, "Request not acceptable.")
    for name in ("traits", "not-traits", "traits-any", "not-traits-any"):
        answer = nodes.call("GET", f"/v1/nodes?{name}=CUSTOM_A", version="1.36")
        assert (answer.status, answer.fault) == (400, f"Unexpected arguments: {name}")
    assert nodes.traits("n1") == ["CUSTOM_A"]
