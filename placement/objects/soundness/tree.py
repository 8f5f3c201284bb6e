"""Parents and roots of providers: where they lead, and where they should."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.model import entry
from placement.model.entry import Entry, Node
from placement.objects.journal import recording
from placement_foundation.database import storage

Provider = models.ResourceProvider

_PLACES = sa.select(
    Provider.id,
    Provider.uuid,
    Provider.name,
    Provider.generation,
    Provider.parent_provider_id,
    Provider.root_provider_id,
).order_by(Provider.id)


def set_roots(connection: sa.Connection) -> int:
    """Give each provider the root that its parents lead to, where they lead to one."""
    rows = connection.execute(_PLACES).all()
    parents = {row.id: row.parent_provider_id for row in rows}
    right = {
        row.id: root for row in rows if (root := _root_of(row.id, parents)) is not None
    }
    moved = [
        row for row in rows if right.get(row.id) not in (None, row.root_provider_id)
    ]
    wrong = [{"of_id": row.id, "root": right[row.id]} for row in moved]
    update = (
        sa.update(Provider)
        .where(Provider.id == sa.bindparam("of_id"))
        .values(root_provider_id=sa.bindparam("root"))
    )
    for chunk in storage.chunks(wrong):
        connection.execute(update, chunk)
    recording.note_trees(
        connection,
        {each["root"] for each in wrong},
        _entries(moved, right, {row.id: row.uuid for row in rows}),
        {row.uuid: row.generation for row in moved},
    )
    return len(wrong)


def _entries(
    moved: Iterable[Any], right: Mapping[int, int], uuids: Mapping[int, str]
) -> Iterator[Entry]:
    """Yield the entries for providers that have another root now.

    :param right: the ids of the roots, by those of providers
    """
    for row in moved:
        parent = uuids.get(row.parent_provider_id)
        before = Node(row.name, parent, uuids.get(row.root_provider_id))
        after = Node(row.name, parent, uuids[right[row.id]])
        yield entry.of_provider(row.uuid, before, after)


def _root_of(key: int, parents: Mapping[int, int | None]) -> int | None:
    """Return the root that the parents lead to; None if they lead to none."""
    seen = {key}
    while (above := parents.get(key)) is not None:
        if above in seen or above not in parents:
            return None
        seen.add(above)
        key = above
    return key


def _list_circling() -> sa.Select[*tuple[Any, ...]]:
    """Return the query for the providers that are below themselves."""
    above = (
        sa.select(Provider.id.label("start"), Provider.parent_provider_id.label("at"))
        .where(Provider.parent_provider_id.is_not(None))
        .cte("above", recursive=True)
    )
    # What is there already is not added again, so a circle ends.
    above = above.union(
        sa.select(above.c.start, Provider.parent_provider_id)
        .join(Provider, Provider.id == above.c["at"])
        .where(Provider.parent_provider_id.is_not(None))
    )
    circling = sa.select(above.c.start).where(above.c.start == above.c["at"])
    return (
        sa.select(Provider.uuid, Provider.name)
        .where(Provider.id.in_(circling))
        .order_by(Provider.id)
    )


CIRCLING = _list_circling()
