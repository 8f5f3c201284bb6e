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


def _upward(key: int, parents: Mapping[int, int | None]) -> list[int]:
    """Return a provider and those above it; where they go round, the last one twice."""
    path, seen = [key], {key}
    while (above := parents.get(path[-1])) is not None:
        path.append(above)
        if above in seen:
            break
        seen.add(above)
    return path


def _root_of(key: int, parents: Mapping[int, int | None]) -> int | None:
    """Return the root that the parents lead to; None if they lead to none."""
    top = _upward(key, parents)[-1]
    return top if top in parents and parents[top] is None else None


def list_circling(connection: sa.Connection) -> list[int]:
    """Return the ids of the providers that are below themselves."""
    nested = sa.select(Provider.id, Provider.parent_provider_id).where(
        Provider.parent_provider_id.is_not(None)
    )
    parents: dict[int, int | None] = {
        row.id: row.parent_provider_id for row in connection.execute(nested)
    }
    return sorted(key for key in parents if key in _upward(key, parents)[1:])
