"""Leases over time, compared with a model that does everything the obvious way.

The model checks every hour of every host. Whatever requests come in whatever order, the
service promises what the model can, and refuses what it cannot.
"""

import dataclasses
import datetime
import os
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from placement_foundation import errors
from placement_reservations import state
from placement_reservations.capacity import Interval, Size
from placement_reservations.lifecycle import change, termination
from placement_reservations.lifecycle.change import Update
from placement_reservations.store import lease as leases
from placement_reservations.store.lease import Lease
from placement_reservations.world import Rules
from tests.reservations.cloud import HOUR, Cloud

THOROUGH = bool(os.environ.get("PLACEMENT_TEST_EVERY_CALL"))
CAPACITY = 8
SIZES = st.sampled_from([Size(1, 64, 1), Size(3, 64, 1), Size(8, 64, 1)])
HOURS = st.integers(1, 4)
PICKS = st.integers(0, 20)


class Leases(RuleBasedStateMachine):
    """A user who sends requests of all kinds while time passes."""

    cloud: Cloud

    def __init__(self) -> None:
        super().__init__()
        self.start = self.cloud.clock.time.replace(minute=0, second=0) + HOUR
        self.cloud.clock.time = self.start
        # What is over or deleted: its host, its processors there, and when it ended.
        self.past: list[tuple[int, int, datetime.datetime]] = []

    @property
    def cleaning(self) -> datetime.timedelta:
        """Return how long after a lease its room is not promised."""
        return self.cloud.world.rules.cleaning

    @property
    def now(self) -> datetime.datetime:
        return self.cloud.clock.time

    def all(self) -> list[Lease]:
        return self.cloud.world.database.read(leases.list_leases)

    def pick(self, number: int) -> Lease | None:
        known = self.all()
        return known[number % len(known)] if known else None

    def used(
        self, host_id: int, hour: datetime.datetime, without: str | None = None
    ) -> int:
        """Add up the promised processors of a host in an hour."""
        cleaned = sum(
            vcpus
            for host, vcpus, end in self.past
            if host == host_id and end <= hour < end + self.cleaning
        )
        return cleaned + sum(
            each.wish.size.vcpus * self.held[each.id].count(host_id)
            for lease in self.all()
            if lease.interval.start <= hour < lease.interval.end + self.cleaning
            if lease.id != without
            for each in lease.reservations
        )

    def free(
        self, interval: Interval, size: Size, without: str | None = None
    ) -> dict[int, int]:
        hours = []
        hour = interval.start
        while hour < interval.end + self.cleaning:
            hours.append(hour)
            hour += HOUR
        return {
            host_id: min(
                (CAPACITY - self.used(host_id, each, without)) // size.vcpus
                for each in hours
            )
            for host_id in (1, 2)
        }

    @property
    def held(self) -> dict[str, list[int]]:
        return {
            each.id: self.cloud.slots(lease.id)
            for lease in self.all()
            for each in lease.reservations
        }

    @rule(
        amount=st.integers(1, 6),
        affinity=st.sampled_from([None, None, True, False]),
        size=SIZES,
        delay=st.integers(0, 4),
        hours=HOURS,
    )
    def order(
        self, amount: int, affinity: bool | None, size: Size, delay: int, hours: int
    ) -> None:
        start = self.now + delay * HOUR
        free = self.free(Interval(start, start + hours * HOUR), size)
        possible = {
            None: sum(free.values()) >= amount,
            True: max(free.values()) >= amount,
            False: sum(1 for count in free.values() if count) >= amount,
        }[affinity]
        try:
            lease = self.cloud.order(
                amount, affinity, size=size, start=start, hours=hours
            )
        except errors.Conflict:
            assert not possible
            return
        assert possible
        assert len(self.cloud.slots(lease)) == amount
        self.cloud.run_due()

    @rule(hours=HOURS)
    def wait(self, hours: int) -> None:
        started = [each for each in self.all() if self.cloud.slots(each.id)]
        held = self.held
        self.cloud.run_due(advance=hours * HOUR)
        for lease in started:
            if self.cloud.status(lease.id) == state.LeaseStatus.TERMINATED:
                self.remember(lease, held)

    def remember(self, lease: Lease, held: dict[str, list[int]]) -> None:
        for each in lease.reservations:
            for host_id in held[each.id]:
                self.past.append((host_id, each.wish.size.vcpus, self.now))

    @rule(number=PICKS)
    def delete(self, number: int) -> None:
        lease = self.pick(number)
        if lease:
            if lease.status == state.LeaseStatus.ACTIVE:
                self.remember(lease, self.held)
            termination.delete(self.cloud.world, lease.id)

    @rule(number=PICKS, hours=HOURS)
    def prolong(self, number: int, hours: int) -> None:
        lease = self.pick(number)
        if not lease or lease.status == state.LeaseStatus.TERMINATED:
            return
        (reservation,) = lease.reservations
        held = self.cloud.slots(lease.id)
        interval = Interval(lease.interval.start, lease.interval.end + hours * HOUR)
        free = self.free(interval, reservation.wish.size, lease.id)
        same = all(free[host_id] >= held.count(host_id) for host_id in set(held))
        try:
            change.update(self.cloud.world, lease.id, Update(end=interval.end))
        except errors.Conflict:
            assert not same
            assert self.cloud.lease(lease.id).interval == lease.interval
            assert self.cloud.slots(lease.id) == held
            return
        assert self.cloud.lease(lease.id).interval == interval
        if same or lease.status == state.LeaseStatus.ACTIVE:
            assert sorted(self.cloud.slots(lease.id)) == sorted(held)

    @rule(number=PICKS, more=st.integers(1, 3))
    def grow(self, number: int, more: int) -> None:
        lease = self.pick(number)
        if not lease or lease.status == state.LeaseStatus.TERMINATED:
            return
        (reservation,) = lease.reservations
        amount = reservation.wish.amount + more
        changes = {reservation.id: {"amount": amount}}
        before = self.cloud.slots(lease.id)
        free = self.free(lease.interval, reservation.wish.size)
        try:
            change.update(self.cloud.world, lease.id, Update(wishes=changes))
        except errors.Conflict:
            if reservation.wish.affinity is None:
                assert sum(free.values()) < more
            assert self.cloud.slots(lease.id) == before
            return
        after = self.cloud.slots(lease.id)
        assert len(after) == amount
        if lease.status == state.LeaseStatus.ACTIVE:
            assert all(after.count(host) >= before.count(host) for host in (1, 2))

    @invariant()
    def nothing_is_promised_twice(self) -> None:
        for hours in range(40):
            hour = self.start + hours * HOUR
            if any(each.interval.end > hour for each in self.all()):
                assert all(self.used(host, hour) <= CAPACITY for host in (1, 2))

    @invariant()
    def every_lease_is_where_it_should_be(self) -> None:
        for lease in self.all():
            if self.now < lease.interval.start:
                assert lease.status == state.LeaseStatus.PENDING
            elif self.now < lease.interval.end:
                assert lease.status == state.LeaseStatus.ACTIVE
            else:
                assert lease.status == state.LeaseStatus.TERMINATED
            (reservation,) = lease.reservations
            over = lease.status == state.LeaseStatus.TERMINATED
            slots = self.cloud.slots(lease.id)
            assert len(slots) == (0 if over else reservation.wish.amount)
            if reservation.wish.affinity is not None and not over:
                apart = 1 if reservation.wish.affinity else len(slots)
                assert len(set(slots)) == apart

    @invariant()
    def placement_has_what_was_promised(self) -> None:
        self.cloud.assert_consistent()

    def teardown(self) -> None:
        for lease in self.all():
            termination.delete(self.cloud.world, lease.id)
        assert self.cloud.classes() == set()
        assert self.cloud.count_slots() == 0


@pytest.mark.parametrize("cleaning", [0 * HOUR, HOUR, 2 * HOUR])
def test_leases_over_time(cloud: Cloud, cleaning: datetime.timedelta) -> None:
    cloud.world = dataclasses.replace(cloud.world, rules=Rules(cleaning=cleaning))
    machine: Any = type("Machine", (Leases,), {"cloud": cloud})
    run_state_machine_as_test(
        machine,
        settings=hypothesis.settings(
            max_examples=60 if THOROUGH else 2,
            stateful_step_count=20 if THOROUGH else 8,
        ),
    )
