"""The journal on the wire."""

import dataclasses
import datetime
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from placement import errors
from placement.model.entry import Amounts, EntryType
from placement.model.journal import (
    NOW,
    OLDEST,
    Cursor,
    Document,
    EntryPage,
    Since,
    render_time,
)
from placement.model.journal_filter import EntryFilters
from placement.schemas.query import unexpected
from placement.schemas.record import BOOLEAN, Item, record
from placement_foundation.http import query_string
from placement_foundation.http.answer import LINES
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    TEXT_OR_NULL,
    Json,
    View,
    closed_object,
    described,
    extend,
    keyed,
    listed,
    some_of,
)

_CURSOR = re.compile(r"([0-9a-f]{12})\.([0-9]{1,18})\.([0-9a-f]{12})")

LIMIT, MOST = 1_000, 10_000
LONGEST_WAIT = 30
EVENTS = "application/cloudevents-batch+json"
EVENT_TYPE = "org.openstack.placement."

_UUID = {"type": "string", "format": "uuid"}
_NUMBER = {"type": "string", "pattern": "^[0-9]{1,5}$"}
_TIME = {"type": "string", "format": "date-time"}
_KINDS = frozenset(kind.partition(".")[0] for kind in EntryType)
# An empty one would match everything, or nothing.
_WANTED = {"type": "string", "minLength": 1}
_FILTERS = {
    "type": TEXT,
    "root": _UUID,
    "provider": _UUID,
    "consumer": _WANTED,
    "project_id": _WANTED,
}


FEED = some_of("since", **_FILTERS, since=TEXT, wait=_NUMBER, limit=_NUMBER)
HISTORY = some_of(
    **_FILTERS,
    **{"from": _TIME, "to": _TIME},
    user_id=_WANTED,
    request_id=_WANTED,
    limit=_NUMBER,
    marker=TEXT,
)
PAST = some_of("at", consumer=TEXT, provider=_UUID, at=_TIME)


@dataclasses.dataclass(frozen=True, slots=True)
class FeedQuery:
    """A request for the feed, and how many seconds it waits."""

    since: Since
    filters: EntryFilters
    limit: int
    wait: int


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryQuery:
    """A request for history."""

    marker: Cursor | None
    filters: EntryFilters
    limit: int


@dataclasses.dataclass(frozen=True, slots=True)
class PastQuery:
    """The consumer or provider whose past allocations are requested; one is empty."""

    consumer: str
    provider: str
    at: datetime.datetime

    @property
    def filters(self) -> EntryFilters:
        """Which entries matter."""
        return EntryFilters(
            consumer=self.consumer or None, provider=self.provider or None
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Past:
    """The allocations of consumers at the requested moment."""

    query: PastQuery
    allocations: Mapping[str, Amounts]


@query_string.parser(FEED)
def parse_feed(pairs: Pairs) -> FeedQuery:
    """Return the parsed request for the feed.

    :raises BadRequest: a parameter is unknown or malformed
    """
    since = query_string.last(pairs, "since") or ""
    return FeedQuery(
        since if since in (NOW, OLDEST) else parse_cursor(since),
        _parse_filters(pairs),
        _parse_number(pairs, "limit", LIMIT, 1, MOST),
        _parse_number(pairs, "wait", 0, 0, LONGEST_WAIT),
    )


@query_string.parser(HISTORY)
def parse_history(pairs: Pairs) -> HistoryQuery:
    """Return the parsed request for history.

    :raises BadRequest: a parameter is unknown or malformed
    """
    marker = query_string.last(pairs, "marker")
    filters = _parse_filters(pairs)
    return HistoryQuery(
        None if marker is None else parse_cursor(marker),
        filters,
        _parse_number(pairs, "limit", LIMIT, 1, MOST),
    )


@query_string.parser(PAST)
def parse_past(pairs: Pairs) -> PastQuery:
    """Return the parsed request for past allocations.

    :raises BadRequest: a parameter is unknown or malformed
    """
    given = dict(pairs)
    consumer = given.get("consumer", "")
    provider = _parse_uuid(given.get("provider")) or ""
    if bool(consumer) == bool(provider):
        raise errors.BadRequest(
            f"{query_string.COMPLAINT}Either 'consumer' or 'provider' is needed."
        )
    return PastQuery(consumer, provider, _parse_moment(given["at"]))


def _parse_filters(pairs: Pairs) -> EntryFilters:
    given = dict(pairs)
    return EntryFilters(
        types=_parse_types(pairs),
        root=_parse_uuid(given.get("root")),
        provider=_parse_uuid(given.get("provider")),
        consumer=given.get("consumer"),
        project_id=given.get("project_id"),
        user_id=given.get("user_id"),
        request_id=given.get("request_id"),
        since=_parse_time(given.get("from")),
        until=_parse_time(given.get("to")),
    )


def _parse_uuid(value: str | None) -> str | None:
    """Return a UUID in the usual spelling."""
    return None if value is None else str(uuid.UUID(value))


def _parse_time(value: str | None) -> datetime.datetime | None:
    return None if value is None else _parse_moment(value)


def _parse_types(pairs: Pairs) -> frozenset[str]:
    given = [
        kind.strip()
        for value in query_string.values(pairs, "type")
        for kind in value.split(",")
    ]
    for kind in given:
        if kind not in {*EntryType, *_KINDS}:
            raise unexpected("type", f"any of {', '.join(EntryType)}", kind)
    return frozenset(given)


def _parse_number(pairs: Pairs, name: str, default: int, least: int, most: int) -> int:
    value = query_string.last(pairs, name)
    if value is None:
        return default
    if not least <= int(value) <= most:
        raise unexpected(name, f"a number from {least} to {most}", value)
    return int(value)


def _parse_moment(value: str) -> datetime.datetime:
    """Return a time in UTC, without a zone, as the tables have it."""
    try:
        # A plus is a space in a query string.
        moment = datetime.datetime.fromisoformat(value.replace(" ", "+"))
        if moment.tzinfo:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as exc:
        raise errors.BadRequest(
            f"{query_string.COMPLAINT}Expected a time such as 2026-11-21T10:00:00Z. "
            f"Got: {value}"
        ) from exc
    return moment


_TEXTS = ("request", "request_id", "global_request_id", "user_id", "user_name")
# An entry; what was before and after depends on its type.
ENTRY = extend(
    closed_object(
        id=_UUID,
        time=TEXT,
        type={"enum": list(EntryType)},
        subject=TEXT_OR_NULL,
        root=TEXT_OR_NULL,
        before={"type": ["object", "null"]},
        after={"type": ["object", "null"]},
        generation={"type": ["integer", "null"]},
        cursor=TEXT,
    ),
    properties={
        **dict.fromkeys([*_TEXTS, "project_id", "project_name"], TEXT),
        "roots": listed(TEXT),
        "names": keyed(TEXT),
        "consumer": keyed(TEXT_OR_NULL),
    },
)
# A page of the feed.
render_feed = record(
    changes=Item(listed(ENTRY), "entries"),
    cursor=Item(TEXT, lambda page: str(page.cursor)),
    more=BOOLEAN,
)


@described({"anyOf": [ENTRY, closed_object(cursor=TEXT, more=BOOLEAN)]})
def render_feed_lines(page: EntryPage, view: View) -> Iterator[Json]:
    """Render a document for each entry, and a last one with the cursor."""
    yield from page.entries
    yield {"cursor": str(page.cursor), "more": page.more}


EVENT = extend(
    closed_object(
        specversion=TEXT,
        id=TEXT,
        source=TEXT,
        type=TEXT,
        time=TEXT,
        datacontenttype=TEXT,
        placementcursor=TEXT,
        data=ENTRY,
    ),
    properties={"subject": TEXT},
)


@described(listed(EVENT))
def render_events(page: EntryPage, view: View) -> Json:
    """Render a page of the feed as a batch of CloudEvents."""
    return [_event(each, view.base) for each in page.entries]


# How the feed is rendered for those who prefer another media type.
FEED_FORMATS = {LINES: render_feed_lines, EVENTS: render_events}


def _event(document: Document, source: str) -> Json:
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": document["id"],
        "source": source,
        "type": EVENT_TYPE + document["type"],
        "time": document["time"],
        "datacontenttype": "application/json",
        "placementcursor": document["cursor"],
        "data": document,
    }
    if document["subject"]:
        event["subject"] = document["subject"]
    return event


# A page of history, with the marker of the next one if there may be any.
render_history = record(
    history=Item(listed(ENTRY), "entries"),
    begins=Item(TEXT, lambda page: render_time(page.begins)),
    marker=Item(
        TEXT, lambda page: str(page.cursor) if page.more else None, optional=True
    ),
)


def _past_amounts(past: Past) -> Json:
    """Return amounts by provider for a consumer, by consumer for a provider."""
    query = past.query
    if query.consumer:
        amounts = past.allocations.get(query.consumer, {})
    else:
        amounts = {
            consumer: each[query.provider]
            for consumer, each in sorted(past.allocations.items())
            if query.provider in each
        }
    return {uuid: {"resources": resources} for uuid, resources in amounts.items()}


render_past = record(
    at=Item(TEXT, lambda past: render_time(past.query.at)),
    allocations=Item(keyed(closed_object(resources=keyed(INTEGER))), _past_amounts),
)


def parse_cursor(text: str) -> Cursor:
    """Return the cursor that a caller sends.

    :raises BadRequest: it is none of ours
    """
    match = _CURSOR.fullmatch(text)
    if not match:
        raise errors.BadRequest(f"'{text}' is not a cursor of the journal.")
    return Cursor(match[1], int(match[2]), match[3])
