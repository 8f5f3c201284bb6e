"""The states of leases, reservations and events, and the transitions between them."""

import enum


class Lease(enum.StrEnum):
    """The state of a lease."""

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
    """The state of a reservation."""

    PENDING = "pending"
    ACTIVE = "active"
    DELETED = "deleted"
    ERROR = "error"


class Event(enum.StrEnum):
    """The state of an event."""

    UNDONE = "UNDONE"
    IN_PROGRESS = "IN_PROGRESS"
    DONE = "DONE"
    ERROR = "ERROR"


class EventType(enum.StrEnum):
    """The events of a lease, in the order in which they happen."""

    START = "start_lease"
    BEFORE_END = "before_end_lease"
    END = "end_lease"


STABLE = (Lease.PENDING, Lease.ACTIVE, Lease.TERMINATED, Lease.ERROR)

# The states to which a lease can move from each state.
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
    """Return the states from which a lease may move to another one.

    :param stable: only those in which no operation is in progress on the lease
    """
    return [
        source
        for source, targets in TRANSITIONS.items()
        if target in targets and (source in STABLE or not stable)
    ]
