"""The journal: the feed of changes, history, and what was allocated at a moment."""

from placement.model.entry import Amounts
from placement.objects import allocation
from placement.objects.journal import following, past
from placement.objects.journal import reading as entries
from placement.operation import Call
from placement.schemas import journal as wire
from placement_foundation.http.operation import Connection, Reply, reading


def list_changes(call: Call[None]) -> Reply:
    """List what has changed since a cursor, the oldest first.

    :raises NotFound: the journal is switched off, or has no tables
    :raises CursorGone: it is not known what has changed since
    """
    keeper = entries.check_is_kept(call.context.journal)
    call.read(entries.check_is_readable)
    query: wire.FeedQuery = call.query
    # It may wait for an entry.
    page = following.follow(
        keeper, query.since, query.filters, query.limit, query.wait, call.must_end
    )
    return Reply(page, following={"since": str(page.cursor)})


def list_history(call: Call[None]) -> Reply:
    """List what has changed, the newest first.

    :raises NotFound: the journal is switched off, or has no tables
    :raises CursorGone: the marker is of a journal that was restored or emptied
    """
    keeper = entries.check_is_kept(call.context.journal)
    call.read(entries.check_is_readable)
    query: wire.HistoryQuery = call.query
    return Reply(
        entries.list_history(keeper.database, query.marker, query.filters, query.limit)
    )


@reading
def show_allocations(call: Call[None], connection: Connection) -> Reply:
    """Show what a consumer or provider had allocated at a moment.

    :raises NotFound: the journal is switched off, or has no tables
    :raises BadRequest: the journal does not go back so far
    """
    entries.check_is_kept(call.context.journal)
    entries.check_is_readable(connection)
    query: wire.PastQuery = call.query
    now = _list_now(connection, query)
    then = past.undo(connection, now, query.filters, query.at)
    return Reply(wire.Past(query, then))


def _list_now(connection: Connection, query: wire.PastQuery) -> dict[str, Amounts]:
    """Return the present amounts of the requested consumers."""
    if query.consumer:
        found = allocation.list_by_consumer(connection, query.consumer)
        return {
            query.consumer: {
                each.provider_uuid: each.amounts for each in found.allocations
            }
        }
    # If the provider is gone, nothing uses it any more.
    _, found = allocation.list_by_provider(connection, query.provider)
    return {
        each.consumer.uuid: {each.provider_uuid: each.amounts}
        for each in found.allocations
    }
