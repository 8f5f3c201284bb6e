"""Leases of claims: allocations that end by themselves unless they are confirmed."""

from placement.objects import leasing
from placement.objects.transaction import Transaction
from placement.operation import Call
from placement.schemas import lease as wire
from placement_foundation.http.operation import Connection, Reply, reading, writing


@writing
def renew(call: Call[str], tx: Transaction) -> Reply:
    """Give a consumer that has allocations a lease from now on, or renew it.

    :raises NotFound: the consumer has no allocations
    :raises NoLeases: the database has no table for leases
    """
    return Reply(leasing.renew(tx, call.subject, call.body["seconds"]))


@reading
def show(call: Call[str], connection: Connection) -> Reply:
    """Show until when the allocations of a consumer last.

    :raises NotFound: it has no lease
    """
    return Reply(leasing.get(connection, call.subject))


@reading
def list_leases(call: Call[None], connection: Connection) -> Reply:
    """List leases; those that end first come first."""
    query: wire.LeaseQuery = call.query
    leases = leasing.list_by_end(
        connection,
        project_id=query.project_id,
        before=query.before,
        after=query.after,
        limit=query.limit,
    )
    return Reply(wire.LeasePage(leases, len(leases) == query.limit))


@writing
def confirm(call: Call[str], tx: Transaction) -> Reply:
    """Remove the lease of a consumer, whose allocations then stay for good.

    :raises NotFound: it has no lease
    """
    leasing.confirm(tx, call.subject)
    return Reply()
