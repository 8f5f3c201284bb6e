"""Which slots a lease gets: on suitable hosts, besides the slots already promised."""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence

import sqlalchemy as sa

from placement_foundation import errors
from placement_reservations import capacity, requirement
from placement_reservations.capacity import Holding, Interval, Size
from placement_reservations.store import host as hosts
from placement_reservations.store.host import Host
from placement_reservations.store.lease import Reservation, Wish

NOT_ENOUGH = "Not enough hosts available"
# The place of the slots in a refusal, keyed by affinity.
WHERE = {None: "", True: " on one host", False: ", each on a different host"}
# A host may lack resources because of servers without a slot.
OTHERS = ", as servers without a reservation are on it"
# A refusal names so many hosts. By number: the names of hosts are for administrators.
MOST_HOSTS = 10


class NoRoom(errors.Conflict):
    """There are not enough slots; the message says what each host lacks."""


# How many slots on each host, keyed by host id.
Slots = dict[int, int]


def parse_requirement(connection: sa.Connection, text: str) -> requirement.Requirement:
    """Return the requirement of a reservation on its hosts.

    :raises BadRequest: it is malformed, or names a property that no host has
    """
    properties = {*hosts.COLUMNS, *hosts.list_capability_names(connection)}
    try:
        return requirement.parse(text, properties)
    except requirement.Malformed as exc:
        raise errors.BadRequest(str(exc)) from exc


class Selection:
    """The choice of slots for the reservations of one lease, one after the other.

    Slots chosen earlier count when later ones are chosen.

    :param holdings: the slots promised to others
    :param interval: when the lease uses its hosts, the cleaning after it included
    """

    def __init__(
        self,
        known: Sequence[Host],
        holdings: Iterable[Holding],
        interval: Interval,
    ) -> None:
        self._hosts = known
        self._interval = interval
        self._held = capacity.by_host(
            each for each in holdings if each.overlaps(interval)
        )

    def choose(
        self,
        reservation: Reservation,
        required: requirement.Requirement,
        held: Mapping[int, int] | None = None,
    ) -> Slots:
        """Return the slots of a reservation, both those it holds and new ones.

        :param held: slots to keep
        :raises NotEnough: there are not enough slots
        """
        wish = reservation.wish
        rooms = suitable(self._hosts, required, wish.size)
        # Hosts in use in the interval come first.
        host_ids = sorted(rooms, key=lambda host_id: not self._held.get(host_id))
        offers = (
            (host_id, self._count_free(host_id, rooms[host_id], wish.size))
            for host_id in host_ids
        )
        chosen = capacity.choose(offers, wish.amount, wish.affinity, held)
        added = {
            host_id: count - (held or {}).get(host_id, 0)
            for host_id, count in chosen.items()
        }
        self.hold(reservation, added)
        return chosen

    def choose_anew(
        self,
        reservation: Reservation,
        required: requirement.Requirement,
        held: Mapping[int, int],
    ) -> Slots:
        """Return slots besides those it holds, or others if these are not enough.

        :raises NotEnough: there are not enough slots
        """
        try:
            return self.choose(reservation, required, held)
        except capacity.NotEnough:
            if not held:
                raise
            self.drop(reservation)
            return self.choose(reservation, required)

    def explain(
        self, reservation: Reservation, required: requirement.Requirement
    ) -> str:
        """Return in sentences why a reservation gets no slots: what each host lacks."""
        wish = reservation.wish
        rooms = []
        sentences = []
        for host in self._hosts:
            lack = _unsuitable(host, required)
            room = 0 if lack else self._room(host, wish)
            rooms.append(room)
            if not lack and not room:
                lack = self._lack(host, wish)
            sentences.append(f"Host {host.id} {lack or f'has room for {room}'}.")
        free = f"{count_usable(rooms, wish)} of {wish.amount} slots are free"
        return _refusal(f"{free}{WHERE[wish.affinity]}", sentences)

    def explain_kept(self, reservation: Reservation, slots: Mapping[int, int]) -> str:
        """Return in sentences why a reservation cannot keep the slots that it has."""
        sentences = []
        for host in (each for each in self._hosts if each.id in slots):
            room = self._room(host, reservation.wish)
            if room < slots[host.id]:
                lack = (
                    f"has room for {room}"
                    if room
                    else self._lack(host, reservation.wish)
                )
                sentences.append(f"Host {host.id} {lack}.")
        return _refusal("what has started stays on its hosts", sentences)

    def _lack(self, host: Host, wish: Wish) -> str:
        """Return what a host lacks for one more slot."""
        there = self._held.get(host.id, ())
        return describe_lack(host, wish.size, wish.size, there, self._interval)

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

    def list_held(self, reservation: Reservation) -> list[Holding]:
        """Return the slots of a reservation that count as promised."""
        held = itertools.chain.from_iterable(self._held.values())
        return [each for each in held if each.reservation_id == reservation.id]

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
        """Return whether slots are free, on suitable hosts, and match the wish."""
        wish = reservation.wish
        rooms = suitable(self._hosts, required, wish.size)
        return (
            _is_as_wished(wish, slots)
            and slots.keys() <= rooms.keys()
            and self.has_room(reservation, slots)
        )

    def has_room(self, reservation: Reservation, slots: Mapping[int, int]) -> bool:
        """Return whether slots are free, on any hosts."""
        return all(
            self._room(host, reservation.wish) >= slots[host.id]
            for host in self._hosts
            if host.id in slots
        )

    def _room(self, host: Host, wish: Wish) -> int:
        return self._count_free(host.id, host.room_for(wish.size), wish.size)

    def _count_free(self, host_id: int, room: Size, size: Size) -> int:
        there = self._held.get(host_id, ())
        return capacity.count_free(room, there, self._interval, size)


def suitable(
    known: Sequence[Host], required: requirement.Requirement, size: Size
) -> dict[int, Size]:
    """Return the room for slots of a size on hosts that meet a requirement, by id."""
    return {
        host.id: host.room_for(size)
        for host in known
        if not _unsuitable(host, required)
    }


def _unsuitable(host: Host, required: requirement.Requirement) -> str:
    """Return why a host is not suitable, nothing if it is."""
    if not host.reservable:
        return "cannot be used now"
    for comparison in required:
        if not requirement.holds((comparison,), host.properties):
            return f"does not meet {comparison}"
    return ""


def describe_lack(
    host: Host,
    use: Size,
    size: Size,
    held: Sequence[Holding],
    interval: Interval,
) -> str:
    """Return why a host cannot have slots of a size besides those that are held.

    :param use: the use of all the slots
    """
    refused = host.limits.list_refused(size)
    if refused:
        return f"gives no server such an amount of {', '.join(refused)}"
    names = capacity.list_short(host.room, held, interval, use)
    used = "" if host.limits.used == Size() else OTHERS
    return f"has too little {', '.join(names)}{used}"


def _refusal(summary: str, sentences: list[str]) -> str:
    more = len(sentences) - MOST_HOSTS
    if more > 0:
        sentences[MOST_HOSTS:] = [f"There are {more} more hosts."]
    return " ".join([f"{NOT_ENOUGH}: {summary}.", *sentences])


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
