"""Servers that are booted together, by a service that places them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from placement_clients import client
from placement_clients.client import Client
from placement_clients.request import gang
from placement_clients.request.boot import Placed, Server
from placement_clients.request.errors import BadInput, NoValidHost, ServerTaken
from placement_clients.request.request import build
from tests.client import new_uuid
from tests.commands.request import cloud
from tests.commands.request.cloud import Cloud, flavor_m, image_of
from tests.serving import Served, serving, without_ledger

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

PLACEMENTS = "POST /ledger/v1/placements"


@pytest.fixture
def placement(service: Served) -> Client:
    return client.from_environment(url=service.url, token="admin")


@pytest.fixture
def small_cloud(placement: Client) -> Cloud:
    return cloud.build(placement)


def servers(number: int) -> list[Server]:
    return [Server(new_uuid(), "blue", "ann", "INSTANCE") for _ in range(number)]


def place(
    small_cloud: Cloud, some: Sequence[Server], text: str = "", **members: Any
) -> list[Placed]:
    request = build(flavor_m(text), image_of())
    return gang.place(small_cloud.placement, some, request, members)


def test_all_are_placed_and_told_as_they_are_stored(
    small_cloud: Cloud, service: Served
) -> None:
    some = servers(6)
    service.calls.clear()
    placed = place(small_cloud, some)
    assert [each.server for each in placed] == [each.uuid for each in some]
    assert service.lines == [PLACEMENTS]
    for each in placed:
        held = small_cloud.placement.get_allocations(each.server)
        assert {
            provider: {"resources": resources} for provider, resources in held.items()
        } == each.allocations
        assert small_cloud.owner_of(each.server) == "blue"
        assert not each.existed
        assert list(each.mappings) == [""]


def test_a_server_of_another_project_is_taken(small_cloud: Cloud) -> None:
    mine, other = servers(2)
    place(small_cloud, [other])
    stolen = Server(other.uuid, "red", "ann", "INSTANCE")
    with pytest.raises(ServerTaken, match=other.uuid):
        place(small_cloud, [Server(mine.uuid, "red", "ann", "INSTANCE"), stolen])
    assert not small_cloud.placement.get_allocations(mine.uuid)
    assert small_cloud.owner_of(other.uuid) == "blue"


@pytest.mark.parametrize(
    ("number", "wish"),
    [(2, {}), (1, {"lease_seconds": 60}), (1, {"spread": {"per": "host"}})],
)
def test_any_placement_takes_one_server_and_nothing_more(
    application: "WSGIApplication",
    small_cloud: Cloud,
    number: int,
    wish: dict[str, Any],
) -> None:
    some = servers(number)
    with serving(without_ledger(application)) as served:
        placement = client.from_environment(url=served.url, token="admin")
        old = Cloud(placement, small_cloud.uuids)
        with pytest.raises(BadInput, match="it takes one server at a time"):
            place(old, some, **wish)
        assert not placement.get_allocations(some[0].uuid)
        [placed] = place(old, some[:1])
        assert placement.get_allocations(some[0].uuid)
        assert placed.mappings


def test_nothing_fits_and_why(small_cloud: Cloud) -> None:
    for number in (1, 2):
        with pytest.raises(NoValidHost) as caught:
            place(small_cloud, servers(number), "resources:VCPU=17")
        assert "VCPU" in caught.value.explanation["summary"]


def test_what_placement_refuses_is_traced_to_the_flavor(small_cloud: Cloud) -> None:
    with pytest.raises(BadInput, match="extra spec trait:CUSTOM_NOSUCH: Placement"):
        place(small_cloud, servers(2), "trait:CUSTOM_NOSUCH=required")
