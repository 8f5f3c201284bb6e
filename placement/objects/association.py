"""Rows that belong to providers, and their associations with traits and aggregates."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from placement.model import entry
from placement.model.entry import Entry, EntryType
from placement.model.resource_provider import ResourceProvider
from placement.objects.transaction import Transaction
from placement_foundation.database import storage


def replace(
    tx: Transaction,
    kind: EntryType,
    member: orm.InstrumentedAttribute[int],
    name: orm.InstrumentedAttribute[Any],
    wanted: Mapping[ResourceProvider, Collection[str]],
    ids: Mapping[str, int],
) -> list[Entry]:
    """Replace associations of providers; return the entries for the journal.

    :param kind: the type of the entries
    :param member: the column with the id of the associated thing
    :param name: the column of the thing itself that has its name
    :param wanted: names of things
    :param ids: the ids of the things, by name
    """
    stored = _load(tx.connection, member, name, [each.id for each in wanted])
    gone: list[tuple[int, int]] = []
    new: list[tuple[int, int]] = []
    entries: list[Entry] = []
    for provider, names in wanted.items():
        before, after = stored[provider.id], {ids[text]: text for text in names}
        removed, added = before.keys() - after.keys(), after.keys() - before.keys()
        gone += [(provider.id, key) for key in removed]
        new += [(provider.id, key) for key in added]
        changes = [after[key] for key in added], [before[key] for key in removed]
        entries += entry.of_members(kind, provider.uuid, provider.root_uuid, *changes)
    remove(tx, member, gone)
    rows = [
        {"resource_provider_id": owner, member.key: key} for owner, key in sorted(new)
    ]
    if rows:
        tx.connection.execute(sa.insert(member.class_), rows)
    return entries


def _load(
    connection: sa.Connection,
    member: orm.InstrumentedAttribute[int],
    name: orm.InstrumentedAttribute[Any],
    provider_ids: Iterable[int],
) -> Mapping[int, dict[int, str]]:
    """Return the names of things, by the id of their provider and their own id."""
    row, thing = member.class_, name.class_
    stored: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for chunk in storage.chunks(provider_ids):
        query = sa.select(row.resource_provider_id, member, name)
        query = query.outerjoin(thing, thing.id == member)
        query = query.where(row.resource_provider_id.in_(chunk))
        for owner, key, text in connection.execute(query):
            stored[owner][key] = text or ""
    return stored


def remove(
    tx: Transaction,
    member: orm.InstrumentedAttribute[int],
    pairs: Iterable[tuple[int, int]],
) -> None:
    """Delete rows that belong to providers.

    :param member: the column that says which thing a row is about
    :param pairs: the ids of the provider and of the thing in each row
    """
    row = member.class_
    for chunk in storage.chunks(sorted(pairs)):
        # MariaDB uses an index for the first condition only.
        these = row.resource_provider_id.in_(sorted({owner for owner, _ in chunk}))
        both = sa.tuple_(row.resource_provider_id, member).in_(chunk)
        tx.connection.execute(sa.delete(row).where(these, both))
