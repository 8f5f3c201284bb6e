"""Declared hardware: applied as a whole, and what was declared."""

from placement.declaration import applying, naming
from placement.declaration import reading as declarations
from placement.operation import Call
from placement.schemas import declaration as wire
from placement_foundation.http.operation import Connection, Reply, reading


def apply(call: Call[None]) -> Reply:
    """Compare declared trees with what there is, and write what differs.

    Each tree is done or untouched. What prevents one of them is its result.

    :raises BadRequest: something is declared twice, or cannot be
    :raises UnusableTable: there is no table to remember declarations in
    """
    asked, cache = wire.parse(call.body), call.context.forest_cache
    foreseen = call.read(lambda connection: applying.foresee(connection, asked, cache))
    if call.body.get("dry_run"):
        return Reply(foreseen)
    return Reply(applying.apply(call.ledger, asked, foreseen))


@reading
def list_declared(call: Call[None], connection: Connection) -> Reply:
    """List what was declared, and how what is there differs from it.

    :raises UnusableTable: there is no table to remember declarations in
    """
    query: wire.DeclaredQuery = call.query
    cache = call.context.forest_cache
    listed = declarations.list_declared(
        connection, query.owner, drift=query.drift, cache=cache
    )
    return Reply(listed)


@reading
def list_names(call: Call[None], connection: Connection) -> Reply:
    """List the names that owners gave to aggregates and projects.

    :raises UnusableTable: there is no table to remember names in
    """
    return Reply(naming.list_names(connection, call.query))
