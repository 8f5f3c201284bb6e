"""The states of leases, reservations and events, and the transitions between them."""

import enum


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


STABLE = (
    LeaseStatus.PENDING,
    LeaseStatus.ACTIVE,
    LeaseStatus.TERMINATED,
    LeaseStatus.ERROR,
)

# The states to which a lease can move from each state.
TRANSITIONS: dict[LeaseStatus, frozenset[LeaseStatus]] = {
    LeaseStatus.CREATING: frozenset({LeaseStatus.PENDING, LeaseStatus.DELETING}),
    LeaseStatus.PENDING: frozenset(
        {LeaseStatus.STARTING, LeaseStatus.UPDATING, LeaseStatus.DELETING}
    ),
    LeaseStatus.STARTING: frozenset(
        {LeaseStatus.ACTIVE, LeaseStatus.ERROR, LeaseStatus.DELETING}
    ),
    LeaseStatus.ACTIVE: frozenset(
        {LeaseStatus.TERMINATING, LeaseStatus.UPDATING, LeaseStatus.DELETING}
    ),
    LeaseStatus.TERMINATING: frozenset(
        {LeaseStatus.TERMINATED, LeaseStatus.ERROR, LeaseStatus.DELETING}
    ),
    LeaseStatus.TERMINATED: frozenset({LeaseStatus.UPDATING, LeaseStatus.DELETING}),
    LeaseStatus.ERROR: frozenset(
        {LeaseStatus.TERMINATING, LeaseStatus.UPDATING, LeaseStatus.DELETING}
    ),
    LeaseStatus.UPDATING: frozenset({*STABLE, LeaseStatus.DELETING}),
    LeaseStatus.DELETING: frozenset({LeaseStatus.ERROR}),
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
