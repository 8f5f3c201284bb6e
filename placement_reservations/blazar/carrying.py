"""The data carried from Blazar, and how it is stored: all of it, or nothing."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence

import sqlalchemy as sa

from placement_reservations import capacity, state
from placement_reservations.blazar import judging
from placement_reservations.blazar.reading import Row, Source
from placement_reservations.capacity import NO_LIMITS, Holding, Interval
from placement_reservations.store import allocation as allocations
from placement_reservations.store import debt as debts
from placement_reservations.store import event as events
from placement_reservations.store import flavor as flavors
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases
from placement_reservations.store import row as store_row
from placement_reservations.store.debt import Debt
from placement_reservations.store.host import Host
from placement_reservations.store.lease import Event, Lease, Reservation, Wish

# The reason of a lease that was degraded in Blazar, until the hosts are checked.
LACKS = "Some of its hosts had failed in Blazar."


class NotCarried(Exception):
    """Something cannot be carried, so nothing is."""

    def __init__(self, refusals: Sequence[str]) -> None:
        super().__init__(f"{len(refusals)} things cannot be carried")
        self.refusals = refusals


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """The data that is carried.

    ``hosts`` are new, and so many others are ``known``: they were here already.
    ``slots`` counts the slots of a reservation on each host, keyed by its id, then by
    the id of the host here. ``left_in_nova`` names objects of Blazar in Nova that this
    service does not need, a line for each reservation. ``displaced`` counts the slots
    of a reservation that do not fit on their hosts, keyed by its id.
    """

    hosts: Sequence[Host]
    known: int
    private: frozenset[str]
    leases: Sequence[Lease]
    slots: Mapping[str, Mapping[int, int]]
    present: int
    left_out: int
    left_in_nova: Sequence[str]
    displaced: Mapping[str, int]

    def count_slots(self, reservation: Reservation) -> int:
        """Return how many slots a reservation has on all hosts."""
        return sum(self.slots.get(reservation.id, {}).values())


def plan_load(
    connection: sa.Connection, source: Source, left_out: Collection[str] = ()
) -> Load:
    """Return the data to carry to the database of this service.

    :param left_out: ids of hosts and leases, ``judging.ENDED``,
        ``judging.FLOATING_IPS``
    :raises NotCarried: something cannot be carried
    """
    present = {lease.id for lease in leases.list_leases(connection)}
    refusals = list(judging.refuse(source, left_out, present))
    if refusals:
        raise NotCarried(refusals)
    here = {host.name: host.id for host in hosts.list_hosts(connection)}
    numbers = _number(source, left_out, here)
    lease_rows = [row for row in source.leases if judging.is_wanted(row, left_out)]
    carried = [_lease(source, row) for row in lease_rows if row["id"] not in present]
    slots = _number_slots(source, carried, numbers)
    new = [
        _host(source, row, numbers[row["id"]])
        for row in source.hosts
        if row["id"] in numbers and row["hypervisor_hostname"] not in here
    ]
    return Load(
        hosts=new,
        known=len(numbers) - len(new),
        private=source.private,
        leases=carried,
        slots=slots,
        present=len(lease_rows) - len(carried),
        left_out=len(source.leases) - len(lease_rows),
        left_in_nova=list(_list_left(source, carried)),
        displaced=_count_displaced(new, carried, slots),
    )


def _number(
    source: Source, left_out: Collection[str], here: Mapping[str, int]
) -> dict[str, int]:
    """Return the ids of hosts here, keyed by those in Blazar, which are kept if free.

    Blazar takes the ids of Nova's hypervisors: numbers, or UUIDs.
    """
    numbers: dict[str, int] = {}
    taken = set(here.values())
    without: list[str] = []
    for row in source.hosts:
        identifier, name = row["id"], row["hypervisor_hostname"]
        if identifier in left_out:
            continue
        if name in here:
            numbers[identifier] = here[name]
        elif hosts.is_id(identifier) and int(identifier) not in taken:
            numbers[identifier] = int(identifier)
            taken.add(int(identifier))
        else:
            without.append(identifier)
    for identifier in without:
        numbers[identifier] = max(taken, default=0) + 1
        taken.add(numbers[identifier])
    return numbers


def _number_slots(
    source: Source, carried: Sequence[Lease], numbers: Mapping[str, int]
) -> dict[str, dict[int, int]]:
    """Return how many slots reservations have, by host id here, by reservation id."""
    return {
        each.id: {
            numbers[host_id]: count
            for host_id, count in source.slots.get(each.id, {}).items()
        }
        for lease in carried
        for each in lease.reservations
        if each.status != state.ReservationStatus.DELETED
    }


def _host(source: Source, row: Row, number: int) -> Host:
    service_name = row["service_name"] or ""
    details = hosts.load_details(row, service_name=service_name, limits=NO_LIMITS)
    capabilities = {
        each["name"]: each["value"]
        for each in source.capabilities
        if each["computehost_id"] == row["id"]
    }
    times = row["created_at"], row["updated_at"]
    return Host(number, details, capabilities, *times)


def _lease(source: Source, row: Row) -> Lease:
    return store_row.load(
        Lease,
        row,
        interval=Interval(row["start_date"], row["end_date"]),
        status=state.LeaseStatus(row["status"]),
        status_reason=None,
        reservations=tuple(
            _reservation(each, source.wishes[each["resource_id"]])
            for each in source.reservations[row["id"]]
        ),
        events=tuple(
            store_row.load(
                Event,
                each,
                event_type=state.EventType(each["event_type"]),
                status=state.EventStatus(each["status"]),
            )
            for each in source.events[row["id"]]
        ),
    )


def _reservation(row: Row, wish: Row) -> Reservation:
    required = judging.requirement_of(wish)
    return store_row.load(
        Reservation,
        row,
        wish=store_row.load(Wish, wish, resource_properties=required),
        status=state.ReservationStatus(row["status"]),
        lacks=LACKS if row["missing_resources"] else None,
    )


def _list_left(source: Source, carried: Sequence[Lease]) -> Iterator[str]:
    for lease in carried:
        for each in lease.reservations:
            wish = source.wishes[each.resource_id]
            made = {
                "host aggregate": wish["aggregate_id"],
                "server group": wish["server_group_id"],
            }
            named = " and ".join(f"{kind} {key}" for kind, key in made.items() if key)
            if named and each.status != state.ReservationStatus.DELETED:
                yield f"{named} of reservation {each.id}"


def _count_displaced(
    new: Sequence[Host],
    carried: Sequence[Lease],
    slots: Mapping[str, Mapping[int, int]],
) -> dict[str, int]:
    """Return how many slots do not fit where Blazar promised them.

    Blazar counts several slots of a reservation on one host as one.
    """
    displaced: dict[str, int] = {}
    for host in new:
        held = [
            Holding(host.id, each.id, lease.interval, each.wish.size, count)
            for lease in carried
            for each in lease.reservations
            if (count := slots.get(each.id, {}).get(host.id, 0))
        ]
        for key, count in capacity.count_displaced(host.size, held).items():
            displaced[key] = displaced.get(key, 0) + count
    return displaced


def store(connection: sa.Connection, load: Load, *, with_flavors: bool) -> None:
    """Store the data that is carried.

    The event loop compares Placement with this, and repairs Placement. Flavors of
    active leases in Nova are left as Blazar made them.

    :param with_flavors: whether this service has the flavors, and not Nova
    """
    for host in load.hosts:
        hosts.insert(connection, host.details, host.capabilities, known=host)
        debts.insert(connection, [Debt(hosts.subject(host.name), None, host.name)])
    hosts.number_after(connection)
    for name in sorted({name for host in load.hosts for name in host.capabilities}):
        if name in load.private:
            hosts.set_private(connection, name, True)
    for lease in load.leases:
        leases.insert(connection, lease)
        events.insert_all(connection, lease.events)
        for each in lease.reservations:
            counts = load.slots.get(each.id, {})
            allocations.insert(
                connection, each.id, counts, lease.interval, each.wish.size
            )
            if each.status == state.ReservationStatus.PENDING:
                debts.insert(connection, [Debt(leases.subject(lease.id), each.id)])
            if with_flavors and each.status != state.ReservationStatus.DELETED:
                flavors.put(connection, flavors.flavor_of(each))
                if each.status == state.ReservationStatus.ACTIVE:
                    flavors.set_project(connection, each.id, lease.project_id)
