"""The request that is built from a flavor and an image."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest

from placement_clients.errors import BadRequest
from placement_clients.request import flavor, image, request, rule
from placement_clients.request.errors import BadInput
from placement_clients.request.flavor import Flavor
from placement_clients.request.image import Image
from placement_clients.request.request import build


def sized(text: str, **extra_specs: str) -> Flavor:
    """Return the flavor with vcpus/memory/root/ephemeral/swap."""
    vcpus, memory_mb, root_gb, ephemeral_gb, swap_mb = map(int, text.split("/"))
    return Flavor(vcpus, memory_mb, root_gb, ephemeral_gb, swap_mb, extra_specs)


def specs(text: str) -> dict[str, str]:
    """Return extra specs from a text of key=value items."""
    return dict(each.split("=") for each in text.split())


def lines(query: str) -> list[str]:
    return [unquote(each) for each in query.split("&")]


# The flavor, its extra specs, the image, and the query without its limit.
TABLE = [
    (
        "2/1024/10/5/1500",
        "trait:HW_CPU_X86_AVX2=required trait:CUSTOM_GPU=forbidden",
        "trait:CUSTOM_TRUSTED=required",
        "required=CUSTOM_TRUSTED,HW_CPU_X86_AVX2,!CUSTOM_GPU "
        "resources=DISK_GB:17,MEMORY_MB:1024,VCPU:2",
    ),
    (
        "2/1024/10/0/0 volume",
        "",
        "trait:CUSTOM_TRUSTED=required trait1:CUSTOM_X=required "
        "trait:CUSTOM_Y=forbidden trait:CUSTOM_Z=Required",
        "required=CUSTOM_TRUSTED resources=MEMORY_MB:1024,VCPU:2",
    ),
    (
        "2/1024/10/0/0",
        "resources1:SRIOV_NET_VF=1 trait1:HW_NIC_OFFLOAD_GENEVE=required "
        "resources2:SRIOV_NET_VF=2 trait2:CUSTOM_B=forbidden group_policy=isolate",
        None,
        "group_policy=isolate required1=HW_NIC_OFFLOAD_GENEVE required2=!CUSTOM_B "
        "resources=DISK_GB:10,MEMORY_MB:1024,VCPU:2 resources1=SRIOV_NET_VF:1 "
        "resources2=SRIOV_NET_VF:2",
    ),
    (
        "4/1024/10/0/0",
        "resources:CUSTOM_BAREMETAL_GOLD=1 resources:VCPU=0 resources:MEMORY_MB=0 "
        "resources:DISK_GB=0 trait:CUSTOM_RAID1=required",
        None,
        "required=CUSTOM_RAID1 resources=CUSTOM_BAREMETAL_GOLD:1",
    ),
    (
        "4/1024/0/0/0",
        "resources_a-B:VCPU=3 trait_a-B:CUSTOM_Q=required",
        None,
        "required_a-B=CUSTOM_Q resources=MEMORY_MB:1024 resources_a-B=VCPU:3",
    ),
    (
        "4/1024/0/0/0",
        "resources1:VCPU=1 resources2:VCPU=2",
        None,
        "resources=MEMORY_MB:1024 resources1=VCPU:1 resources2=VCPU:2",
    ),
    (
        "1/512/1/0/0",
        "trait:CUSTOM_A=required",
        "trait:CUSTOM_A=required",
        "required=CUSTOM_A resources=DISK_GB:1,MEMORY_MB:512,VCPU:1",
    ),
    (
        "1/512/1/0/0",
        "trait:CUSTOM_A=maybe resources:VCPU=x resources:NOPE=1 "
        "resources:MEMORY_MB=-1 group_policy=foo",
        None,
        "resources=DISK_GB:1,MEMORY_MB:512,VCPU:1",
    ),
]


@pytest.mark.parametrize(("size", "extra", "properties", "expected"), TABLE)
def test_the_query(
    size: str, extra: str, properties: str | None, expected: str
) -> None:
    size, _, volume = size.partition(" ")
    asked = build(
        sized(size, **specs(extra)),
        None if properties is None else Image(specs(properties)),
        volume_backed=bool(volume),
    )
    wanted = ["limit=1000", *expected.split()]
    assert lines(asked.query) == sorted(wanted, key=lambda each: each.split("="))
    assert all(character not in asked.query for character in ",:! +")


@pytest.mark.parametrize(
    ("size", "extra", "expected"),
    [
        ("2/1024/0/0/0", "resources:PCPU=2", "MEMORY_MB:1024,PCPU:2"),
        ("2/1024/0/0/0", "resources:VCPU=0", "MEMORY_MB:1024"),
        ("2/1024/9/0/0", "resources:DISK_GB=0", "MEMORY_MB:1024,VCPU:2"),
        ("2/1024/0/0/1", "", "DISK_GB:1,MEMORY_MB:1024,VCPU:2"),
        ("2/1024/0/0/1024", "", "DISK_GB:1,MEMORY_MB:1024,VCPU:2"),
        ("2/1024/0/0/1025", "", "DISK_GB:2,MEMORY_MB:1024,VCPU:2"),
        ("2/1024/0/0/0", "resources1:VCPU=0", "MEMORY_MB:1024"),
        ("2/1024/1/0/0", "hw:cpu_policy=dedicated", "DISK_GB:1,MEMORY_MB:1024,PCPU:2"),
        ("2/1024/0/0/0", "resources:VCPU=07", "MEMORY_MB:1024,VCPU:7"),
    ],
)
def test_implicit_amounts(size: str, extra: str, expected: str) -> None:
    asked = build(sized(size, **specs(extra)), limit=None)
    assert lines(asked.query) == [f"resources={expected}"]


@pytest.mark.parametrize(
    "key",
    [
        "Resources:VCPU",
        "resources VCPU",
        "xtrait:CUSTOM_A",
        "resources.1:VCPU",
        f"trait{'x' * 65}:CUSTOM_A",
        "quota:cpu_shares",
    ],
)
def test_other_keys_are_ignored(key: str) -> None:
    asked = build(sized("1/0/0/0/0", **{key: "required"}), strict=True)
    assert (asked.warnings, asked.specs) == ((), ())


# What has no effect, and why


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("resources:NOPE", "1", "'NOPE' is neither a standard nor a custom class"),
        ("resources:CUSTOM_a", "1", "'CUSTOM_a' is neither"),
        ("resources:", "1", "'' is neither"),
        ("resources:VCPU", "x", "not an integer of at least 0"),
        ("resources1:VCPU", "-1", "not an integer of at least 0"),
        ("resources:VCPU", "1.0", "not an integer of at least 0"),
        ("resources:VCPU", "", "not an integer of at least 0"),
        ("resources:VCPU", "²", "not an integer of at least 0"),
        ("trait:CUSTOM_A", "Required", "neither 'required' nor 'forbidden'"),
        ("trait2:CUSTOM_A", "", "neither 'required' nor 'forbidden'"),
        ("group_policy", "Isolate", "neither 'none' nor 'isolate'"),
    ],
)
def test_a_warning_names_key_and_value(key: str, value: str, complaint: str) -> None:
    written = sized("1/512/1/0/0", **{key: value})
    asked = build(written, limit=None)
    assert lines(asked.query) == ["resources=DISK_GB:1,MEMORY_MB:512,VCPU:1"]
    (warning,) = asked.warnings
    assert warning.startswith(f"flavor extra spec {key} = {value!r}: ")
    assert complaint in warning
    with pytest.raises(BadInput) as caught:
        build(written, strict=True)
    assert caught.value.problems == (warning,)


# What Placement would refuse


def refused(written: Flavor, properties: str = "", *rules: request.Rule) -> str:
    with pytest.raises(BadInput) as caught:
        build(written, Image(specs(properties)), rules=rules, strict=True)
    asked = build(written, Image(specs(properties)), rules=rules)
    assert caught.value.problems == asked.problems
    (problem,) = asked.problems
    return problem


def test_a_trait_may_be_forbidden_in_another_group() -> None:
    written = sized(
        "1/512/1/0/0", **specs("resources1:FPGA=1 trait1:CUSTOM_GPU=forbidden")
    )
    build(written, Image({"trait:CUSTOM_GPU": "required"}), strict=True)


@pytest.mark.parametrize("amount", ["", "resources1:FPGA=0"])
def test_a_trait_in_a_group_without_amounts(amount: str) -> None:
    written = sized("1/0/0/0/0", **specs(f"trait1:CUSTOM_A=required {amount}"))
    assert refused(written) == (
        "flavor extra spec trait1:CUSTOM_A: there is no amount of any resources1:…"
    )


def test_a_trait_of_an_image_where_all_amounts_have_a_suffix() -> None:
    written = sized("1/0/0/0/0", **specs("resources1:VCPU=1"))
    assert refused(written, "trait:CUSTOM_A=required") == (
        "image property trait:CUSTOM_A: there is no amount of any resources:…"
    )


def test_two_groups_without_a_policy() -> None:
    written = sized("1/0/0/0/0", **specs("resources1:FPGA=1 resources_b:FPGA=1"))
    problem = refused(written)
    assert "resources1:…, resources_b:…" in problem
    assert "group_policy" in problem


def test_nothing_asked_for() -> None:
    assert "it has no amounts" in refused(sized("0/0/0/0/0"))
    written = sized("0/0/0/0/0", **{"trait1:CUSTOM_A": "required"})
    assert "it has no amounts" in refused(written)


@pytest.mark.parametrize("name", ["", "A,B", "!A", "in:A", "A B", "A\nB"])
def test_a_name_that_would_be_misread(name: str) -> None:
    written = sized("1/0/0/0/0", **{f"trait:{name}": "required"})
    assert "cannot be the name of a trait" in refused(written)
    properties = {f"trait:{name}": "required"}
    with pytest.raises(BadInput, match="image property trait:"):
        build(sized("1/0/0/0/0"), Image(properties), strict=True)


def test_what_placement_refuses_is_traced_to_what_asks_for_it() -> None:
    asked = build(
        sized("1/0/0/0/0", **specs("trait:CUSTOM_A=required resources1:CUSTOM_C=1")),
        Image({"trait:CUSTOM_AB": "required"}),
    )
    refusal = request.refusal(
        asked, BadRequest("Sorry.\n\n No such trait(s): CUSTOM_AB.")
    )
    assert str(refusal) == (
        "image property trait:CUSTOM_AB: Placement refuses this: "
        "No such trait(s): CUSTOM_AB."
    )
    refusal = request.refusal(asked, BadRequest("No such resource class CUSTOM_C."))
    assert str(refusal).startswith("flavor extra spec resources1:CUSTOM_C: ")
    assert str(request.refusal(asked, BadRequest("odd"))) == (
        "Placement refuses this: odd"
    )


# What a deployment adds


def added(written: Flavor, *rules: request.Rule, properties: str = "") -> list[str]:
    asked = build(written, Image(specs(properties)), rules=rules, limit=None)
    plain = build(written, Image(specs(properties)), limit=None)
    return [each for each in lines(asked.query) if each not in lines(plain.query)]


SMALL = sized("1/0/0/0/0")


def test_isolated_aggregates_are_closed_unless_all_their_traits_are_required() -> None:
    isolated = rule.isolated_aggregates(
        {
            "b": {"CUSTOM_A"},
            "a": {"CUSTOM_A", "CUSTOM_B"},
            "c": {"CUSTOM_C"},
        }
    )
    assert added(SMALL, isolated) == ["member_of=!in:a,b,c"]
    properties = "trait:CUSTOM_A=required"
    assert added(SMALL, isolated, properties=properties) == ["member_of=!in:a,c"]
    all_of_them = sized(
        "1/0/0/0/0",
        **specs(
            "trait:CUSTOM_A=required resources1:FPGA=1 trait1:CUSTOM_B=required "
            "trait:CUSTOM_C=required"
        ),
    )
    assert added(all_of_them, isolated) == []


def test_the_free_pool_is_for_reservations() -> None:
    pool = rule.outside_free_pool("p")
    assert added(SMALL, pool) == ["member_of=!in:p"]
    reserved = sized("1/0/0/0/0", **{"resources:CUSTOM_RESERVATION_X": "1"})
    assert added(reserved, pool) == []
    given_up = sized("1/0/0/0/0", **{"resources:CUSTOM_RESERVATION_X": "0"})
    assert added(given_up, pool) == ["member_of=!in:p"]


def test_an_aggregate_needs_an_amount_without_suffix() -> None:
    written = sized("1/0/0/0/0", **{"resources1:VCPU": "1"})
    assert "a rule about aggregates" in refused(
        written, "", rule.outside_free_pool("p")
    )


# How flavors and images are written


def test_a_flavor_as_the_command_line_prints_it() -> None:
    document: dict[str, Any] = {"OS-FLV-EXT-DATA:ephemeral": 5, "disk": 10, "name": "m"}
    document |= {"properties": {"trait:CUSTOM_A": "required"}, "ram": 1024}
    document |= {"rxtx_factor": 1.0, "swap": 1500, "vcpus": 2, "description": None}
    expected = Flavor(2, 1024, 10, 5, 1500, {"trait:CUSTOM_A": "required"})
    assert flavor.parse(document) == expected


def test_a_flavor_as_a_plain_map_and_as_the_compute_api_answers() -> None:
    plain = {
        "vcpus": 2,
        "memory_mb": 1024,
        "root_gb": 10,
        "ephemeral_gb": 5,
        "swap": "",
        "extra_specs": {"a": "b", "resources:VCPU": 3, "c": True},
    }
    expected = Flavor(2, 1024, 10, 5, 0, {"a": "b", "resources:VCPU": "3", "c": "true"})
    assert flavor.parse(plain) == expected
    assert flavor.parse({"flavor": plain}) == expected
    least = {"vcpus": "2", "ram": "1024", "disk": 0}
    assert flavor.parse(least) == Flavor(2, 1024, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("k1='v1', k2='v2'", {"k1": "v1", "k2": "v2"}),
        ("k1='it's', k2=''", {"k1": "it's", "k2": ""}),
        ("k1='a, b', k2='c=d'", {"k1": "a, b", "k2": "c=d"}),
        ("trait:CUSTOM_A='required'", {"trait:CUSTOM_A": "required"}),
    ],
)
def test_extra_specs_as_text(text: str, expected: dict[str, str]) -> None:
    document = {"vcpus": 1, "ram": 1, "disk": 1, "properties": text}
    assert flavor.parse(document).extra_specs == expected


@pytest.mark.parametrize(
    ("document", "complaints"),
    [
        ([], ["the flavor is not a JSON object"]),
        ({}, ["no vcpus", "no memory_mb or ram", "no root_gb or disk"]),
        ({"vcpus": 1, "ram": None, "disk": 0}, ["no memory_mb or ram"]),
        ({"vcpus": -1, "ram": 1, "disk": 0}, ["flavor vcpus = -1: not an integer"]),
        ({"vcpus": 1, "ram": 1.5, "disk": 0}, ["flavor ram = 1.5: not"]),
        ({"vcpus": 1, "ram": 1, "disk": True}, ["flavor disk = True: not"]),
        ({"vcpus": 1, "ram": 1, "disk": "x", "swap": []}, ["disk", "swap = []"]),
        (
            {"vcpus": 1, "ram": 1, "disk": 1, "extra_specs": ["a"]},
            ["flavor extra_specs is neither"],
        ),
        (
            {"vcpus": 1, "ram": 1, "disk": 1, "properties": "a='b' c"},
            ["flavor properties is not a string like"],
        ),
    ],
)
def test_a_document_that_is_not_a_flavor(document: Any, complaints: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        flavor.parse(document)
    assert len(caught.value.problems) == len(complaints)
    for problem, complaint in zip(caught.value.problems, complaints, strict=True):
        assert complaint in problem


TRUSTED = {"trait:CUSTOM_TRUSTED": "required"}


@pytest.mark.parametrize(
    "document",
    [
        TRUSTED,
        {"id": "i", "name": "cirros", "properties": TRUSTED, "tags": []},
        {"id": "i", "properties": "os_hash='x', trait:CUSTOM_TRUSTED='required'"},
        {"id": "i", "properties": {**TRUSTED, "os_hidden": False, "size": 7}},
        {"id": "v", "properties": {}, "volume_image_metadata": TRUSTED},
    ],
)
def test_an_image_as_the_command_line_prints_it(document: Any) -> None:
    assert image.parse(document).required == {"CUSTOM_TRUSTED": "trait:CUSTOM_TRUSTED"}


@pytest.mark.parametrize("document", [None, [], "x", {"properties": ["a"]}])
def test_a_document_that_is_not_an_image(document: Any) -> None:
    with pytest.raises(BadInput, match="image"):
        image.parse(document)


def test_the_same_image() -> None:
    one = image.parse({"id": "1", "properties": TRUSTED})
    other = image.parse({"id": "2", "properties": TRUSTED})
    unnamed = image.parse(TRUSTED)
    assert one.is_same(image.parse({"id": "1", "properties": {}}))
    assert not one.is_same(other)
    assert unnamed.is_same(one)
    assert not unnamed.is_same(Image({}))


# The console's form has to pass the same cases.
NOVA = json.loads(Path(__file__).with_name("nova.json").read_text())


@pytest.mark.parametrize("case", NOVA["cases"], ids=json.dumps)
def test_what_nova_translates(case: dict[str, Any]) -> None:
    flavor = Flavor(**NOVA["flavor"], extra_specs=case["extra_specs"])
    image = Image(case["image"])
    if "refused" in case:
        with pytest.raises(BadInput, match=case["refused"]):
            build(flavor, image, strict=True)
        # Without it, the server is as large.
        assert build(flavor, image).groups[""].resources["VCPU"] == 4
        return
    request = build(flavor, image, strict=True, limit=None)
    assert dict(request.parameters) == dict(parse_qsl(case["query"]))
    assert set(request.beside) == set(case.get("left_out", ()))
