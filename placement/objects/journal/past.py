"""The allocations at a moment: those of now, with later changes undone."""

import dataclasses
import datetime
import itertools
from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model.entry import Amounts, EntryType
from placement.model.journal import Document, render_time
from placement.model.journal_filter import EntryFilters
from placement.objects import clock
from placement.objects.journal import filed_entry, filing, reading

# How far the clock of a client may be ahead of the database's.
SKEW = datetime.timedelta(seconds=5)
_EPOCH = datetime.datetime(1970, 1, 1)

_entry = models.JOURNAL_ENTRIES.c
_mention = models.JOURNAL_MENTIONS.c
_LAST_GAP = (
    sa.select(_entry.time)
    .join(models.JOURNAL_MENTIONS, _mention.position == _entry.position)
    .where(_mention.mentioned == filed_entry.GAPS)
    .order_by(_mention.position.desc())
    .limit(1)
)


def undo(
    connection: sa.Connection,
    now: Mapping[str, Amounts],
    filters: EntryFilters,
    at: datetime.datetime,
) -> dict[str, Amounts]:
    """Return the allocations of consumers at a moment.

    :param now: the present allocations that pass the filters, by consumer, as this
        transaction has read them
    :param filters: of a consumer, or of a provider
    :raises BadRequest: the journal begins later, or the moment is in the future
    """
    _check_has_been(connection, at)
    state = filing.load_state(connection)
    waiting = filing.list_waiting(connection)
    _check_reaches(connection, state, waiting, at)
    then = dict(now)
    since = render_time(at)
    unfiled = [each for each in reversed(waiting) if filters.accepts(each)]
    later = dataclasses.replace(filters, since=at)
    filed = reading.look_back(connection, state, later)
    for document in itertools.chain(unfiled, filed):
        if (
            document["type"] == EntryType.ALLOCATIONS_CHANGED
            and document["time"] > since
        ):
            then[document["subject"]] = document["before"]
    return then


def _check_has_been(connection: sa.Connection, at: datetime.datetime) -> None:
    now = datetime.timedelta(milliseconds=clock.load_milliseconds(connection))
    if at > _EPOCH + now + SKEW:
        raise errors.BadRequest(
            f"{render_time(at)} is in the future: what will be allocated then "
            "is not known."
        )


def _check_reaches(
    connection: sa.Connection,
    state: filing.FilingState,
    waiting: Iterable[Document],
    at: datetime.datetime,
) -> None:
    """Check that the journal has all changes since a moment.

    :raises BadRequest: changes are missing; it names the earliest possible moment
    """
    earliest = render_time(state.begins)
    gap = connection.scalar(_LAST_GAP)
    gaps = [each["time"] for each in waiting if each["type"] == EntryType.GAP]
    if gap:
        gaps.append(render_time(gap))
    earliest = max([earliest, *gaps])
    if render_time(at) < earliest:
        raise errors.BadRequest(
            "The journal does not go back so far: everything since "
            f"{earliest} is in it."
        )
