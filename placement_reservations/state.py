"""The states of leases, reservations and events, and the transitions between them."""

import enum
from collections.abc import Collection


class LeaseStatus(enum.StrEnum):
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


class ReservationStatus(enum.StrEnum):
    """The state of a reservation."""

    PENDING = "pending"
    ACTIVE = "active"
    DELETED = "deleted"
    ERROR = "error"


class EventStatus(enum.StrEnum):
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


S = LeaseStatus
STABLE = (S.PENDING, S.ACTIVE, S.TERMINATED, S.ERROR)

# The states to which a lease can move from each state.
TRANSITIONS: dict[LeaseStatus, Collection[LeaseStatus]] = {
    S.CREATING: {S.PENDING, S.DELETING},
    S.PENDING: {S.STARTING, S.UPDATING, S.DELETING},
    S.STARTING: {S.ACTIVE, S.ERROR, S.DELETING},
    S.ACTIVE: {S.TERMINATING, S.UPDATING, S.DELETING},
    S.TERMINATING: {S.TERMINATED, S.ERROR, S.DELETING},
    S.TERMINATED: {S.UPDATING, S.DELETING},
    S.ERROR: {S.TERMINATING, S.UPDATING, S.DELETING},
    S.UPDATING: {*STABLE, S.DELETING},
    S.DELETING: {S.ERROR},
}


def sources(target: LeaseStatus, *, stable: bool = True) -> list[LeaseStatus]:
    """Return the states from which a lease may move to another one.

    :param stable: only those in which no operation is in progress on the lease
    """
    return [
        source
        for source, targets in TRANSITIONS.items()
        if target in targets and (source in STABLE or not stable)
    ]
