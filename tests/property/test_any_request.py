"""Whatever a caller sends, the answer is never a failure of ours."""

import json
from typing import TYPE_CHECKING, Any
from urllib import parse

import webob
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.microversion import MAXIMUM, MINIMUM
from placement.routes import ROUTES
from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

PROVIDER = "8d2ac8d2-4bc8-4d57-8d9b-3ea6a6f2b001"
OTHER = "8d2ac8d2-4bc8-4d57-8d9b-3ea6a6f2b002"
CONSUMER = "3f5b7d1c-6f8e-4c53-9c70-2a9d3c1f7e10"

WORDS = st.sampled_from(
    [
        PROVIDER,
        OTHER,
        CONSUMER,
        PROVIDER.upper(),
        PROVIDER.replace("-", ""),
        f"urn:uuid:{PROVIDER}",
        "-" * 36,
        "VCPU",
        "vcpu",
        "CUSTOM_A",
        "CUSTOM_B\n",
        "CUSTOM_" + "A" * 300,
        "HW_CPU_X86_AVX2",
        "unknown",
        "",
        " ",
        "\x00",
        "a\x00b",
        "\u2603",
        "\U0001f600",
        "\ud7ff",
        "%",
        "_",
        "'",
        '"',
        "\\",
        "<b>",
        "{uuid}",
        "in:",
        "!",
        "x" * 2000,
    ]
)
TEXTS = st.one_of(WORDS, st.text(max_size=12))
NUMBERS = st.one_of(
    st.sampled_from([0, 1, -1, 2**31 - 1, 2**31, 2**63, 10**30, 0.5, 1e308, -1e308]),
    st.integers(-3, 12),
)
VALUES = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
JUNK = st.recursive(
    VALUES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)
    ),
    max_leaves=6,
)
CLASSES = st.sampled_from(["VCPU", "MEMORY_MB", "CUSTOM_A", "CUSTOM_NO", "vcpu"])
RECORDS = st.fixed_dictionaries(
    {"total": NUMBERS},
    optional=dict.fromkeys(
        ("reserved", "min_unit", "max_unit", "step_size", "allocation_ratio"), NUMBERS
    ),
)
GENERATIONS = st.one_of(st.integers(0, 4), NUMBERS)
INVENTORIES = st.fixed_dictionaries(
    {
        "resource_provider_generation": GENERATIONS,
        "inventories": st.dictionaries(CLASSES, st.one_of(RECORDS, JUNK), max_size=3),
    }
)
RESOURCES = st.dictionaries(CLASSES, NUMBERS, min_size=1, max_size=2)
CONSUMERS = st.fixed_dictionaries(
    {
        "allocations": st.one_of(
            st.dictionaries(
                st.sampled_from([PROVIDER, OTHER, "-" * 36]),
                st.fixed_dictionaries({"resources": RESOURCES}),
                max_size=2,
            ),
            st.lists(
                st.fixed_dictionaries(
                    {
                        "resource_provider": st.fixed_dictionaries({"uuid": WORDS}),
                        "resources": RESOURCES,
                    }
                ),
                max_size=2,
            ),
        )
    },
    optional={
        "project_id": TEXTS,
        "user_id": TEXTS,
        "consumer_generation": st.one_of(st.none(), st.integers(0, 4)),
        "consumer_type": TEXTS,
        "mappings": JUNK,
    },
)
MANY = st.dictionaries(st.sampled_from([CONSUMER, OTHER]), CONSUMERS, max_size=2)
BODIES = {
    "/resource_classes": st.fixed_dictionaries({"name": TEXTS}),
    "/resource_classes/{name}": st.fixed_dictionaries({"name": TEXTS}),
    "/resource_providers": st.fixed_dictionaries(
        {"name": TEXTS}, optional={"uuid": WORDS, "parent_provider_uuid": WORDS}
    ),
    "/resource_providers/{uuid}": st.fixed_dictionaries(
        {"name": TEXTS}, optional={"parent_provider_uuid": st.one_of(WORDS, st.none())}
    ),
    "/resource_providers/{uuid}/inventories": st.one_of(
        INVENTORIES,
        st.builds(
            lambda record, name: {**record, "resource_class": name}, RECORDS, CLASSES
        ),
    ),
    "/resource_providers/{uuid}/inventories/{resource_class}": st.builds(
        lambda record, generation: {
            **record,
            "resource_provider_generation": generation,
        },
        RECORDS,
        GENERATIONS,
    ),
    "/resource_providers/{uuid}/aggregates": st.one_of(
        st.lists(WORDS, max_size=3),
        st.fixed_dictionaries(
            {
                "aggregates": st.lists(WORDS, max_size=3),
                "resource_provider_generation": GENERATIONS,
            }
        ),
    ),
    "/resource_providers/{uuid}/traits": st.fixed_dictionaries(
        {
            "traits": st.lists(TEXTS, max_size=3),
            "resource_provider_generation": GENERATIONS,
        }
    ),
    "/allocations": MANY,
    "/allocations/{consumer_uuid}": CONSUMERS,
    "/reshaper": st.fixed_dictionaries(
        {
            "inventories": st.dictionaries(
                st.sampled_from([PROVIDER, OTHER]), INVENTORIES, max_size=2
            ),
            "allocations": MANY,
        }
    ),
}
PARAMETERS = st.builds(
    lambda name, suffix: name + suffix,
    st.sampled_from(
        [
            "name",
            "uuid",
            "member_of",
            "resources",
            "in_tree",
            "required",
            "associated",
            "project_id",
            "user_id",
            "consumer_type",
            "limit",
            "group_policy",
            "root_required",
            "same_subtree",
        ]
    ),
    st.sampled_from(["", "", "", "1", "2", "_A", "0"]),
)
QUERY_VALUES = st.one_of(
    st.sampled_from(
        [
            "VCPU:1",
            "VCPU:1,MEMORY_MB:2",
            "VCPU:" + "9" * 30,
            "VCPU:1_0",
            "CUSTOM_NO:1",
            "HW_CPU_X86_AVX2,!CUSTOM_A",
            "in:HW_CPU_X86_AVX2,CUSTOM_A",
            "in:startswith:",
            "startswith:CUSTOM",
            f"!in:{PROVIDER},{OTHER}",
            f"in:{PROVIDER}",
            f"!{PROVIDER}",
            "_1,_2",
            "1,2",
            "isolate",
            "none",
            "1",
            "true",
            "all",
        ]
    ),
    TEXTS,
)
QUERIES = st.one_of(
    st.lists(st.tuples(PARAMETERS, QUERY_VALUES), max_size=5).map(parse.urlencode),
    st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=20).map(
        lambda text: text.replace("#", "")
    ),
    st.just("name=%ff"),
)
VERSIONS = st.one_of(
    st.just("latest"),
    st.integers(MINIMUM.minor, MAXIMUM.minor).map(lambda minor: f"1.{minor}"),
)


@st.composite
def requests(draw: st.DrawFn) -> webob.Request:
    """Draw a request that is more or less like those of clients."""
    path = draw(st.sampled_from(list(ROUTES)))
    method = draw(st.sampled_from(list(ROUTES[path])))
    target = path
    for parameter in ("uuid", "name", "resource_class", "consumer_uuid"):
        if f"{{{parameter}}}" in target:
            text = draw(st.one_of(st.just(PROVIDER), TEXTS)) or "x"
            target = target.replace(f"{{{parameter}}}", parse.quote(text, safe=""))
    request = webob.Request.blank(target, method=method)
    request.query_string = draw(QUERIES)
    request.headers["x-auth-token"] = "admin"
    request.headers["x-roles"] = "admin,service"
    request.headers["openstack-api-version"] = f"placement {draw(VERSIONS)}"
    if method in ("PUT", "POST"):
        request.content_type = "application/json"
        document = draw(st.one_of(BODIES.get(path, JUNK), JUNK))
        request.body = json.dumps(document).encode()
    return request


def prepare(application: "WSGIApplication") -> None:
    """Make something to ask about: two providers, one of them with all there is."""
    states: list[tuple[str, str, Any]] = [
        ("POST", "/resource_providers", {"name": "one", "uuid": PROVIDER}),
        ("POST", "/resource_providers", {"name": "two", "uuid": OTHER}),
        ("PUT", "/resource_classes/CUSTOM_A", None),
        ("PUT", "/traits/CUSTOM_A", None),
        (
            "PUT",
            f"/resource_providers/{PROVIDER}/inventories",
            {
                "resource_provider_generation": 0,
                "inventories": {"VCPU": {"total": 8}, "CUSTOM_A": {"total": 8}},
            },
        ),
    ]
    client = Client(application)
    for method, path, document in states:
        client.call(method, path, document)


@settings(max_examples=300)
@given(asked=st.lists(requests(), min_size=1, max_size=4))
def test_nothing_a_caller_sends_is_a_failure_of_ours(
    application: "WSGIApplication", asked: list[webob.Request]
) -> None:
    prepare(application)
    for request in asked:
        response = request.get_response(application)
        # As a server does: whatever a heavy answer occupies is given back.
        assert isinstance(response.body, bytes)
        assert response.status_int < 500, (request, response.text)
        if response.status_int >= 400:
            assert len(json.loads(response.body)["errors"]) == 1
