"""How many slots of a size hosts can still promise over an interval.

A slot is room for one instance. Pure functions on plain values, without a database. See
the chapter "How slots are counted" of docs/placement-reservations.rst.
"""

import dataclasses
import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

# The largest amount of each resource: the limit of the tables.
LARGEST = 0x7FFFFFFF


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """An amount of each resource: of a slot, of a host, or in use."""

    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(
            self.vcpus + other.vcpus,
            self.memory_mb + other.memory_mb,
            self.disk_gb + other.disk_gb,
        )

    def __sub__(self, other: "Size") -> "Size":
        return self + other.times(-1)

    def largest(self, other: "Size") -> "Size":
        """Return the larger amount of each resource."""
        pairs = zip(self.amounts(), other.amounts(), strict=True)
        return Size(*(max(pair) for pair in pairs))

    def times(self, count: int) -> "Size":
        """Return this size multiplied by a count."""
        return Size(self.vcpus * count, self.memory_mb * count, self.disk_gb * count)

    def amounts(self) -> tuple[int, int, int]:
        """Return the amounts, always in the same order."""
        return self.vcpus, self.memory_mb, self.disk_gb


# The resources of a size, in its order.
RESOURCES = tuple(field.name for field in dataclasses.fields(Size))


@dataclasses.dataclass(frozen=True, slots=True)
class Unit:
    """How much of a resource one server may have: ``min_unit`` and so on."""

    smallest: int = 1
    largest: int = LARGEST
    step: int = 1

    def allows(self, amount: int) -> bool:
        """Return whether a server may have an amount."""
        return not amount or (
            self.smallest <= amount <= self.largest and not amount % self.step
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a host on slots: its units, and use besides reservations."""

    units: tuple[Unit, ...] = (Unit(), Unit(), Unit())
    used: Size = Size()

    def list_refused(self, size: Size) -> list[str]:
        """Return the resources of which no server may have the amount in a size."""
        amounts = zip(RESOURCES, self.units, size.amounts(), strict=True)
        return [name for name, unit, amount in amounts if not unit.allows(amount)]


NO_LIMITS = Limits()


@dataclasses.dataclass(frozen=True, slots=True)
class Interval:
    """From its start up to, and not including, its end. UTC, without a zone."""

    start: datetime.datetime
    end: datetime.datetime

    def covers(self, other: "Interval") -> bool:
        """Return whether another interval lies within this one."""
        return self.start <= other.start and other.end <= self.end


@dataclasses.dataclass(frozen=True, slots=True)
class Holding:
    """Slots of one size that a reservation holds on a host.

    The interval ends with the cleaning after the lease.

    While a lease is changed, its reservations hold the slots that they have, and those
    that are ``wanted``: at each moment, the larger of the two counts.
    """

    host_id: int
    reservation_id: str
    interval: Interval
    size: Size
    count: int
    wanted: bool = False

    @property
    def use(self) -> Size:
        """Return the use of all its slots together."""
        return self.size.times(self.count)

    def overlaps(self, interval: Interval) -> bool:
        """Return whether it overlaps an interval."""
        return interval.start < self.interval.end and interval.end > self.interval.start


# How many slots a host can give: its id, and their number.
Offer: TypeAlias = tuple[int, int]


class NotEnough(Exception):
    """The hosts do not have enough free slots."""


def peak_use(holdings: Iterable[Holding], interval: Interval) -> Size:
    """Return the most that is used of each resource at any moment of an interval."""
    changes: list[tuple[datetime.datetime, bool, Holding]] = []
    for holding in holdings:
        if holding.overlaps(interval):
            start = max(holding.interval.start, interval.start)
            end = holding.interval.end
            changes += [(start, True, holding), (end, False, holding)]
    # A holding that ends makes room for one that begins at the same moment.
    changes.sort(key=lambda change: change[:2])
    # The slots that each reservation has, and those that it is to get.
    parts: dict[str, list[Size]] = {}
    used = peak = Size()
    for _, begins, holding in changes:
        part = parts.setdefault(holding.reservation_id, [Size(), Size()])
        used -= part[False].largest(part[True])
        part[holding.wanted] += holding.use.times(1 if begins else -1)
        used += part[False].largest(part[True])
        peak = peak.largest(used)
    return peak


def count_free(
    capacity: Size,
    holdings: Iterable[Holding],
    interval: Interval,
    size: Size,
) -> int:
    """Return how many slots of a size fit on a host besides its holdings.

    :param size: at least one amount in it is not 0
    """
    peak = peak_use(holdings, interval)
    fitting = []
    for total, used, wanted in zip(
        capacity.amounts(), peak.amounts(), size.amounts(), strict=True
    ):
        if used > total:
            return 0
        if wanted:
            fitting.append((total - used) // wanted)
    return min(fitting)


def list_short(
    capacity: Size,
    holdings: Iterable[Holding],
    interval: Interval,
    size: Size,
) -> list[str]:
    """Return the resources of which a host has too little for one more slot."""
    needed = (peak_use(holdings, interval) + size).amounts()
    amounts = zip(RESOURCES, needed, capacity.amounts(), strict=True)
    return [name for name, amount, total in amounts if amount > total]


def choose(
    offers: Iterable[Offer],
    amount: int,
    affinity: bool | None,
    held: Mapping[int, int] | None = None,
) -> dict[int, int]:
    """Return how many slots to take on each host, keyed by host id.

    :param offers: how many slots the hosts can give besides those held, best host
        first; no more of them are read than needed
    :param affinity: True for all slots on one host, False for each on a different host,
        None if it does not matter
    :param held: the slots already held, all of which are kept
    :raises NotEnough: no choice reaches the amount
    """
    held = held or {}
    missing = amount - sum(held.values())
    if missing <= 0:
        return dict(held)
    if affinity:
        added = _on_one_host(offers, missing, held)
    elif affinity is None:
        added = _fill(offers, missing)
    else:
        free = (host_id for host_id, count in offers if count and host_id not in held)
        added = _fill(((host_id, 1) for host_id in free), missing)
    return dict(Counter(held) + added)


def _on_one_host(
    offers: Iterable[Offer], missing: int, held: Mapping[int, int]
) -> Counter[int]:
    for host_id, count in offers:
        if count >= missing and (not held or host_id in held):
            return Counter({host_id: missing})
    raise NotEnough


def _fill(offers: Iterable[Offer], missing: int) -> Counter[int]:
    taken: Counter[int] = Counter()
    for host_id, count in offers:
        taken[host_id] = min(count, missing)
        missing -= taken[host_id]
        if not missing:
            return +taken
    raise NotEnough


def by_host(holdings: Iterable[Holding]) -> dict[int, list[Holding]]:
    """Return holdings in their order, keyed by the id of their host."""
    by_id: dict[int, list[Holding]] = {}
    for holding in holdings:
        by_id.setdefault(holding.host_id, []).append(holding)
    return by_id


def _has_room(capacity: Size, holdings: Sequence[Holding]) -> bool:
    """Return whether a host can keep all its holdings."""
    if not holdings:
        return True
    whole = Interval(
        min(holding.interval.start for holding in holdings),
        max(holding.interval.end for holding in holdings),
    )
    return not list_short(capacity, holdings, whole, Size())


def count_displaced(capacity: Size, holdings: Sequence[Holding]) -> dict[str, int]:
    """Return how many slots a host cannot keep, keyed by reservation id.

    :param holdings: the promised slots of the host, the most important first
    """
    if _has_room(capacity, holdings):
        return {}
    kept: list[Holding] = []
    displaced: Counter[str] = Counter()
    for holding in holdings:
        free = count_free(capacity, kept, holding.interval, holding.size)
        count = min(free, holding.count)
        if count:
            kept.append(dataclasses.replace(holding, count=count))
        displaced[holding.reservation_id] += holding.count - count
    return dict(+displaced)
