"""The data carried from Blazar, and how it is stored: all of it, or nothing."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import sqlalchemy as sa

from placement_reservations import capacity, state
from placement_reservations.blazar import judging
from placement_reservations.blazar.reading import Row, Source
from placement_reservations.capacity import Holding, Interval, Size
from placement_reservations.db import models
from placement_reservations.store import debt as debts
from placement_reservations.store import flavor as flavors
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases
from placement_reservations.store import row as store_row
from placement_reservations.store.debt import Debt

# The reason of a lease that was degraded in Blazar, until the hosts are checked.
LACKS = "Some of its hosts had failed in Blazar."


class NotCarried(Exception):
    """Something cannot be carried, so nothing is."""

    def __init__(self, refusals: Sequence[str]) -> None:
        super().__init__(f"{len(refusals)} things cannot be carried")
        self.refusals = refusals


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """The data that is carried: new ``rows`` of our tables, in the order to store them.

    So many other hosts are ``known``, and so many leases ``present``: they were here
    already. ``private`` names the capabilities for administrators only.
    ``left_in_nova`` names objects of Blazar in Nova that this service does not need, a
    line for each reservation. ``displaced`` counts the slots of a reservation that do
    not fit on their hosts, keyed by its id.
    """

    rows: Mapping[type[models.Base], Sequence[Row]]
    private: frozenset[str]
    known: int
    present: int
    left_out: int
    left_in_nova: Sequence[str]
    displaced: Mapping[str, int]


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
    new = {
        row["id"]: {
            **row,
            "id": numbers[row["id"]],
            "service_name": row["service_name"] or row["hypervisor_hostname"],
        }
        for row in source.hosts
        if row["id"] in numbers and row["hypervisor_hostname"] not in here
    }
    wanted = [row for row in source.leases if judging.is_wanted(row, left_out)]
    carried = [row for row in wanted if row["id"] not in present]
    rows: dict[type[models.Base], Sequence[Row]] = {
        models.ComputeHost: list(new.values()),
        models.ExtraCapability: [
            {**row, "computehost_id": numbers[row["computehost_id"]]}
            for row in source.capabilities
            if row["computehost_id"] in new
        ],
        models.Lease: carried,
        **_list_parts(source, carried, numbers),
    }
    return Load(
        rows,
        private=source.private,
        known=len(numbers) - len(new),
        present=len(wanted) - len(carried),
        left_out=len(source.leases) - len(wanted),
        left_in_nova=list(_list_left(source, rows[models.Reservation])),
        displaced=_count_displaced(new.values(), rows[models.Allocation]),
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


def _list_parts(
    source: Source, carried: Sequence[Row], numbers: Mapping[str, int]
) -> dict[type[models.Base], list[Row]]:
    """Return the rows of all that belongs to leases, by table."""
    reservations = [
        _reservation(row, position)
        for lease in carried
        for position, row in enumerate(source.reservations[lease["id"]])
    ]
    slots = (
        _list_slots(source, lease, row, numbers)
        for lease in carried
        for row in source.reservations[lease["id"]]
    )
    events = (source.events[lease["id"]] for lease in carried)
    return {
        models.Reservation: reservations,
        models.InstanceReservation: [_wish(source, row) for row in reservations],
        models.Event: list(itertools.chain.from_iterable(events)),
        models.Allocation: list(itertools.chain.from_iterable(slots)),
    }


def _reservation(row: Row, position: int) -> Row:
    kept = {name: value for name, value in row.items() if name != "missing_resources"}
    lacks = LACKS if row["missing_resources"] else None
    return {**kept, "position": position, "lacks": lacks}


def _wish(source: Source, reservation: Row) -> Row:
    wish = source.wishes[reservation["resource_id"]]
    names = ("id", "reservation_id", "affinity", "amount", *capacity.RESOURCES)
    return {
        **{name: wish[name] for name in names},
        "resource_properties": judging.requirement_of(wish),
        "flavor_id": reservation["id"],
    }


def _list_slots(
    source: Source, lease: Row, reservation: Row, numbers: Mapping[str, int]
) -> Iterator[Row]:
    """Yield a row for each slot of a reservation that is not over."""
    if reservation["status"] == state.ReservationStatus.DELETED:
        return
    wish = source.wishes[reservation["resource_id"]]
    for host_id, count in source.slots.get(reservation["id"], {}).items():
        slot = {
            "computehost_id": numbers[host_id],
            "reservation_id": reservation["id"],
            "start_date": lease["start_date"],
            "end_date": lease["end_date"],
            **{name: wish[name] for name in capacity.RESOURCES},
            "wanted": False,
        }
        yield from [slot] * count


def _list_left(source: Source, carried: Sequence[Row]) -> Iterator[str]:
    for each in carried:
        wish = source.wishes[each["resource_id"]]
        made = {
            "host aggregate": wish["aggregate_id"],
            "server group": wish["server_group_id"],
        }
        named = " and ".join(f"{kind} {key}" for kind, key in made.items() if key)
        if named and each["status"] != state.ReservationStatus.DELETED:
            yield f"{named} of reservation {each['id']}"


def _count_displaced(new: Iterable[Row], slots: Sequence[Row]) -> Counter[str]:
    """Return how many slots do not fit where Blazar promised them.

    Blazar counts several slots of a reservation on one host as one.
    """
    held = capacity.by_host(
        Holding(
            slot["computehost_id"],
            slot["reservation_id"],
            Interval(slot["start_date"], slot["end_date"]),
            Size(*(slot[name] for name in capacity.RESOURCES)),
            count=1,
        )
        for slot in slots
    )
    displaced: Counter[str] = Counter()
    for host in new:
        size = Size(host["vcpus"], host["memory_mb"], host["local_gb"])
        displaced += Counter(capacity.count_displaced(size, held.get(host["id"], [])))
    return displaced


def store(connection: sa.Connection, load: Load, *, with_flavors: bool) -> None:
    """Store the data that is carried.

    The event loop compares Placement with this, and repairs Placement. Flavors of
    active leases in Nova are left as Blazar made them.

    :param with_flavors: whether this service has the flavors, and not Nova
    """
    for model, new in load.rows.items():
        for row in new:
            store_row.insert(connection, model, **row)
    hosts.number_after(connection)
    capabilities = {row["name"] for row in load.rows[models.ExtraCapability]}
    for name in sorted(capabilities & load.private):
        hosts.set_private(connection, name, True)
    names = [row["hypervisor_hostname"] for row in load.rows[models.ComputeHost]]
    debts.insert(connection, [Debt(hosts.subject(name), None, name) for name in names])
    carried = {row["id"] for row in load.rows[models.Lease]}
    for lease in leases.list_leases(connection):
        for each in lease.reservations if lease.id in carried else ():
            if each.status == state.ReservationStatus.PENDING:
                debts.insert(connection, [Debt(leases.subject(lease.id), each.id)])
            if with_flavors and each.status != state.ReservationStatus.DELETED:
                flavors.put(connection, flavors.flavor_of(each))
                if each.status == state.ReservationStatus.ACTIVE:
                    flavors.set_project(connection, each.id, lease.project_id)
