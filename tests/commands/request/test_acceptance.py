"""Flavors and images against the service: what a scheduler relies on, row by row."""

import pytest

from placement_clients.record import INVENTORIES, Inventory
from placement_clients.request import boot, preflight
from placement_clients.request.errors import BadInput
from placement_clients.request.request import build
from tests.client import new_uuid
from tests.commands.request.cloud import Cloud, flavor_m, image_of
from tests.serving import Served

AVX2 = "trait:HW_CPU_X86_AVX2=required"
NO_GPU = "trait:CUSTOM_GPU=forbidden"
TRUSTED = "trait:CUSTOM_TRUSTED=required"
GPU = "trait:CUSTOM_GPU=required"


def hosts(cloud: Cloud, flavor: str, image: str = "") -> list[str]:
    """Return the names of the hosts of all candidates."""
    request = build(flavor_m(flavor), image_of(image), strict=True)
    candidates = boot.find(cloud.placement, request)
    return cloud.names(
        boot.host_of(each, candidates.summaries) for each in candidates.found
    )


def booted(cloud: Cloud, flavor: str, image: str = "") -> str:
    """Return the UUID of a new server."""
    server = boot.Server(new_uuid(), "blue", "ann")
    boot.boot(cloud.placement, server, build(flavor_m(flavor), image_of(image)))
    return server.uuid


def test_row_1_flavor_and_image_together(small_cloud: Cloud) -> None:
    assert hosts(small_cloud, f"{AVX2} {NO_GPU}", TRUSTED) == ["cn1"]


def test_row_2_a_plain_image(small_cloud: Cloud) -> None:
    assert hosts(small_cloud, f"{AVX2} {NO_GPU}") == ["cn1", "cn2"]


def test_row_3_nothing_forbidden(small_cloud: Cloud) -> None:
    assert hosts(small_cloud, AVX2, TRUSTED) == ["cn1", "cn3"]


def test_row_4_a_trait_that_does_not_exist(small_cloud: Cloud) -> None:
    with pytest.raises(BadInput) as caught:
        hosts(small_cloud, "", "trait:CUSTOM_NOSUCH=required")
    assert str(caught.value) == (
        "image property trait:CUSTOM_NOSUCH: Placement refuses this: "
        "No such trait(s): CUSTOM_NOSUCH."
    )


def test_a_trait_that_does_not_exist_where_there_is_no_room(small_cloud: Cloud) -> None:
    # Placement stops at the group that is not served, before it looks at the trait.
    wanted = "resources:VCPU=17 resources1:SRIOV_NET_VF=1 trait1:CUSTOM_NOSUCH=required"
    with pytest.raises(BadInput) as caught:
        hosts(small_cloud, wanted)
    assert str(caught.value) == (
        "flavor extra spec trait1:CUSTOM_NOSUCH: Placement refuses this: "
        "No such trait(s): CUSTOM_NOSUCH."
    )


@pytest.mark.parametrize("strict", [True, False])
def test_row_5_required_and_forbidden(
    small_cloud: Cloud, service: Served, strict: bool
) -> None:
    service.calls.clear()
    with pytest.raises(BadInput, match="image property trait:CUSTOM_GPU"):
        boot.find(
            small_cloud.placement,
            build(flavor_m(NO_GPU), image_of(GPU), strict=strict),
        )
    assert service.calls == []


def test_row_6_a_card_with_a_trait(small_cloud: Cloud) -> None:
    request = build(
        flavor_m("resources1:SRIOV_NET_VF=1 trait1:HW_NIC_OFFLOAD_GENEVE=required")
    )
    (found,) = boot.find(small_cloud.placement, request).found
    assert small_cloud.names(found.allocations) == ["cn4", "pf2"]
    assert small_cloud.names(found.mappings["1"]) == ["pf2"]


def test_row_7_two_cards(small_cloud: Cloud) -> None:
    request = build(
        flavor_m(
            "resources1:SRIOV_NET_VF=1 resources2:SRIOV_NET_VF=1 group_policy=isolate"
        )
    )
    found = boot.find(small_cloud.placement, request).found
    assert len(found) == 2
    for each in found:
        assert small_cloud.names(each.allocations) == ["cn4", "pf1", "pf2"]
    assert {small_cloud.names(each.mappings["1"])[0] for each in found} == {
        "pf1",
        "pf2",
    }


@pytest.fixture
def server_on_a_full_host(small_cloud: Cloud) -> str:
    server = booted(small_cloud, f"{AVX2} {NO_GPU}", TRUSTED)
    held = small_cloud.placement.get_allocations(server)
    assert small_cloud.names(held) == ["cn1"]
    small_cloud.placement.change(
        small_cloud.uuids["cn1"],
        INVENTORIES,
        lambda known: {**known, "VCPU": Inventory(2)},
    )
    return server


def test_row_8_a_full_host_does_not_prevent_a_rebuild(
    small_cloud: Cloud, service: Served, server_on_a_full_host: str
) -> None:
    service.calls.clear()
    verdict = preflight.check(
        small_cloud.placement,
        server_on_a_full_host,
        flavor_m(AVX2),
        image_of(),
        image_of(TRUSTED),
    )
    cn1 = small_cloud.uuids["cn1"]
    assert verdict.passed
    assert verdict.traits == {cn1: {"HW_CPU_X86_AVX2", "CUSTOM_TRUSTED"}}
    assert [(call.line, call.version) for call in service.calls] == [
        (f"GET /allocations/{server_on_a_full_host}", "1.28"),
        (f"GET /resource_providers/{cn1}/traits", "1.6"),
    ]


def test_row_9_a_trait_that_the_host_lacks(
    small_cloud: Cloud, server_on_a_full_host: str
) -> None:
    verdict = preflight.check(
        small_cloud.placement,
        server_on_a_full_host,
        flavor_m(AVX2),
        image_of(TRUSTED),
        image_of(GPU),
    )
    assert not verdict.passed
    assert (verdict.missing, verdict.forbidden) == (("CUSTOM_GPU",), ())
    assert "image property trait:CUSTOM_GPU" in verdict.reason
    assert small_cloud.uuids["cn1"] in verdict.reason


def test_row_10_a_trait_that_the_flavor_forbids(
    small_cloud: Cloud, service: Served, server_on_a_full_host: str
) -> None:
    service.calls.clear()
    verdict = preflight.check(
        small_cloud.placement,
        server_on_a_full_host,
        flavor_m("trait7:CUSTOM_GPU=forbidden"),
        image_of(TRUSTED),
        image_of(GPU),
    )
    assert not verdict.passed
    assert (verdict.missing, verdict.forbidden) == ((), ("CUSTOM_GPU",))
    assert "image traits are forbidden by the flavor: CUSTOM_GPU" in verdict.reason
    assert service.calls == []


def test_row_11_a_card_that_the_server_does_not_use(small_cloud: Cloud) -> None:
    placement = small_cloud.placement
    request = build(flavor_m("resources1:SRIOV_NET_VF=1"))
    candidates = boot.find(placement, request)
    on_pf1 = [
        each
        for each in candidates.found
        if small_cloud.names(each.mappings["1"]) == ["pf1"]
    ]
    server = boot.Server(new_uuid(), "blue", "ann")
    placed = boot.boot(placement, server, request, weigh=lambda candidates: on_pf1)
    assert small_cloud.names([placed.host]) == ["cn4"]
    verdict = preflight.check(
        placement,
        server.uuid,
        flavor_m(),
        image_of(),
        image_of("trait:HW_NIC_OFFLOAD_GENEVE=required"),
    )
    assert not verdict.passed
    assert verdict.missing == ("HW_NIC_OFFLOAD_GENEVE",)
    assert small_cloud.names(verdict.traits) == ["cn4", "pf1"]


def test_row_12_the_same_image(small_cloud: Cloud, service: Served) -> None:
    service.calls.clear()
    verdict = preflight.check(
        small_cloud.placement, new_uuid(), flavor_m(), image_of(GPU), image_of(GPU)
    )
    assert verdict.passed
    assert service.calls == []


# Besides the rows


def test_an_image_without_traits_is_not_looked_up(
    small_cloud: Cloud, service: Served
) -> None:
    service.calls.clear()
    new = image_of("trait:CUSTOM_GPU=forbidden os_type=linux")
    verdict = preflight.check(
        small_cloud.placement, new_uuid(), flavor_m(), image_of(), new
    )
    assert verdict.passed
    assert service.calls == []


def test_a_server_that_holds_nothing_is_not_rebuilt(small_cloud: Cloud) -> None:
    verdict = preflight.check(
        small_cloud.placement, new_uuid(), flavor_m(), image_of(), image_of(TRUSTED)
    )
    assert not verdict.passed
    assert verdict.reason == "the server holds nothing"
