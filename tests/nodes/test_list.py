"""Lists of nodes: filtered, sorted, in pages, with some fields or all."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.nodes.caller import Caller

INSTANCE = "5d1fe3b0-6c5c-4a58-b4a6-2b1f7f1c3a01"
CLASSIC = [
    "uuid",
    "name",
    "instance_uuid",
    "maintenance",
    "power_state",
    "provision_state",
    "links",
]


@pytest.fixture
def painted(nodes: Caller) -> Caller:
    """Enrol three nodes with colours, and one without any trait."""
    nodes.enrol("n1", "CUSTOM_RED", "CUSTOM_FOO")
    nodes.enrol("n2", "CUSTOM_RED", "CUSTOM_BLUE")
    nodes.enrol("n3", "CUSTOM_FOO")
    nodes.enrol("n4")
    return nodes


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("traits=CUSTOM_RED,CUSTOM_BLUE", ["n2"]),
        ("traits=CUSTOM_RED", ["n1", "n2"]),
        ("traits=CUSTOM_RED,CUSTOM_RED", ["n1", "n2"]),
        ("not-traits=CUSTOM_RED,CUSTOM_BLUE&traits=CUSTOM_FOO", ["n1", "n3"]),
        ("not-traits=CUSTOM_RED,CUSTOM_BLUE", ["n1", "n3", "n4"]),
        ("traits-any=CUSTOM_RED,CUSTOM_BLUE", ["n1", "n2"]),
        ("not-traits-any=CUSTOM_RED,CUSTOM_BLUE", ["n3", "n4"]),
        ("traits-any=CUSTOM_RED&not-traits-any=CUSTOM_BLUE", ["n1"]),
        ("traits=CUSTOM_NONE", []),
        ("traits-any=CUSTOM_NONE", []),
        ("not-traits=CUSTOM_NONE", ["n1", "n2", "n3", "n4"]),
        ("not-traits-any=CUSTOM_NONE,HW_CPU_X86_VMX", ["n1", "n2", "n3", "n4"]),
    ],
)
def test_traits_filter_every_kind_of_list(
    painted: Caller, query: str, names: list[str]
) -> None:
    assert painted.names(query) == names
    assert painted.names(f"fields=name&{query}") == names
    detail = painted.get(f"/v1/nodes/detail?{query}")["nodes"]
    assert [node["name"] for node in detail] == names


@pytest.mark.parametrize(
    "name", ["traits", "not-traits", "traits-any", "not-traits-any"]
)
def test_a_filter_by_an_invalid_trait_is_refused(nodes: Caller, name: str) -> None:
    for value in (
        "",
        "custom_bad",
        "CUSTOM_A,",
        "CUSTOM_A, CUSTOM_B",
        "%00",
        "%F0%9F%98%80",
    ):
        answer = nodes.call("GET", f"/v1/nodes?{name}={value}")
        assert answer.status == 400
        assert "is not valid" in answer.fault


def test_links_to_the_next_page_keep_the_query(painted: Caller) -> None:
    for path, more in [("/v1/nodes", "&fields=name"), ("/v1/nodes/detail", "")]:
        query = f"not-traits-any=CUSTOM_BLUE&limit=1&sort_key=name&sort_dir=desc{more}"
        found, link = [], f"{path}?{query}"
        while link:
            document = painted.get(link)
            found += [node["name"] for node in document["nodes"]]
            assert len(document["nodes"]) == 1
            link = document.get("next", "")
            assert not link or urlsplit(link).path == path
            link = link.removeprefix("http://localhost")
        assert found == ["n4", "n3", "n1"]


def test_there_is_no_link_when_nothing_follows(painted: Caller) -> None:
    assert "next" not in painted.get("/v1/nodes?limit=4")
    assert "next" in painted.get("/v1/nodes?limit=3")


@pytest.mark.parametrize(
    "key",
    ["uuid", "name", "resource_class", "maintenance", "created_at", "updated_at", "id"],
)
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_pages_make_up_the_whole_list(nodes: Caller, key: str, direction: str) -> None:
    nodes.enrol("b", resource_class="gold", maintenance=True)
    nodes.enrol("A")
    nodes.enrol("a", resource_class="Gold")
    nodes.enrol("c", "CUSTOM_A", resource_class="gold")
    nodes.call("POST", "/v1/nodes", {"driver": "fake-hardware"})
    query = f"sort_key={key}&sort_dir={direction}&fields=uuid,{key}"
    if key == "id":
        query = f"sort_dir={direction}&fields=uuid"
    whole = nodes.get(f"/v1/nodes?{query}")["nodes"]
    assert len(whole) == 5
    if key != "id":
        # Nodes without a value come first; letters are sorted by their codes.
        values = [(node[key] is not None, str(node[key] or "")) for node in whole]
        assert values == sorted(values, reverse=direction == "desc")
    pages: list[Any] = []
    marker = ""
    while len(pages) < 5:
        page = nodes.get(f"/v1/nodes?{query}&limit=2{marker}")["nodes"]
        pages += page
        marker = f"&marker={page[-1]['uuid']}"
    assert pages == whole


def test_a_short_list_has_few_fields(painted: Caller) -> None:
    node = painted.get("/v1/nodes/")["nodes"][0]
    assert list(node) == CLASSIC
    node = painted.get("/v1/nodes?fields=traits,name,name")["nodes"][0]
    assert list(node) == ["traits", "name", "links"]
    assert node["traits"] == ["CUSTOM_FOO", "CUSTOM_RED"]


def test_a_detailed_list_has_whole_nodes(painted: Caller) -> None:
    node = painted.get("/v1/nodes/detail")["nodes"][0]
    assert node == painted.get("/v1/nodes/n1")
    assert node["traits"] == ["CUSTOM_FOO", "CUSTOM_RED"]


def test_other_filters(nodes: Caller) -> None:
    nodes.enrol("n1", resource_class="gold", instance_uuid=INSTANCE)
    nodes.enrol("n2", maintenance=True)
    nodes.enrol("n3")
    nodes.provision("n3", "manage")
    for query, names in [
        (f"instance_uuid={INSTANCE.upper()}", ["n1"]),
        (f"instance_uuid={INSTANCE[:-1]}2", []),
        ("associated=true", ["n1"]),
        ("associated=0", ["n2", "n3"]),
        ("maintenance=True", ["n2"]),
        ("maintenance=false", ["n1", "n3"]),
        ("provision_state=manageable", ["n3"]),
        ("provision_state=flying", []),
        ("driver=fake-hardware", ["n1", "n2", "n3"]),
        ("driver=Fake-hardware", []),
        ("resource_class=gold", ["n1"]),
        ("resource_class=GOLD", []),
        ("resource_class=gold&associated=no", []),
    ]:
        assert nodes.names(query) == names, query


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("x=1", "Unexpected arguments: x"),
        ("x=1&b=2", "Unexpected arguments: b, x"),
        ("limit=0", "Limit must be positive"),
        ("limit=-1", "Limit must be positive"),
        ("limit=one", "Limit must be positive"),
        ("limit=", "Limit must be positive"),
        ("limit=1.5", "Limit must be positive"),
        ("limit=%C2%B2", "Limit must be positive"),
        ("maintenance=maybe", "Invalid value for maintenance"),
        ("associated=", "Invalid value for associated"),
        ("instance_uuid=1", "Invalid value for instance_uuid"),
        ("marker=1", "Invalid value for marker"),
        (f"marker={INSTANCE}", "could not be found"),
        ("sort_key=properties", 'The sort_key value "properties" is an invalid field'),
        ("sort_key=traits", 'The sort_key value "traits" is an invalid field'),
        ("sort_key=cow", 'The sort_key value "cow" is an invalid field'),
        ("sort_dir=up", "Invalid sort direction: up"),
        ("fields=uuid,cow", 'Field(s) "cow" are not valid'),
        ("fields=", 'Field(s) "" are not valid'),
        ("limit=1&limit=2", "Given more than once: limit"),
        ("name=%ff", "Invalid query string parameters"),
    ],
)
def test_a_bad_query_is_refused(nodes: Caller, query: str, fault: str) -> None:
    answer = nodes.call("GET", f"/v1/nodes?{query}")
    assert answer.status == 400
    assert fault in answer.fault
    if not query.startswith("fields"):
        assert nodes.call("GET", f"/v1/nodes/detail?{query}").status == 400


def test_a_detailed_list_has_all_fields_or_none(nodes: Caller) -> None:
    answer = nodes.call("GET", "/v1/nodes/detail?fields=uuid")
    assert (answer.status, answer.fault) == (400, "Unexpected arguments: fields")


def test_a_page_has_1000_nodes_at_most(nodes: Caller) -> None:
    for limit in ("1000", "1001", "9" * 30, "9" * 5000, "0" * 5000 + "1"):
        assert nodes.get(f"/v1/nodes?limit={limit}") == {"nodes": []}
