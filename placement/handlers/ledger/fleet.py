"""The fleet: all providers at once."""

from placement.forest import loading
from placement.model.resource_provider import ProviderFilters
from placement.objects import clock, holding
from placement.objects.journal import reading as entries
from placement.operation import Call
from placement.questions import fleet, name, providers
from placement.schemas import fleet as wire
from placement_foundation.http.operation import Connection, Rendered, Reply, reading


@reading
def list_fleet(call: Call[None], connection: Connection) -> Rendered:
    """List the providers that the query asks for, with everything that belongs to them.

    :raises BadRequest: the query names a trait or resource class that is unknown
    """
    question: wire.FleetQuery = call.query
    moment = clock.now()
    kept = call.checkpoint_of(connection)
    forest = kept.forest if kept else loading.load(connection)
    # From the same snapshot as the providers: later changes come after the cursor.
    cursor, seen = entries.load_cursor(connection, call.context.journal)
    place = str(cursor) if cursor else None
    # Without a kept forest, changes by another service may go unrecorded. A write that
    # only increases a generation is in the change log, but not in the journal.
    basis = f"{seen} {kept.position.heads.hex()}" if seen and kept else None
    if call.knows(basis):
        return call.store(Reply(basis=basis, unchanged=True))
    selected = root_ids = None
    if question.filters != ProviderFilters():
        name.check_filters(question.filters, forest.vocabulary)
        selected = providers.select(forest, question.filters)
        root_ids = frozenset(map(forest.root_id, selected))
    counts = fleet.NO_COUNTS
    if question.wants_counts:
        counts = holding.count_consumers(connection, root_ids)
    holdings = fleet.no_holdings()
    if question.wants_allocations:
        holdings = holding.read(
            connection,
            forest.vocabulary.classes,
            root_ids,
            owners=question.wants_owners,
        )
    members = fleet.list_members(forest, selected, holdings, counts)
    fleet_now = wire.Fleet(
        members, question.fields, moment, place, question.numbers_repeats
    )
    return call.store(Reply(fleet_now, basis=basis))
