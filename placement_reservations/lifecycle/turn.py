"""The periodic work: end operations, check hosts, run due events."""

import datetime
import threading
from collections.abc import Callable, Iterable

import sqlalchemy as sa
from oslo_log import log

from placement_foundation.observing import telemetry
from placement_reservations import measure, state
from placement_reservations.lifecycle import (
    activation,
    health,
    recovery,
    termination,
    watching,
)
from placement_reservations.store import claim as claims
from placement_reservations.store import event as events
from placement_reservations.store import lease as leases
from placement_reservations.store.lease import Event
from placement_reservations.world import World

LOG = log.getLogger(__name__)

# How long after a turn another one is due by default: see ``event_interval``.
PAUSE_SECONDS = 10


class Loop:
    """Takes turns. Any number of processes may do so on one database."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._pause = datetime.timedelta(seconds=PAUSE_SECONDS)
        self._turned = world.clock.now()
        self._grace = watching.NO_GRACE

    def turn(self) -> None:
        """Do all the work that is due now."""
        self._turned = self._world.clock.now()
        recovery.recover(self._world)
        try:
            self._watch()
        except claims.Lost as exc:
            LOG.info("the watch ends: %s", exc)
        self._run_events()

    def _run_events(self) -> None:
        run_due(self._world)
        retry_ends(self._world)
        _report(self._world)

    def _meanwhile(self) -> None:
        """Do the due work between two hosts, if it is time for another turn."""
        now = self._world.clock.now()
        if not now - self._pause < self._turned <= now:
            self._turned = now
            recovery.recover(self._world)
            self._run_events()

    def _watch(self) -> None:
        """Check the hosts, if it is time to, and no other process does."""
        began = self._world.clock.now()
        claim = watching.begin(self._world, self._grace)
        if claim is None:
            return

        def between() -> None:
            self._meanwhile()
            watching.go_on(self._world, claim)

        overused = None
        try:
            overused = health.watch(self._world, between)
        except claims.Lost:
            raise
        except Exception:
            # Leases start and end all the same.
            LOG.exception("hosts are not checked until the next watch")
        # Others may reach services that do not answer here, so they go first next time.
        self._grace = self._pause if overused is None else watching.NO_GRACE
        watching.end(self._world, claim, began, overused)

    def run(self, seconds: float, stop: threading.Event) -> None:
        """Take turns, some seconds apart, until it is stopped."""
        self._pause = datetime.timedelta(seconds=seconds)
        while not stop.is_set():
            try:
                self.turn()
            except Exception:
                LOG.exception("this turn failed")
            stop.wait(seconds)


def _report(world: World) -> None:
    """Record the metrics that are read from the tables, by every process."""
    now = world.clock.now()

    def read(connection: sa.Connection) -> dict[telemetry.Measure, int]:
        return {
            measure.OVERDUE_EVENTS: len(events.list_due(connection, now)),
            measure.LEASES_DEGRADED: leases.count_degraded(connection),
            measure.SLOTS_OVERUSED: watching.count_overused(connection),
        }

    for what, count in world.database.read(read).items():
        telemetry.record(what, count)


def run_due(world: World) -> None:
    """Run all events whose time has come, however long ago.

    The next event of a lease may come before all others that are due: after an outage,
    a lease whose notice was missed ends before another one starts.
    """
    done: set[str] = set()
    while due := [event for event in _list_due(world) if event.id not in done]:
        first = due[0].event_type, due[0].time
        now = [event for event in due if (event.event_type, event.time) == first]
        done.update(event.id for event in now)
        _run_all(world, now)


def _list_due(world: World) -> list[Event]:
    now = world.clock.now()
    return world.database.read(lambda connection: events.list_due(connection, now))


def retry_ends(world: World) -> None:
    """Retry ends that failed some time ago, so that nothing is left for ever."""
    now = world.clock.now()
    before = now - world.rules.retry
    _run_all(
        world,
        world.database.read(
            lambda connection: events.list_failed_ends(connection, before, now)
        ),
    )


def start_now(world: World, lease_id: str) -> None:
    """Start a lease, if its time has come."""
    mine = (event for event in _list_due(world) if event.lease_id == lease_id)
    starts = [event for event in mine if event.event_type == state.EventType.START]
    _run_all(world, starts)


def _run_all(world: World, due: Iterable[Event]) -> None:
    for event in due:
        try:
            RUN[event.event_type](world, event)
        except (claims.Busy, claims.Lost) as exc:
            LOG.debug("event %s is not run here: %s", event.id, exc)
        except Exception:
            LOG.exception("event %s failed", event.id)


def _notify(world: World, event: Event) -> None:
    """Log, once, that a lease ends soon."""
    now = world.clock.now()

    def work(connection: sa.Connection) -> bool:
        return events.begin(connection, event, now, state.EventStatus.DONE)

    if world.database.write(work):
        LOG.info("lease %s ends soon", event.lease_id)


RUN: dict[state.EventType, Callable[[World, Event], None]] = {
    state.EventType.START: activation.start,
    state.EventType.BEFORE_END: _notify,
    state.EventType.END: termination.end,
}
