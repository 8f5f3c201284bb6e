"""Promises of slots on hosts that have just been checked.

The details of a host in the tables are as old as the last watch. Slots are chosen by
them, but only promised once the chosen hosts have been checked; if one of them has less
than it had, slots are chosen again.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

import sqlalchemy as sa

from placement_reservations.capacity import NotEnough
from placement_reservations.lifecycle import execution
from placement_reservations.lifecycle.selection import NoRoom, Selection, Slots
from placement_reservations.requirement import Requirement
from placement_reservations.store import host as hosts
from placement_reservations.store.host import Details, Host
from placement_reservations.store.lease import Reservation
from placement_reservations.world import World

T = TypeVar("T")
# A refusal of a lease waits until so many hosts have been checked.
MOST_BEFORE_REFUSAL = 50


class _Unseen(Exception):
    """Hosts have to be checked before slots on them are promised, or refused."""

    def __init__(self, unseen: Collection[Host]) -> None:
        super().__init__()
        self.hosts = unseen


class Sight:
    """All hosts, locked until the transaction ends, and those just checked."""

    def __init__(self, known: Sequence[Host], seen: Collection[str]) -> None:
        self.hosts = known
        self._unseen = [host for host in known if host.name not in seen]
        self._left = max(0, MOST_BEFORE_REFUSAL - len(seen))

    def require(self, host_ids: Collection[int]) -> None:
        """Go on only if these hosts have been checked; otherwise begin again then."""
        unseen = [host for host in self._unseen if host.id in host_ids]
        if unseen:
            raise _Unseen(unseen)

    def require_before_refusal(self) -> None:
        """Go on only if hosts that may have grown have been checked.

        Their number is limited: the watch finds the others.
        """
        self.require([host.id for host in self._unseen[: self._left]])

    def choose(
        self,
        chosen: Selection,
        reservation: Reservation,
        required: Requirement,
        kept: Mapping[int, int],
    ) -> Slots:
        """Return the slots of a reservation, with those that it keeps if possible.

        :raises NoRoom: there are not enough slots
        """
        # Other hosts may have room for all of a reservation that has not started.
        choose = chosen.choose if reservation.has_started else chosen.choose_anew
        try:
            return choose(reservation, required, kept)
        except NotEnough as exc:
            self.require_before_refusal()
            raise NoRoom(chosen.explain(reservation, required)) from exc


def promise(world: World, work: Callable[[sa.Connection, Sight], T]) -> T:
    """Run a transaction that promises slots.

    :raises NoRoom: ``work`` raised it
    :raises Unavailable: a host cannot be checked
    """
    # By the name of the host: an embedded database uses the id of one that is removed
    # again.
    seen: dict[str, Details] = {}

    def keep(connection: sa.Connection) -> list[Host]:
        return _apply(connection, seen)

    def attempt(connection: sa.Connection) -> T:
        return work(connection, Sight(keep(connection), seen))

    while True:
        try:
            return world.database.write(attempt)
        except _Unseen as exc:
            with execution.reported():
                seen |= {host.name: look(world, host) for host in exc.hosts}
        except NoRoom:
            # The details are stored for a search for another time.
            world.database.write(keep)
            raise


def look(world: World, host: Host) -> Details:
    """Return the details of a host as it is now; if it is gone, it is not available."""
    gone = dataclasses.replace(host.details, available=False)
    return world.compute.find_host(host.name) or gone


def _apply(connection: sa.Connection, seen: Mapping[str, Details]) -> list[Host]:
    """Store new details of hosts, and return all hosts, locked.

    Only the watch makes a host reservable again.
    """
    locked = []
    for host in hosts.lock_hosts(connection):
        details = seen.get(host.name)
        if details:
            available = host.reservable and details.available
            details = dataclasses.replace(details, available=available)
            if details != host.details:
                hosts.update(connection, host.id, details)
            host = dataclasses.replace(host, details=details)
        locked.append(host)
    return locked
