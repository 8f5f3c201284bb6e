"""Whatever a caller sends, the answer is never a failure of the service."""

import json
from typing import TYPE_CHECKING, Any
from urllib import parse

import webob
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_nodes.objects import node_filter
from placement_nodes.routes import ROUTES
from placement_nodes.schemas import field
from tests.nodes.caller import Caller
from tests.property.test_any_request import JUNK, NUMBERS, TEXTS, VALUES

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

NODE = "8d2ac8d2-4bc8-4d57-8d9b-3ea6a6f2b001"
OTHER = "8d2ac8d2-4bc8-4d57-8d9b-3ea6a6f2b002"

UUIDS = st.sampled_from([NODE, NODE.upper(), OTHER, f"urn:uuid:{NODE}", "-" * 36, ""])
TRAITS = st.one_of(
    st.sampled_from(["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_VMX", "CUSTOM_", "custom_a"]),
    TEXTS,
)
TARGETS = st.one_of(
    st.sampled_from(
        ["manage", "provide", "active", "deleted", "power on", "rebooting"]
    ),
    VALUES,
)
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "uuid": UUIDS,
    "name": st.one_of(st.sampled_from(["n1", "n2", "n3"]), VALUES),
    "resource_class": VALUES,
    "instance_info": st.one_of(
        st.fixed_dictionaries(
            {"traits": st.one_of(st.lists(TRAITS, max_size=2), JUNK)}
        ),
        JUNK,
    ),
    "extra": JUNK,
    "properties": st.dictionaries(TEXTS, JUNK, max_size=2),
    "instance_uuid": st.one_of(UUIDS, VALUES),
    "chassis_uuid": st.one_of(UUIDS, VALUES),
    "maintenance": st.one_of(st.booleans(), VALUES),
    "deploy_interface": VALUES,
    "traits": st.lists(TRAITS, max_size=2),
}
NODES = st.fixed_dictionaries(
    {"driver": st.one_of(st.just("fake-hardware"), VALUES)}, optional=MEMBERS
)
POINTERS = st.one_of(
    st.sampled_from([f"/{name}" for name in field.ALL_FIELDS]),
    st.lists(
        st.one_of(
            st.sampled_from(["extra", "instance_info", "a", "0", "-", "~0"]), TEXTS
        ),
        max_size=4,
    ).map(lambda parts: "".join(f"/{part}" for part in parts)),
)
OPERATIONS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
        "path": POINTERS,
    },
    optional={"from": POINTERS, "value": JUNK},
)
BODIES = {
    "/v1/nodes": NODES,
    "/v1/nodes/{ident}": st.lists(OPERATIONS, max_size=4),
    "/v1/nodes/{ident}/states/provision": st.fixed_dictionaries({"target": TARGETS}),
    "/v1/nodes/{ident}/states/power": st.fixed_dictionaries(
        {"target": TARGETS}, optional={"timeout": NUMBERS}
    ),
    "/v1/nodes/{ident}/maintenance": st.fixed_dictionaries({"reason": VALUES}),
    "/v1/nodes/{ident}/traits": st.fixed_dictionaries(
        {"traits": st.lists(TRAITS, max_size=3)}
    ),
    "/v1/nodes/{ident}/traits/{trait}": st.just({}),
}
PARAMETERS = st.sampled_from(
    [
        *("fields", "limit", "marker", "sort_key", "sort_dir", "maintenance", "driver"),
        *("associated", "instance_uuid", "provision_state", "resource_class"),
        *("traits", "not-traits", "traits-any", "not-traits-any"),
    ]
)
QUERY_VALUES = st.one_of(
    st.sampled_from(
        [
            *("1", "0", "true", "desc", "CUSTOM_A", "CUSTOM_A,CUSTOM_B", NODE, OTHER),
            *("uuid,name", "uuid,traits", "9" * 30, *node_filter.SORT_KEYS),
        ]
    ),
    TEXTS,
)
QUERIES = st.one_of(
    st.lists(st.tuples(PARAMETERS, QUERY_VALUES), max_size=4).map(parse.urlencode),
    st.just("name=%ff"),
)
VERSIONS = st.one_of(
    st.just("1.37"), st.integers(1, 37).map(lambda minor: f"1.{minor}"), TEXTS
)


@st.composite
def requests(draw: st.DrawFn) -> webob.Request:
    """Draw a request that resembles those of clients."""
    path = draw(st.sampled_from(list(ROUTES)))
    method = draw(st.sampled_from(list(ROUTES[path])))
    ident = draw(st.one_of(st.sampled_from([NODE, "n1"]), TEXTS)) or "x"
    trait = draw(TRAITS) or "x"
    target = path.replace("{ident}", parse.quote(ident, safe=""))
    target = target.replace("{trait}", parse.quote(trait, safe=""))
    request = webob.Request.blank(target, method=method)
    request.query_string = draw(QUERIES)
    version = draw(VERSIONS)
    if version.isprintable() and version.isascii():
        request.headers["openstack-api-version"] = f"baremetal {version}"
    if method in ("PUT", "POST", "PATCH"):
        request.content_type = "application/json"
        document = draw(st.one_of(BODIES.get(path, JUNK), JUNK))
        request.body = json.dumps(document).encode()
    return request


def prepare(application: "WSGIApplication") -> None:
    """Create a node to ask about, if it does not exist."""
    nodes = Caller(application)
    body = {"driver": "fake-hardware", "uuid": NODE, "name": "n1"}
    nodes.call("POST", "/v1/nodes", body)
    nodes.call("PUT", f"/v1/nodes/{NODE}/traits/CUSTOM_A")


@settings(max_examples=150)
@given(asked=st.lists(requests(), min_size=1, max_size=4))
def test_nothing_a_caller_sends_is_a_failure_of_ours(
    nodes_application: "WSGIApplication", asked: list[webob.Request]
) -> None:
    prepare(nodes_application)
    for request in asked:
        response = request.get_response(nodes_application)
        assert response.status_int < 500, (request, response.text)
        assert response.headers["X-OpenStack-Ironic-API-Minimum-Version"] == "1.1"
        if response.status_int >= 400:
            told = json.loads(json.loads(response.body)["error_message"])
            assert told["faultstring"]
