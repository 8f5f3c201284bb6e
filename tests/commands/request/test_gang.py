"""Servers that are booted together, by a service that places them."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from placement_clients import client
from placement_clients.client import Client
from placement_clients.record import AGGREGATES
from placement_clients.request import gang
from placement_clients.request.boot import Server
from placement_clients.request.errors import BadInput, NoValidHost, ServerTaken
from placement_clients.request.gang import Placed
from placement_clients.request.request import build
from placement_clients.request.wish import Preference, Wish
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
    return gang.place(small_cloud.placement, some, request, Wish(**members))


def hosts(small_cloud: Cloud, placed: Iterable[Placed]) -> Counter[str]:
    names = {uuid: name for name, uuid in small_cloud.uuids.items()}
    return Counter(names[each.host] for each in placed)


def test_all_are_placed_and_told_as_they_are_stored(
    small_cloud: Cloud, service: Served
) -> None:
    some = servers(6)
    service.calls.clear()
    placed = place(small_cloud, some)
    assert [each.server for each in placed] == [each.uuid for each in some]
    assert service.lines[0] == PLACEMENTS
    for each in placed:
        held = small_cloud.placement.get_allocations(each.server)
        assert {
            provider: {"resources": resources}
            for provider, resources in held.by_provider.items()
        } == each.allocations
        assert held.project_id == "blue"
        assert not each.existed
        assert list(each.mappings) == [""]


def test_one_request_is_enough(small_cloud: Cloud, service: Served) -> None:
    service.calls.clear()
    place(small_cloud, servers(30))
    assert service.lines == [PLACEMENTS]


def test_servers_are_spread_over_hosts(small_cloud: Cloud) -> None:
    first = place(small_cloud, servers(4), spread="host")
    assert set(hosts(small_cloud, first).values()) == {1}
    second = place(small_cloud, servers(7), spread="host", at_most=2)
    assert max(hosts(small_cloud, second).values()) == 2


def test_no_more_than_hosts_have_room_for(small_cloud: Cloud) -> None:
    some = servers(5)
    with pytest.raises(NoValidHost) as caught:
        place(small_cloud, some, spread="host")
    assert caught.value.explanation is None
    for server in some:
        assert not small_cloud.placement.get_allocations(server.uuid).by_provider


def test_room_for_some_is_room_for_none(small_cloud: Cloud) -> None:
    # Eight fit on each of four hosts.
    some = servers(33)
    with pytest.raises(NoValidHost):
        place(small_cloud, some)
    for server in some:
        assert not small_cloud.placement.get_allocations(server.uuid).by_provider
    assert len(place(small_cloud, servers(32))) == 32


def test_hosts_are_preferred(small_cloud: Cloud) -> None:
    cn1, cn2, cn3 = (small_cloud.uuids[name] for name in ("cn1", "cn2", "cn3"))
    gpu = Preference("trait", "CUSTOM_GPU")
    (placed,) = place(small_cloud, servers(1), prefer=(gpu,))
    assert placed.host == cn3
    dislike = Preference("trait", "HW_CPU_X86_AVX2", -2)
    (placed,) = place(small_cloud, servers(1), prefer=(gpu, dislike))
    assert placed.host == small_cloud.uuids["cn4"]
    (placed,) = place(small_cloud, servers(1), prefer=(Preference("host", cn2),))
    assert placed.host == cn2
    full = Preference("free", "VCPU", -1), Preference("host", cn1, 0.01)
    assert {each.host for each in place(small_cloud, servers(3), prefer=full)} <= {
        cn2,
        cn3,
        small_cloud.uuids["cn4"],
    }
    empty = (Preference("free", "VCPU"),)
    assert place(small_cloud, servers(1), prefer=empty)[0].host == cn1
    rack = new_uuid()
    small_cloud.placement.change(cn2, AGGREGATES, lambda known: {rack})
    here = (Preference("aggregate", rack),)
    assert place(small_cloud, servers(1), prefer=here)[0].host == cn2


def test_the_same_servers_may_be_asked_for_again(small_cloud: Cloud) -> None:
    some = servers(3)
    first = place(small_cloud, some)
    second = place(small_cloud, some)
    assert [each.existed for each in second] == [True] * 3
    assert [(each.host, each.allocations) for each in second] == [
        (each.host, each.allocations) for each in first
    ]
    more = place(small_cloud, [*some, *servers(1)])
    assert [each.existed for each in more] == [True, True, True, False]


def test_those_that_are_there_count_for_the_spread(small_cloud: Cloud) -> None:
    some = servers(3)
    place(small_cloud, some, spread="host")
    placed = place(small_cloud, [*some, *servers(1)], spread="host")
    assert set(hosts(small_cloud, placed).values()) == {1}


def test_a_single_server_that_is_there_is_not_booted(small_cloud: Cloud) -> None:
    [server] = servers(1)
    place(small_cloud, [server])
    with pytest.raises(ServerTaken, match=f"server {server.uuid} is not booted: it"):
        place(small_cloud, [server])


def test_a_server_of_another_project_is_taken(small_cloud: Cloud) -> None:
    mine, other = servers(2)
    place(small_cloud, [other])
    stolen = Server(other.uuid, "red", "ann", "INSTANCE")
    with pytest.raises(ServerTaken, match=other.uuid):
        place(small_cloud, [Server(mine.uuid, "red", "ann", "INSTANCE"), stolen])
    assert not small_cloud.placement.get_allocations(mine.uuid).by_provider
    assert small_cloud.placement.get_allocations(other.uuid).project_id == "blue"


def test_claims_may_end_by_themselves(small_cloud: Cloud) -> None:
    for each in place(small_cloud, servers(2), lease_seconds=60):
        path = f"/ledger/v1/leases/{each.server}"
        lease = small_cloud.placement.get(path, version="1.39")
        assert lease["expires_at"] == each.expires_at is not None


def test_servers_are_spread_over_aggregates(small_cloud: Cloud) -> None:
    racks = new_uuid(), new_uuid()
    for name, rack in (("cn1", racks[0]), ("cn2", racks[0]), ("cn3", racks[1])):
        provider = small_cloud.placement.get_provider(small_cloud.uuids[name])
        small_cloud.placement.replace(
            provider.uuid, AGGREGATES, provider.generation, {rack}
        )
    placed = place(small_cloud, servers(4), spread=racks, at_most=2)
    found = hosts(small_cloud, placed)
    assert (found["cn3"], found["cn1"] + found["cn2"]) == (2, 2)


@pytest.mark.parametrize(
    ("number", "wish"),
    [(2, {}), (1, {"lease_seconds": 60}), (1, {"spread": "host"})],
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
        assert not placement.get_allocations(some[0].uuid).by_provider
        [placed] = place(old, some[:1])
        assert placement.get_allocations(some[0].uuid).by_provider
        assert placed.mappings


def test_nothing_fits_and_why(small_cloud: Cloud) -> None:
    for number in (1, 2):
        with pytest.raises(NoValidHost) as caught:
            place(small_cloud, servers(number), "resources:VCPU=17")
        why = caught.value.explanation
        assert why is not None
        assert "VCPU" in json.dumps(why.document)


def test_what_placement_refuses_is_traced_to_the_flavor(small_cloud: Cloud) -> None:
    with pytest.raises(BadInput, match="extra spec trait:CUSTOM_NOSUCH: Placement"):
        place(small_cloud, servers(2), "trait:CUSTOM_NOSUCH=required")
