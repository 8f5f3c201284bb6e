"""Leases from their creation to their end."""

import dataclasses
import datetime

import pytest
import sqlalchemy as sa

from placement_foundation import errors
from placement_reservations import conf, state
from placement_reservations.capacity import Size
from placement_reservations.lifecycle import (
    change,
    execution,
    registration,
    termination,
)
from placement_reservations.lifecycle.change import Update
from placement_reservations.store import claim as claims
from placement_reservations.store import lease as leases
from placement_reservations.store.claim import Claim
from placement_reservations.store.lease import Wish
from tests.reservations.cloud import DAY, HOUR, SMALL, TODAY, Answered, Cloud
from tests.reservations.options import make_config

MINUTE = datetime.timedelta(minutes=1)


def test_a_lease_lives_and_leaves_nothing(cloud: Cloud) -> None:
    lease = cloud.order(5)
    assert cloud.status(lease) == "PENDING"
    assert cloud.slots(lease) == [1] * 5
    assert cloud.inventories() == {}
    (reservation,) = cloud.lease(lease).reservations
    assert cloud.classes() == {reservation.resource_class}
    cloud.turn(advance=DAY)
    assert cloud.status(lease) == "ACTIVE"
    assert cloud.inventories() == {reservation.resource_class: {"compute-1": 5}}
    assert cloud.whole_inventories_of("compute-1") == {
        reservation.resource_class: {
            "total": 5,
            "reserved": 0,
            "min_unit": 1,
            "max_unit": 1,
            "step_size": 1,
            "allocation_ratio": 1.0,
        }
    }
    servers = [cloud.boot(lease) for _ in range(6)]
    assert None not in servers[:5]
    assert servers[5] is None
    cloud.turn(advance=HOUR)
    assert cloud.events(lease) == {
        "start_lease": "DONE",
        "before_end_lease": "DONE",
        "end_lease": "UNDONE",
    }
    cloud.turn(advance=HOUR)
    assert cloud.status(lease) == "TERMINATED"
    assert cloud.slots(lease) == []
    assert cloud.classes() == set()
    assert cloud.placement.usages(cloud.hosts["compute-1"])["VCPU"] == 0
    cloud.assert_consistent()
    termination.delete(cloud.world, lease)
    with pytest.raises(errors.NotFound, match=r"Object with \{'lease_id'"):
        cloud.lease(lease)
    for number in ("1", "2"):
        registration.remove(cloud.world, number)
    # A newer Placement than that is not needed.
    assert max(cloud.wire.versions, key=version_of) == "placement 1.29"


def version_of(header: str) -> tuple[int, ...]:
    """Return the microversion in a header, to be compared with others."""
    return tuple(map(int, header.removeprefix("placement ").split(".")))


# Slots


def test_the_slots_of_the_acceptance_table(cloud: Cloud) -> None:
    cloud.order(5, size=Size(1, 1024, 10))
    one = Size(1, 128, 1)
    with pytest.raises(errors.Conflict, match="Not enough hosts available"):
        cloud.order(3, False, size=one)
    assert sorted(cloud.slots(cloud.order(2, False, size=one))) == [1, 2]
    together = cloud.order(2, True, size=one, start=TODAY + 8 * DAY)
    assert len(set(cloud.slots(together))) == 1
    assert cloud.count_slots() == 9


def test_all_on_one_host_means_the_first_that_has_room(cloud: Cloud) -> None:
    assert cloud.slots(cloud.order(2, True)) == [1, 1]
    assert cloud.slots(cloud.order(7, True)) == [2] * 7
    # Together they have room, but neither alone.
    with pytest.raises(errors.Conflict, match="Not enough hosts available"):
        cloud.order(7, True)
    assert cloud.slots(cloud.order(1, True)) == [1]


def test_a_cleaning_follows_every_lease(cloud: Cloud) -> None:
    config = make_config({("reservations", "cleaning_time"): 30})
    cloud.world = dataclasses.replace(cloud.world, rules=conf.rules(config))
    whole = Size(8, 64, 1)
    start = TODAY + DAY
    lease = cloud.order(2, size=whole, start=start, hours=2)
    for begin, hours in (
        (start + 2 * HOUR + 29 * MINUTE, 1.0),
        (start - 29 * MINUTE - HOUR, 1.0),
    ):
        with pytest.raises(errors.Conflict, match="Not enough hosts available"):
            cloud.order(1, size=whole, start=begin, hours=hours)
    cloud.order(2, size=whole, start=start + 2 * HOUR + 30 * MINUTE, hours=1)
    cloud.order(2, size=whole, start=start - 30 * MINUTE - HOUR, hours=1)
    end = start + 2 * HOUR + MINUTE
    with pytest.raises(errors.Conflict, match="Not enough hosts available"):
        change.update(cloud.world, lease, Update(end=end))
    assert cloud.lease(lease).interval.end == end - MINUTE


def test_a_cleaning_takes_as_much_as_its_lease(cloud: Cloud) -> None:
    config = make_config({("reservations", "cleaning_time"): 30})
    cloud.world = dataclasses.replace(cloud.world, rules=conf.rules(config))
    first = '["==", "$id", "1"]'
    start = TODAY + DAY

    def order(vcpus: int, begin: datetime.datetime) -> str:
        size = Size(vcpus, 64, 1)
        return cloud.order(1, size=size, start=begin, hours=1, properties=first)

    order(4, start)
    order(4, start + 2 * HOUR)
    # At no moment are both in use or cleaned up, so half of the host is free.
    with pytest.raises(errors.Conflict, match="Not enough hosts available"):
        order(5, start + 80 * MINUTE)
    order(4, start + 80 * MINUTE)
    with pytest.raises(errors.Conflict, match="Not enough hosts available"):
        order(1, start + 80 * MINUTE)


def test_reservations_of_a_lease_share_what_there_is(cloud: Cloud) -> None:
    wishes = [Wish(5, 64, 1, 1), Wish(5, 64, 1, 1)]
    lease = cloud.order(wishes=wishes)
    assert sorted(cloud.slots(lease)) == [1, 2]
    with pytest.raises(errors.Conflict):
        cloud.order(wishes=[Wish(2, 64, 1, 1), Wish(2, 64, 1, 2)])
    cloud.turn(advance=DAY)
    assert len(cloud.inventories()) == 2
    cloud.assert_consistent()


def test_one_lease_may_follow_another(cloud: Cloud) -> None:
    whole = Size(8, 64, 1)
    first = cloud.order(2, size=whole)
    second = cloud.order(2, size=whole, start=TODAY + DAY + 2 * HOUR)
    with pytest.raises(errors.Conflict):
        cloud.order(1, size=whole, start=TODAY + DAY + HOUR, hours=0.5)
    cloud.turn(advance=DAY)
    servers = [cloud.boot(first, whole) for _ in range(2)]
    assert None not in servers
    seen = []

    def look(call: str) -> None:
        if call.startswith("PUT") and call.endswith("/inventories"):
            seen.append(cloud.status(first))

    cloud.wire.before = look
    cloud.turn(advance=2 * HOUR)
    # The first made room in the same turn, before the second started.
    assert seen == ["TERMINATED"] * 2
    assert cloud.status(second) == "ACTIVE"
    assert cloud.boot(second, whole)


def test_hosts_are_chosen_by_requirements(cloud: Cloud) -> None:
    cloud.make_host("compute-3")
    cloud.register("compute-3", gpu="True")
    lease = cloud.order(1, properties='["==", "$gpu", "True"]')
    assert cloud.slots(lease) == [3]
    assert cloud.slots(cloud.order(2, properties='[">", "$id", "1"]')) == [3, 3]
    with pytest.raises(errors.Conflict):
        cloud.order(1, properties='["==", "$gpu", "False"]')
    with pytest.raises(errors.BadRequest, match="Malformed requirements"):
        cloud.order(1, properties='["==", "$colour", "red"]')


# Times


def test_leases_missed_in_an_outage_are_over_before_the_next_one_starts(
    cloud: Cloud,
) -> None:
    whole = Size(8, 64, 1)
    first = cloud.order(2, size=whole)
    second = cloud.order(2, size=whole, start=TODAY + DAY + 2 * HOUR)
    name = cloud.lease(first).reservations[0].resource_class
    at = f"/resource_providers/{cloud.children()['blazar_compute-1']}/inventories"
    cloud.wire.calls.clear()
    cloud.turn(advance=DAY + 3 * HOUR)
    assert (cloud.status(first), cloud.status(second)) == ("TERMINATED", "ACTIVE")
    assert [call for call in cloud.wire.calls if at in call and "GET" not in call] == [
        f"PUT {at}",
        f"DELETE {at}/{name}",
        f"PUT {at}",
    ]


# Changes


def test_a_lease_may_last_longer(cloud: Cloud) -> None:
    lease = cloud.order(3)
    cloud.turn(advance=DAY)
    before = cloud.inventories()
    end = cloud.lease(lease).interval.end + HOUR
    change.update(cloud.world, lease, Update(end=end))
    changed = cloud.lease(lease)
    assert (changed.status, changed.interval.end) == ("ACTIVE", end)
    assert cloud.inventories() == before
    times = {str(event.event_type): event.time for event in changed.events}
    assert times["end_lease"] == end
    assert times["before_end_lease"] == end - HOUR
    cloud.turn(advance=2 * HOUR)
    assert cloud.status(lease) == "ACTIVE"
    cloud.turn(advance=HOUR)
    assert cloud.status(lease) == "TERMINATED"


def test_a_started_lease_does_not_last_longer_on_other_hosts(cloud: Cloud) -> None:
    whole = Size(8, 64, 1)
    lease = cloud.order(1, size=whole)
    later = cloud.order(1, size=whole, start=TODAY + DAY + 2 * HOUR)
    cloud.turn(advance=DAY)
    assert cloud.slots(lease) == cloud.slots(later) == [1]
    end = cloud.lease(lease).interval.end + HOUR
    with pytest.raises(errors.Conflict, match="Not enough hosts"):
        change.update(cloud.world, lease, Update(end=end))
    assert cloud.lease(lease).interval.end == end - HOUR
    assert cloud.count_slots() == 2
    # Before its start it may go elsewhere.
    start = cloud.lease(later).interval.start - HOUR
    change.update(cloud.world, later, Update(start=start))
    assert cloud.slots(later) == [2]
    cloud.assert_consistent()


def test_an_active_reservation_grows_and_never_shrinks(cloud: Cloud) -> None:
    lease = cloud.order(3)
    cloud.turn(advance=DAY)
    (reservation,) = cloud.lease(lease).reservations

    def ask(**members: object) -> None:
        wishes = {reservation.id: members}
        change.update(cloud.world, lease, Update(wishes=wishes))

    ask(amount=4)
    assert cloud.inventories() == {reservation.resource_class: {"compute-1": 4}}
    with pytest.raises(errors.Conflict, match="doesn't allow to reduce/replace"):
        ask(amount=2)
    with pytest.raises(errors.Conflict, match="nothing but a larger amount"):
        ask(vcpus=2)
    with pytest.raises(errors.Conflict, match="Not enough hosts"):
        ask(amount=40)
    ask(amount=12)
    assert cloud.inventories() == {
        reservation.resource_class: {"compute-1": 8, "compute-2": 4}
    }
    assert len(cloud.slots(lease)) == 12
    cloud.assert_consistent()


def test_everything_changes_before_the_start(cloud: Cloud) -> None:
    lease = cloud.order(3)
    (reservation,) = cloud.lease(lease).reservations
    members = {"vcpus": 2, "memory_mb": 64, "amount": 2, "affinity": False}
    wanted = Update(
        "another",
        start=TODAY + 2 * DAY,
        end=TODAY + 3 * DAY,
        wishes={reservation.id: members},
    )
    change.update(cloud.world, lease, wanted)
    changed = cloud.lease(lease)
    assert changed.name == "another"
    assert changed.reservations[0].wish == Wish(2, 64, 5, 2, False)
    assert sorted(cloud.slots(lease)) == [1, 2]
    cloud.turn(advance=DAY)
    assert cloud.status(lease) == "PENDING"
    cloud.turn(advance=DAY)
    assert cloud.status(lease) == "ACTIVE"
    assert cloud.boot(lease, Size(2, 64, 5))
    cloud.assert_consistent()


def test_one_that_has_not_started_moves_as_a_whole_if_it_must(cloud: Cloud) -> None:
    cloud.order(6)
    lease = cloud.order(2, True)
    (reservation,) = cloud.lease(lease).reservations
    assert cloud.slots(lease) == [1, 1]
    wishes = {reservation.id: {"amount": 5}}
    change.update(cloud.world, lease, Update(wishes=wishes))
    assert cloud.slots(lease) == [2] * 5
    cloud.assert_consistent()


def test_updates_that_are_refused(cloud: Cloud) -> None:
    lease = cloud.order(3)
    interval = cloud.lease(lease).interval
    for wanted in (
        Update(start=TODAY - MINUTE),
        Update(end=interval.start),
        Update(start=interval.end),
        Update(before_end=interval.end + MINUTE),
        Update(wishes={"nosuch": {"amount": 1}}),
    ):
        with pytest.raises(errors.BadRequest):
            change.update(cloud.world, lease, wanted)
    cloud.turn(advance=DAY)
    with pytest.raises(errors.Conflict, match="has started"):
        change.update(cloud.world, lease, Update(start=interval.start + MINUTE))
    with pytest.raises(errors.BadRequest, match="in the past"):
        change.update(cloud.world, lease, Update(end=interval.start - MINUTE))
    cloud.turn(advance=2 * HOUR)
    with pytest.raises(errors.Conflict, match="only be renamed"):
        change.update(cloud.world, lease, Update(end=interval.end + HOUR))
    change.update(cloud.world, lease, Update("a good one"))
    assert cloud.lease(lease).name == "a good one"


def test_a_lease_may_end_at_once(cloud: Cloud) -> None:
    lease = cloud.order(3, hours=10)
    cloud.turn(advance=DAY + HOUR)
    change.update(cloud.world, lease, Update(end=TODAY + DAY + HOUR))
    cloud.turn()
    assert cloud.status(lease) == "TERMINATED"


def test_the_event_before_the_end(cloud: Cloud) -> None:
    def time(lease: str) -> datetime.datetime | None:
        event = cloud.lease(lease).event(state.EventType.BEFORE_END)
        return event.time if event else None

    short = cloud.order(1, hours=0.5)
    interval = cloud.lease(short).interval
    assert time(short) == interval.start
    change.update(cloud.world, short, Update(end=interval.end + 2 * HOUR))
    assert time(short) == interval.end + HOUR
    change.update(cloud.world, short, Update(before_end=interval.end + 90 * MINUTE))
    assert time(short) == interval.end + 90 * MINUTE
    # It moves with the end.
    change.update(cloud.world, short, Update(end=interval.end + 3 * HOUR))
    assert time(short) == interval.end + 150 * MINUTE
    # However far that is, it stays within the lease.
    change.update(cloud.world, short, Update(end=datetime.datetime(9000, 1, 1)))
    change.update(cloud.world, short, Update(before_end=interval.start))
    change.update(cloud.world, short, Update(end=interval.end))
    assert time(short) == interval.start


def test_servers_that_stay_hold_up_the_end(cloud: Cloud) -> None:
    lease = cloud.order(3)
    cloud.turn(advance=DAY)
    server = cloud.boot(lease)
    (reservation,) = cloud.lease(lease).reservations
    name = reservation.resource_class
    assert cloud.flavors("blue") == [reservation.id]
    cloud.wire.before = keep_servers
    cloud.turn(advance=2 * HOUR)
    for _ in range(2):
        found = cloud.lease(lease)
        assert (found.status, found.reservations[0].status) == ("TERMINATING", "active")
        assert cloud.events(lease)["end_lease"] == "IN_PROGRESS"
        assert cloud.inventories() == {name: {"compute-1": 3}}
        assert len(cloud.slots(lease)) == 3
        # No more servers can be booted.
        assert cloud.flavors("blue") == []
        cloud.turn(advance=4 * MINUTE)
    cloud.turn(advance=3 * MINUTE)
    found = cloud.lease(lease)
    assert found.status == "ERROR"
    assert f"servers {server} are still there" in (found.status_reason or "")
    assert len(cloud.slots(lease)) == 3
    cloud.assert_consistent()
    cloud.wire.before = lambda call: None
    cloud.turn(advance=2 * MINUTE)
    assert cloud.status(lease) == "TERMINATED"
    assert cloud.placement.get(f"/allocations/{server}")["allocations"] == {}
    cloud.assert_consistent()


def test_servers_that_stay_hold_up_a_deletion(cloud: Cloud) -> None:
    patience = datetime.timedelta(seconds=5)
    rules = dataclasses.replace(cloud.world.rules, patience=patience)
    cloud.world = dataclasses.replace(cloud.world, rules=rules)
    lease = cloud.order(3)
    cloud.turn(advance=DAY)
    server = cloud.boot(lease)
    cloud.wire.before = keep_servers
    with pytest.raises(errors.Conflict, match=f"servers {server} are still there"):
        termination.delete(cloud.world, lease)
    assert cloud.status(lease) == "ERROR"
    cloud.assert_consistent()
    cloud.wire.before = lambda call: None
    termination.delete(cloud.world, lease)
    assert cloud.classes() == set()
    cloud.assert_consistent()


def keep_servers(call: str) -> None:
    """Say that the allocations of a server are removed, and leave them there."""
    if call.startswith("DELETE /allocations/"):
        raise Answered(204)


BUSY = [each for each in state.LeaseStatus if each not in state.STABLE]


@pytest.mark.parametrize("status", BUSY)
def test_one_operation_at_a_time(cloud: Cloud, status: state.LeaseStatus) -> None:
    lease = cloud.order(3)

    def begin(connection: sa.Connection) -> Claim:
        leases.update(connection, lease, status=status)
        subject = leases.subject(lease)
        return execution.begin(connection, cloud.world, subject, "work")

    claim = cloud.world.database.write(begin)
    end = cloud.lease(lease).interval.end + HOUR
    with pytest.raises(errors.Conflict):
        change.update(cloud.world, lease, Update(end=end))
    with pytest.raises(errors.Conflict):
        termination.delete(cloud.world, lease)
    change.update(cloud.world, lease, Update("renamed"))
    found = cloud.lease(lease)
    assert (found.status, found.name) == (status, "renamed")
    assert found.interval.end == end - HOUR
    cloud.world.database.write(lambda connection: claims.release(connection, claim))


def test_deleting_a_lease_frees_what_its_servers_hold(cloud: Cloud) -> None:
    lease = cloud.order(3)
    cloud.turn(advance=DAY)
    assert cloud.boot(lease)
    assert cloud.boot(lease)
    termination.delete(cloud.world, lease)
    assert cloud.placement.usages(cloud.hosts["compute-1"])["VCPU"] == 0
    assert cloud.count_slots() == 0
    cloud.assert_consistent()


def test_servers_of_other_leases_on_the_same_host_stay(cloud: Cloud) -> None:
    ends, goes, stays = (cloud.order(2, hours=hours) for hours in (1, 9, 9))
    cloud.turn(advance=DAY)
    servers = {lease: cloud.boot(lease) for lease in (ends, goes, stays)}
    assert cloud.slots(ends) == cloud.slots(goes) == cloud.slots(stays) == [1, 1]
    cloud.turn(advance=HOUR)
    assert cloud.status(ends) == "TERMINATED"
    termination.delete(cloud.world, goes)
    for lease, server in servers.items():
        held = cloud.placement.get(f"/allocations/{server}")["allocations"]
        assert bool(held) == (lease == stays)
    cloud.assert_consistent()


def test_a_missing_reservation_provider_is_created_again(cloud: Cloud) -> None:
    lease = cloud.order(1, properties='["==", "$hypervisor_hostname", "compute-2"]')
    child = cloud.children()["blazar_compute-2"]
    assert cloud.placement.call("DELETE", f"/resource_providers/{child}").status == 204
    cloud.turn(advance=DAY)
    assert cloud.status(lease) == "ACTIVE"
    assert cloud.children()["blazar_compute-2"] != child
    assert cloud.boot(lease)


def test_ordinary_instances_stay_away_from_the_pool(cloud: Cloud) -> None:
    cloud.make_host("ordinary")
    lease = cloud.order(1)
    cloud.turn(advance=DAY)
    ordinary = "resources=VCPU:1&member_of=!in:7f1f1a0e-0c55-4a36-93d3-2b8a3c9e6d11"
    found = cloud.placement.get(f"/allocation_candidates?{ordinary}")
    assert set(found["provider_summaries"]) == {cloud.hosts["ordinary"]}
    assert (
        len(
            cloud.placement.get("/allocation_candidates?resources=VCPU:1")[
                "allocation_requests"
            ]
        )
        == 3
    )
    assert cloud.boot(lease, SMALL)
