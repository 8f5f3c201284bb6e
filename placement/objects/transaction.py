"""A write: its connection, its changes, and the calls after its commit."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import sqlalchemy as sa

from placement.model.entry import Entry, EntryType
from placement_foundation.database.origin import Origin

# The parameter of functions that only read; rooms above need no SQLAlchemy for it.
Connection: TypeAlias = sa.Connection


@dataclasses.dataclass(eq=False, slots=True)
class Transaction:
    """One attempt of a write, which ``Ledger.write`` begins, records and commits.

    Its ``origin`` is the request or command behind it; subjects with another origin are
    in ``origins``, by UUID. ``changed_trees`` are the ids of roots, for the change log;
    ``has_changed_names`` says that traits or resource classes have changed,
    ``has_changed_all`` that anything may have. ``entries`` are those for the journal,
    by type and subject, ``generations`` the current ones of the providers in them. The
    functions in ``after_commit`` run after the commit, and must not raise.
    """

    connection: sa.Connection
    origin: Origin
    origins: Mapping[str, Origin] = dataclasses.field(default_factory=dict)
    changed_trees: set[int] = dataclasses.field(default_factory=set)
    has_changed_names: bool = False
    has_changed_all: bool = False
    entries: dict[tuple[str, str | None], Entry] = dataclasses.field(
        default_factory=dict
    )
    generations: dict[str, int] = dataclasses.field(default_factory=dict)
    after_commit: list[Callable[[], None]] = dataclasses.field(default_factory=list)

    def record(self, entries: Iterable[Entry]) -> None:
        """Add entries for the journal; those of one type and subject become one."""
        for new in entries:
            key = new.type, new.subject
            earlier = self.entries.get(key)
            self.entries[key] = earlier.then(new) if earlier else new

    def record_trees(
        self,
        root_ids: Iterable[int],
        entries: Iterable[Entry],
        generations: Mapping[str, int],
    ) -> None:
        """Record that trees have changed.

        :param generations: of providers, as they are now, by UUID
        """
        self.changed_trees.update(root_ids)
        self.generations.update(generations)
        self.record(entries)

    def record_names(self, entries: Iterable[Entry]) -> None:
        """Record that traits or resource classes have changed."""
        self.has_changed_names = True
        self.record(entries)

    def record_all(self) -> None:
        """Record that everything may have changed: the journal has a gap."""
        self.has_changed_all = True
        self.record([Entry(EntryType.GAP, None)])

    def origin_of(self, subject: str | None) -> Origin:
        """Return the origin of the changes of a subject."""
        return self.origins.get(subject or "", self.origin)
