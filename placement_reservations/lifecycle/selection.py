"""Which slots a lease gets: on suitable hosts, besides the slots already promised."""

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence

import sqlalchemy as sa

from placement_foundation import errors
from placement_reservations import capacity, requirement
from placement_reservations.capacity import Holding, Interval, NotEnough
from placement_reservations.store import host as hosts
from placement_reservations.store.host import Host
from placement_reservations.store.lease import Reservation, Wish

NOT_ENOUGH = "Not enough hosts available"
# Where the slots that a refusal counts are, keyed by affinity.
WHERE = {None: "", True: " on one host", False: ", each on a different host"}
# A refusal names so many hosts. By number: the names of hosts are for administrators.
MOST_HOSTS = 10


class NoRoom(errors.Conflict):
    """There are not enough slots for a new lease; the message says what is missing."""


# How many slots on each host, keyed by host id.
Slots = dict[int, int]


def parse_requirement(connection: sa.Connection, text: str) -> requirement.Requirement:
    """Return what a reservation requires of its hosts.

    :raises BadRequest: it is malformed, or names a property that no host has
    """
    known = {*hosts.COLUMNS, *hosts.list_capability_names(connection)}
    try:
        return requirement.parse(text, known)
    except requirement.Malformed as exc:
        raise errors.BadRequest(str(exc)) from exc


class Selection:
    """The choice of slots for the reservations of one lease, one after the other.

    Slots chosen earlier count when later ones are chosen.

    :param holdings: the slots promised to others
    """

    def __init__(
        self,
        known: Sequence[Host],
        holdings: Iterable[Holding],
        interval: Interval,
        cleaning: datetime.timedelta,
    ) -> None:
        self._hosts = known
        self._interval = interval
        self._cleaning = cleaning
        self._suitable: dict[requirement.Requirement, dict[int, capacity.Size]] = {}
        self._held = capacity.by_host(
            each for each in holdings if each.overlaps(interval, cleaning)
        )

    def choose(
        self,
        reservation: Reservation,
        required: requirement.Requirement,
        held: Mapping[int, int] | None = None,
    ) -> Slots:
        """Return the slots of a reservation, both those it holds and new ones.

        :param held: slots to keep
        :raises Conflict: there are not enough slots
        """
        wish = reservation.wish
        offers = capacity.offers(
            self._list_suitable(required),
            self._held,
            self._interval,
            wish.size,
            self._cleaning,
        )
        try:
            chosen = capacity.choose(offers, wish.amount, wish.affinity, held)
        except NotEnough as exc:
            raise errors.Conflict(NOT_ENOUGH) from exc
        added = {
            host_id: count - (held or {}).get(host_id, 0)
            for host_id, count in chosen.items()
        }
        self.hold(reservation, added)
        return chosen

    def explain(
        self, reservation: Reservation, required: requirement.Requirement
    ) -> str:
        """Return in sentences why a reservation gets no slots: what each host lacks."""
        wish = reservation.wish
        rooms = []
        sentences = []
        for host in self._hosts:
            lack = _unsuitable(host, required)
            room = 0 if lack else self._room(host.size, host.id, wish)
            rooms.append(room)
            if not lack and not room:
                names = capacity.list_short(
                    host.size,
                    self._held.get(host.id, ()),
                    self._interval,
                    wish.size,
                    self._cleaning,
                )
                lack = f"has too little {', '.join(names)}"
            sentences.append(f"Host {host.id} {lack or f'has room for {room}'}.")
        more = len(sentences) - MOST_HOSTS
        if more > 0:
            sentences[MOST_HOSTS:] = [f"There are {more} more hosts."]
        free = f"{count_usable(rooms, wish)} of {wish.amount} slots are free"
        count = f"{NOT_ENOUGH}: {free}{WHERE[wish.affinity]}."
        return " ".join([count, *sentences])

    def hold(self, reservation: Reservation, slots: Mapping[int, int]) -> None:
        """Count slots as promised."""
        for host_id, count in slots.items():
            if count:
                new = Holding(
                    host_id,
                    reservation.id,
                    self._interval,
                    reservation.wish.size,
                    count,
                )
                self._held.setdefault(host_id, []).append(new)

    def drop(self, reservation: Reservation) -> None:
        """Stop counting the slots of a reservation as promised."""
        for there in self._held.values():
            there[:] = [each for each in there if each.reservation_id != reservation.id]

    def fits(
        self,
        reservation: Reservation,
        required: requirement.Requirement,
        slots: Mapping[int, int],
    ) -> bool:
        """Return whether slots are free, on suitable hosts, and as the wish asks."""
        wish = reservation.wish
        sizes = self._list_suitable(required)
        return _is_as_wished(wish, slots) and all(
            host_id in sizes and self._room(sizes[host_id], host_id, wish) >= count
            for host_id, count in slots.items()
        )

    def has_room(self, reservation: Reservation, slots: Mapping[int, int]) -> bool:
        """Return whether slots are free, on any hosts."""
        sizes = {host.id: host.size for host in self._hosts}
        return all(
            self._room(sizes[host_id], host_id, reservation.wish) >= count
            for host_id, count in slots.items()
        )

    def _list_suitable(
        self, required: requirement.Requirement
    ) -> dict[int, capacity.Size]:
        # Many reservations of a lease may ask for the same.
        if required not in self._suitable:
            self._suitable[required] = suitable(self._hosts, required)
        return self._suitable[required]

    def _room(self, size: capacity.Size, host_id: int, wish: Wish) -> int:
        there = self._held.get(host_id, ())
        return capacity.count_free(
            size, there, self._interval, wish.size, self._cleaning
        )


def suitable(
    known: Sequence[Host], required: requirement.Requirement
) -> dict[int, capacity.Size]:
    """Return the sizes of the hosts that meet a requirement, keyed by id."""
    return {
        host.id: host.size
        for host in known
        if host.reservable
        and (not required or requirement.holds(required, host.properties))
    }


def _unsuitable(host: Host, required: requirement.Requirement) -> str:
    """Return why a host is not suitable, nothing if it is."""
    if not host.reservable:
        return "cannot be used now"
    for comparison in required:
        if not requirement.holds((comparison,), host.properties):
            return f"does not meet {comparison}"
    return ""


def count_usable(rooms: Collection[int], wish: Wish) -> int:
    """Return how many of the slots that hosts have room for a wish can have at most."""
    if wish.affinity:
        return max(rooms, default=0)
    return sum(rooms if wish.affinity is None else (min(room, 1) for room in rooms))


def _is_as_wished(wish: Wish, slots: Mapping[int, int]) -> bool:
    counts = [count for count in slots.values() if count]
    if wish.affinity:
        return len(counts) <= 1
    return wish.affinity is None or all(count == 1 for count in counts)


def trim(slots: Mapping[int, int], amount: int) -> Slots:
    """Return the first slots, up to an amount."""
    left: Slots = {}
    for host_id, count in slots.items():
        kept = min(count, amount - sum(left.values()))
        if kept:
            left[host_id] = kept
    return left
