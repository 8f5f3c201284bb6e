"""Leases from their creation to their end."""

import datetime

import pytest

from placement_foundation import errors
from placement_reservations import state
from placement_reservations.capacity import Size
from placement_reservations.lifecycle import change, termination
from placement_reservations.lifecycle.change import Update, WishChange
from placement_reservations.store.lease import Wish
from tests.reservations.cloud import DAY, HOUR, SMALL, TODAY, Cloud

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


def test_free_slots_are_promised_and_no_more(cloud: Cloud) -> None:
    cloud.order(5, size=Size(1, 1024, 10))
    cloud.order(2, False, size=Size(1, 128, 1))
    small = Size(1, 64, 1)
    with pytest.raises(errors.Conflict):
        cloud.order(10, size=small)
    nine = cloud.order(9, size=small)
    with pytest.raises(errors.Conflict):
        cloud.order(1, size=small)
    termination.delete(cloud.world, nine)
    cloud.order(1, size=small)
    cloud.assert_consistent()


def test_reservations_of_a_lease_share_what_there_is(cloud: Cloud) -> None:
    wishes = [Wish(Size(5, 64, 1), 1), Wish(Size(5, 64, 1), 1)]
    lease = cloud.order(wishes=wishes)
    assert sorted(cloud.slots(lease)) == [1, 2]
    with pytest.raises(errors.Conflict):
        cloud.order(wishes=[Wish(Size(2, 64, 1), 1), Wish(Size(2, 64, 1), 2)])
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
    cloud.turn(advance=2 * HOUR)
    # The first made room in the same turn in which the second started.
    assert cloud.status(first) == "TERMINATED"
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


def test_events_missed_in_an_outage_are_run_after_it(cloud: Cloud) -> None:
    over = cloud.order(1)
    going_on = cloud.order(1, hours=100)
    cloud.turn(advance=3 * DAY)
    assert cloud.status(over) == "TERMINATED"
    assert set(cloud.events(over).values()) == {"DONE"}
    assert cloud.status(going_on) == "ACTIVE"
    cloud.assert_consistent()


def test_no_event_is_run_before_its_time(cloud: Cloud) -> None:
    lease = cloud.order(1)
    cloud.turn(advance=DAY - MINUTE)
    assert cloud.status(lease) == "PENDING"
    cloud.turn(advance=MINUTE)
    assert cloud.status(lease) == "ACTIVE"


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
        wishes = {reservation.id: WishChange(members)}
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
        wishes={reservation.id: WishChange(members)},
    )
    change.update(cloud.world, lease, wanted)
    changed = cloud.lease(lease)
    assert changed.name == "another"
    assert changed.reservations[0].wish == Wish(Size(2, 64, 5), 2, False)
    assert sorted(cloud.slots(lease)) == [1, 2]
    cloud.turn(advance=DAY)
    assert cloud.status(lease) == "PENDING"
    cloud.turn(advance=DAY)
    assert cloud.status(lease) == "ACTIVE"
    assert cloud.boot(lease, Size(2, 64, 5))
    cloud.assert_consistent()


def test_updates_that_are_refused(cloud: Cloud) -> None:
    lease = cloud.order(3)
    interval = cloud.lease(lease).interval
    for wanted in (
        Update(start=TODAY - MINUTE),
        Update(end=interval.start),
        Update(start=interval.end),
        Update(before_end=interval.end + MINUTE),
        Update(wishes={"nosuch": WishChange({"amount": 1})}),
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


def test_deleting_a_lease_frees_what_its_servers_hold(cloud: Cloud) -> None:
    lease = cloud.order(3)
    cloud.turn(advance=DAY)
    assert cloud.boot(lease)
    assert cloud.boot(lease)
    termination.delete(cloud.world, lease)
    assert cloud.placement.usages(cloud.hosts["compute-1"])["VCPU"] == 0
    assert cloud.count_slots() == 0
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
