"""The journal: the feed of changes, history, and what was allocated at a moment."""

from placement.model.entry import Amounts
from placement.objects import allocation
from placement.objects.journal import following, past, reading
from placement.operation import Call
from placement.schemas import journal as wire
from placement_foundation.http.operation import Later, Reply


def list_changes(call: Call[None]) -> Later:
    """List what has changed since a cursor, the oldest first.

    :raises NotFound: the journal is switched off, or has no tables
    :raises CursorGone: it is not known what has changed since
    """
    keeper = reading.check_is_kept(call.context.journal)
    reading.check_is_readable(call.connection)
    query: wire.FeedQuery = call.query

    def read() -> Reply:
        page = following.follow(
            keeper, query.since, query.filters, query.limit, query.wait
        )
        return Reply(page, following={"since": str(page.cursor)})

    return read


def list_history(call: Call[None]) -> Later:
    """List what has changed, the newest first.

    :raises NotFound: the journal is switched off, or has no tables
    :raises CursorGone: the marker is of a journal that was restored or emptied
    """
    keeper = reading.check_is_kept(call.context.journal)
    reading.check_is_readable(call.connection)
    query: wire.HistoryQuery = call.query
    return lambda: Reply(
        reading.list_history(keeper.database, query.marker, query.filters, query.limit)
    )


def show_allocations(call: Call[None]) -> Reply:
    """Show what a consumer or provider had allocated at a moment.

    :raises NotFound: the journal is switched off, or has no tables
    :raises BadRequest: the journal does not go back so far
    """
    reading.check_is_kept(call.context.journal)
    reading.check_is_readable(call.connection)
    query: wire.PastQuery = call.query
    now = _list_now(call, query)
    then = past.undo(call.connection, now, query.filters, query.at)
    return Reply(wire.Past(query, then))


def _list_now(call: Call[None], query: wire.PastQuery) -> dict[str, Amounts]:
    """Return what the consumers that are asked for use now."""
    if query.consumer:
        found = allocation.list_by_consumer(call.connection, query.consumer)
        return {
            query.consumer: {
                each.provider_uuid: each.amounts for each in found.allocations
            }
        }
    # If the provider is gone, nothing uses it any more.
    _, found = allocation.list_by_provider(call.connection, query.provider)
    return {
        each.consumer.uuid: {each.provider_uuid: each.amounts}
        for each in found.allocations
    }
