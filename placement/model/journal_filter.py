"""Which entries of the journal a reader requests."""

import dataclasses
import datetime
from collections.abc import Iterator, Mapping
from typing import Any

from placement.model.entry import GAP

_OF_CONSUMERS = ("allocations.", "consumer.", "lease.")
_OF_PROVIDERS = ("provider.", "inventory.", "traits.", "aggregates.")


@dataclasses.dataclass(frozen=True, slots=True)
class EntryFilters:
    """Which entries to list; a gap in the journal passes all filters but the times.

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
    def word(self) -> str | None:
        """A word that each entry mentions; None if there need not be any."""
        return self.request_id or self.consumer or self.provider or self.root

    @property
    def is_lax(self) -> bool:
        """Whether every entry passes that has the right time."""
        return not (self.types or self.word or self.project_id or self.user_id)

    def after(self, moment: datetime.datetime) -> "EntryFilters":
        """Return the same filters, for what happened since a moment."""
        return dataclasses.replace(self, since=moment)

    def accepts(self, document: Mapping[str, Any]) -> bool:
        """Return whether an entry passes, whatever its time."""
        return document["type"] == GAP or all(self._checks(document))

    def _checks(self, document: Mapping[str, Any]) -> Iterator[bool]:
        kind, subject = document["type"], document["subject"]
        if self.types:
            yield kind in self.types or kind.partition(".")[0] in self.types
        if self.root:
            yield self.root in (document["root"], *document.get("roots", ()))
        if self.provider:
            of_it = kind.startswith(_OF_PROVIDERS) and subject == self.provider
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


def _projects(document: Mapping[str, Any]) -> Iterator[str | None]:
    yield document.get("project_id")
    yield document.get("consumer", {}).get("project_id")
    if document["type"] == "consumer.changed":
        yield from (document[side]["project_id"] for side in ("before", "after"))
