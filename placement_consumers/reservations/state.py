"""The states of leases, reservations and events, and what may become of which."""

import enum


class Lease(enum.StrEnum):
    """Where a lease is in its life."""

    CREATING = "CREATING"
    PENDING = "PENDING"
    STARTING = "STARTING"
    ACTIVE = "ACTIVE"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"
    ERROR = "ERROR"
    UPDATING = "UPDATING"
    DELETING = "DELETING"


class Reservation(enum.StrEnum):
    """Where a reservation of a lease is."""

    PENDING = "pending"
    ACTIVE = "active"
    DELETED = "deleted"
    ERROR = "error"


class Event(enum.StrEnum):
    """Whether an event is still to come."""

    UNDONE = "UNDONE"
    IN_PROGRESS = "IN_PROGRESS"
    DONE = "DONE"
    ERROR = "ERROR"


class EventType(enum.StrEnum):
    """What happens to a lease by itself, in the order of its life."""

    START = "start_lease"
    BEFORE_END = "before_end_lease"
    END = "end_lease"


STABLE = (Lease.PENDING, Lease.ACTIVE, Lease.TERMINATED, Lease.ERROR)

# What a lease in one state may become, on its way and in the end.
TRANSITIONS: dict[Lease, frozenset[Lease]] = {
    Lease.CREATING: frozenset({Lease.PENDING, Lease.DELETING}),
    Lease.PENDING: frozenset({Lease.STARTING, Lease.UPDATING, Lease.DELETING}),
    Lease.STARTING: frozenset({Lease.ACTIVE, Lease.ERROR, Lease.DELETING}),
    Lease.ACTIVE: frozenset({Lease.TERMINATING, Lease.UPDATING, Lease.DELETING}),
    Lease.TERMINATING: frozenset({Lease.TERMINATED, Lease.ERROR, Lease.DELETING}),
    Lease.TERMINATED: frozenset({Lease.UPDATING, Lease.DELETING}),
    Lease.ERROR: frozenset({Lease.TERMINATING, Lease.UPDATING, Lease.DELETING}),
    Lease.UPDATING: frozenset({*STABLE, Lease.DELETING}),
    Lease.DELETING: frozenset({Lease.ERROR}),
}


def sources(target: Lease, *, stable: bool = True) -> list[Lease]:
    """Return the states from which a lease may come into another one.

    :param stable: only those in which nothing is being done to the lease
    """
    return [
        source
        for source, targets in TRANSITIONS.items()
        if target in targets and (source in STABLE or not stable)
    ]
