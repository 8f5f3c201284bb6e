"""Audits: the results of comparing claims with live consumers."""

from typing import Any

from placement import errors
from placement.objects import clock, note
from placement.objects.note import Topic
from placement.objects.transaction import Transaction
from placement.operation import Call
from placement_foundation.http.operation import Connection, Reply, reading, writing


@reading
def list_audits(call: Call[None], connection: Connection) -> Reply:
    """List the audits that were recorded, each as it was the last time.

    :raises UnusableTable: there is no table for them
    """
    return Reply(note.load(connection, Topic.AUDIT))


@writing
def record(call: Call[str], tx: Transaction) -> Reply:
    """Record what an audit has found, in place of what it found before.

    :raises UnusableTable: there is no table for it
    """
    moment = clock.now().isoformat(timespec="seconds")
    document = {"recorded_at": f"{moment}Z", **call.body}
    note.change(tx, Topic.AUDIT, call.subject, lambda before: document)
    return Reply()


@writing
def forget(call: Call[str], tx: Transaction) -> Reply:
    """Forget what an audit has found.

    :raises NotFound: nothing is recorded of it
    :raises UnusableTable: there is no table for it
    """

    def remove(before: Any) -> None:
        if before is None:
            raise errors.NotFound(f"No audit '{call.subject}' is recorded.")

    note.change(tx, Topic.AUDIT, call.subject, remove)
    return Reply()
