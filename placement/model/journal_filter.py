"""Filters for entries of the journal."""

import dataclasses
import datetime
from collections.abc import Iterator

from placement.model.entry import OF_PROVIDERS, EntryType
from placement.model.journal import Document

_OF_CONSUMERS = ("allocations.", "consumer.", "lease.")


@dataclasses.dataclass(frozen=True, slots=True)
class EntryFilters:
    """Filters for entries; a gap in the journal passes all of them but the times.

    ``types`` are types, or what comes before the dot in them. ``project_id`` is that of
    the caller, or of the consumer. ``since`` and ``until`` are in UTC.
    """

    types: frozenset[str] = frozenset()
    root: str | None = None
    provider: str | None = None
    consumer: str | None = None
    project_id: str | None = None
    user_id: str | None = None
    request_id: str | None = None
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None

    @property
    def mention(self) -> tuple[str | None, tuple[str, ...]]:
        """A mention that each entry must have, if any, and the members that have it."""
        if self.request_id:
            return self.request_id, ("request_id",)
        if self.consumer:
            return self.consumer, ("subject",)
        return self.provider or self.root, ("subject", "root")

    @property
    def is_lax(self) -> bool:
        """Whether the filters are about times only."""
        people = self.project_id or self.user_id
        return not (self.types or self.mention[0] or people)

    def accepts(self, document: Document) -> bool:
        """Return whether an entry passes, whatever its time."""
        return document["type"] == EntryType.GAP or all(self._checks(document))

    def _checks(self, document: Document) -> Iterator[bool]:
        kind, subject = document["type"], document["subject"]
        if self.types:
            yield kind in self.types or kind.partition(".")[0] in self.types
        if self.root:
            yield self.root in (document["root"], *document.get("roots", ()))
        if self.provider:
            of_it = kind.startswith(OF_PROVIDERS) and subject == self.provider
            yield of_it or self.provider in document.get("names", ())
        if self.consumer:
            yield kind.startswith(_OF_CONSUMERS) and subject == self.consumer
        if self.project_id:
            yield self.project_id in _projects(document)
        if self.user_id:
            yield self.user_id == document.get("user_id")
        if self.request_id:
            ids = document.get("request_id"), document.get("global_request_id")
            yield self.request_id in ids


def _projects(document: Document) -> Iterator[str | None]:
    yield document.get("project_id")
    yield document.get("consumer", {}).get("project_id")
    if document["type"] == EntryType.CONSUMER_CHANGED:
        yield from (document[side]["project_id"] for side in ("before", "after"))
