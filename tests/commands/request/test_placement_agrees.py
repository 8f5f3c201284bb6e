"""Random flavors and images: Placement parses what was meant, and refuses the same."""

from typing import TYPE_CHECKING

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from placement.schemas import query as wire
from placement_clients.request import rule
from placement_clients.request.errors import BadInput
from placement_clients.request.flavor import Flavor
from placement_clients.request.image import Image
from placement_clients.request.request import Group, Rule, build
from placement_foundation.http import query_string
from placement_foundation.http.version import Version
from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

TRAITS = ["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_AVX2", "HW_NIC_OFFLOAD_GENEVE"]
CLASSES = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF", "CUSTOM_FPGA"]
AGGREGATES = [f"6f2a1f0e-7f5e-4c19-8a51-3a4c9a6f9d0{number}" for number in (1, 2)]
SUFFIXES = st.one_of(
    st.sampled_from(["", "", "1", "2", "_a-B"]),
    st.text("abyzAZ019_-", min_size=1, max_size=64),
)
AMOUNTS = st.sampled_from(["0", "1", "2", "17", "007"])

resource_specs = st.dictionaries(
    st.builds("resources{}:{}".format, SUFFIXES, st.sampled_from(CLASSES)),
    AMOUNTS,
    max_size=4,
)
trait_specs = st.dictionaries(
    st.builds("trait{}:{}".format, SUFFIXES, st.sampled_from(TRAITS)),
    st.sampled_from(["required", "forbidden"]),
    max_size=3,
)
policies = st.dictionaries(
    st.just("group_policy"), st.sampled_from(["none", "isolate"]), max_size=1
)
extra_specs = st.builds(
    lambda *parts: {key: value for part in parts for key, value in part.items()},
    resource_specs,
    trait_specs,
    policies,
)
sizes = st.sampled_from([0, 1, 512, 1500])
flavors = st.builds(
    Flavor, sizes, sizes, sizes, sizes, swap_mb=sizes, extra_specs=extra_specs
)
images = st.none() | st.builds(
    Image,
    st.dictionaries(
        st.sampled_from([f"trait:{name}" for name in TRAITS] + ["trait1:CUSTOM_A"]),
        st.sampled_from(["required", "forbidden", "Required"]),
        max_size=3,
    ),
)
rules = st.lists(
    st.sampled_from(
        [
            rule.without_disabled_hosts,
            rule.isolated_aggregates({name: {"CUSTOM_A"} for name in AGGREGATES}),
            rule.within_aggregates(AGGREGATES),
            rule.outside_free_pool(AGGREGATES[0]),
        ]
    ),
    unique=True,
    max_size=2,
)


@pytest.fixture
def knowing(application: "WSGIApplication") -> Client:
    """Give an application with the custom traits and classes."""
    client = Client(application)
    for name in ("CUSTOM_A", "CUSTOM_B"):
        client.call("PUT", f"/traits/{name}")
    client.call("PUT", "/resource_classes/CUSTOM_FPGA")
    return client


@settings(max_examples=100)
@given(flavors, images, st.booleans(), st.none() | st.integers(1, 2000))
def test_placement_parses_the_groups_that_were_meant(
    flavor: Flavor, image: Image | None, volume_backed: bool, limit: int | None
) -> None:
    request = build(flavor, image, volume_backed=volume_backed, limit=limit)
    if request.problems:
        return
    event("read")
    parse = wire.CANDIDATES.at(Version(1, 36))
    assert parse
    question = parse(query_string.decode(request.query))
    assert question.limit == limit
    assert question.request.isolate == (request.group_policy == "isolate")
    read = {
        group.suffix: Group(
            group.resources, frozenset().union(*group.required), group.forbidden
        )
        for group in question.request.groups
    }
    assert read == request.groups


@settings(max_examples=100)
@given(flavor=flavors, image=images, added=rules)
def test_placement_refuses_exactly_what_we_refuse(
    knowing: Client,
    flavor: Flavor,
    image: Image | None,
    added: list[Rule],
) -> None:
    request = build(flavor, image, rules=added)
    assert not request.warnings
    path = f"/allocation_candidates?{request.query}"
    answer = knowing.call("GET", path, version="1.36")
    event(str(answer.status))
    assert answer.status == (400 if request.problems else 200), answer
    if request.problems:
        with pytest.raises(BadInput) as caught:
            build(flavor, image, rules=added, strict=True)
        assert caught.value.problems == request.problems
    else:
        assert build(flavor, image, rules=added, strict=True) == request
