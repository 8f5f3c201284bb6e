"""Which trees have changed, and whether names have, for processes that keep them.

A tree belongs to a shard, by the id of its root. The row of a shard lists its latest
changes, the newest first; each has a random token, so that a reader which has one
token knows what has changed since, and a database that was restored is noticed.
"""

import collections
import secrets
import weakref
from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exc

from placement.db import models
from placement_foundation import storage, trouble

SHARDS = 256
# The row of names: those of traits and resource classes.
NAMES = SHARDS
# A list of changes is cut off after so many characters.
LONGEST = 500
TOKEN_BYTES = 6
TOKEN_LENGTH = 2 * TOKEN_BYTES
# A change of more trees of a shard is one of all.
MOST_LISTED = 20
ALL = "*"

_row = models.FOREST_STAMPS.c
# The key of the changes to record, among the notes on a transaction.
_CHANGES = "changes"
_newest = (
    sa.select(_row.shard, sa.func.substr(_row.changes, 1, TOKEN_LENGTH).label("token"))
    .order_by(_row.shard)
    .subquery()
)
# Statements are made once: that takes longer than to run them.
_HEADS = sa.select(
    sa.func.aggregate_strings(
        sa.cast(_newest.c.shard, sa.String(10)) + ":" + _newest.c.token, ","
    )
)
_CHANGES_OF_ALL = sa.select(_row.shard, _row.changes).order_by(_row.shard)
_CHANGES_OF_SOME = _CHANGES_OF_ALL.where(
    _row.shard.in_(sa.bindparam("shards", expanding=True))
)
_UPDATE = (
    sa.update(models.FOREST_STAMPS)
    .where(_row.shard == sa.bindparam("of_shard"))
    .values(
        changes=sa.func.substr(
            sa.bindparam("entry", type_=sa.String) + _row.changes, 1, LONGEST
        )
    )
)
# The engines of databases that are known to have the table.
_known: weakref.WeakSet[sa.Engine] = weakref.WeakSet()


def note_trees(connection: sa.Connection, root_ids: Iterable[int]) -> None:
    """Tell that trees have changed, by the ids of their roots, when this commits."""
    changed = {(root_id % SHARDS, str(root_id)): None for root_id in root_ids}
    if changed:
        _noted(connection).update(changed)


def note_names(connection: sa.Connection) -> None:
    """Tell that traits or resource classes have changed, when this commits."""
    _noted(connection)[NAMES, ALL] = None


def note_everything(connection: sa.Connection) -> None:
    """Tell that all may have changed, when this commits."""
    _noted(connection).update({(shard, ALL): None for shard in range(SHARDS + 1)})


def _noted(connection: sa.Connection) -> dict[tuple[int, str], None]:
    noted: dict[tuple[int, str], None] | None = storage.notes(connection).get(_CHANGES)
    if noted is None:
        noted = storage.notes(connection)[_CHANGES] = {}
        storage.at_end(connection, _store)
    return noted


def _store(connection: sa.Connection) -> None:
    """Write the changes, in the order of the shards, which nothing else locks.

    It is the last act of a transaction, so others wait no longer than for a commit.
    """
    if not are_there(connection):
        return
    by_shard = collections.defaultdict(list)
    for shard, root_id in sorted(storage.notes(connection)[_CHANGES]):
        by_shard[shard].append(root_id)
    rows = [
        {"of_shard": shard, "entry": _entry(root_ids)}
        for shard, root_ids in by_shard.items()
    ]
    _guarded(connection, _UPDATE, rows)


def _entry(root_ids: Collection[str]) -> str:
    listed = [ALL] if ALL in root_ids or len(root_ids) > MOST_LISTED else root_ids
    return f"{secrets.token_hex(TOKEN_BYTES)} {' '.join(listed)};"


def are_there(connection: sa.Connection) -> bool:
    """Tell whether the database has the table. That is remembered, once it has."""
    if connection.engine not in _known:
        if not sa.inspect(connection).has_table(models.FOREST_STAMPS.name):
            return False
        _known.add(connection.engine)
    return True


def load_heads(connection: sa.Connection) -> str:
    """Return the newest token of each shard, in one text."""
    return _guarded(connection, _HEADS).scalar() or ""


def differing(one: str, other: str) -> set[int]:
    """Return the shards that have different tokens at two moments."""
    differing = set(one.split(",")).symmetric_difference(other.split(","))
    return {int(each.split(":")[0]) for each in differing if each}


def load_changes(
    connection: sa.Connection, shards: Collection[int] | None = None
) -> dict[int, str]:
    """Return the listed changes of some shards, or of all."""
    if shards is None:
        rows = _guarded(connection, _CHANGES_OF_ALL)
    else:
        rows = _guarded(connection, _CHANGES_OF_SOME, {"shards": sorted(shards)})
    return {row.shard: row.changes for row in rows}


def changed_between(one: str, other: str) -> set[int] | None:
    """Return the roots of the trees that differ between two moments of a shard.

    Either one may be the older. It is None if neither list goes back to the other.
    """
    for newer, older in ((other, one), (one, other)):
        token = older[:TOKEN_LENGTH]
        roots: set[int] = set()
        for entry in newer.split(";"):
            if entry.startswith(token):
                return roots
            listed = entry[TOKEN_LENGTH:].split()
            if ALL in listed:
                break
            roots.update(map(int, listed))
    return None


def is_older(one: str, other: str) -> bool:
    """Tell whether one list of changes of a shard is of an earlier moment."""
    return one[:TOKEN_LENGTH] in other[TOKEN_LENGTH:]


def _guarded(
    connection: sa.Connection, statement: sa.Executable, parameters: Any = None
) -> Any:
    """Execute a statement; if the table has gone, the transaction begins anew."""
    try:
        return connection.execute(statement, parameters)
    except (db_exc.DBError, sa.exc.DBAPIError) as exc:
        if not trouble.is_missing_table(exc):
            raise
        _known.discard(connection.engine)
        raise trouble.LostRaceError("the table of stamps has gone") from exc
