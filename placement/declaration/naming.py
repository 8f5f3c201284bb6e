"""The names of aggregates and projects: changes by a declaration, and all of them."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from placement.declaration.outcome import Declaration
from placement.model.declaration import NO_NAMES, Change, Names
from placement.objects import note
from placement.objects.note import Topic
from placement.objects.transaction import Connection, Transaction


def foresee(connection: Connection, asked: Declaration) -> list[Change]:
    """Return how the names that an owner gave will differ.

    :raises UnusableTable: projects are named, and there is no table for that
    """
    if asked.names == NO_NAMES and not asked.terms.prune:
        return []
    if not (asked.names.projects or note.are_kept(connection)):
        # Aggregates are declared by UUID: the changes are the same without names.
        return []
    before = list_names(connection, asked.terms.owner)
    after = _after(before, asked)
    return [
        *_changes("aggregates", before.aggregates, after.aggregates),
        *_changes("projects", before.projects, after.projects),
    ]


def store(tx: Transaction, asked: Declaration) -> None:
    """Store the names that an owner gives; keep earlier ones, unless it prunes."""

    def make(before: Names | None) -> Any:
        after = _after(before or NO_NAMES, asked)
        return None if after == NO_NAMES else dataclasses.asdict(after)

    note.change(tx, Topic.NAMES, asked.terms.owner, make, parse=_parse)


def list_names(connection: Connection, owner: str | None = None) -> Names:
    """Return the names that one owner gave, or all; the first owner's come first.

    :raises UnusableTable: there is no table for them
    """
    listed = note.load(connection, Topic.NAMES, owner, parse=_parse).values()
    aggregates: dict[str, str] = {}
    projects: dict[str, str] = {}
    for names in reversed(listed):
        aggregates.update(names.aggregates)
        projects.update(names.projects)
    return Names(aggregates, projects)


def _parse(text: str) -> Names:
    document = json.loads(text)
    return Names(dict(document["aggregates"]), dict(document["projects"]))


def _after(before: Names, asked: Declaration) -> Names:
    if asked.terms.prune:
        return asked.names
    return Names(
        _merge(before.aggregates, asked.names.aggregates),
        _merge(before.projects, asked.names.projects),
    )


def _merge(before: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return earlier and given names; a given name is taken from its earlier bearer."""
    taken = set(given.values())
    left = {each: name for each, name in before.items() if name not in taken}
    return {**left, **given}


def _changes(
    kind: str, before: Mapping[str, str], after: Mapping[str, str]
) -> list[Change]:
    return [
        Change(f"{kind}/{each}", before.get(each), after.get(each))
        for each in sorted({*before, *after})
        if before.get(each) != after.get(each)
    ]
