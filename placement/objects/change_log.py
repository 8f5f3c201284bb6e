"""The change log: which trees have changed, and whether names have.

A tree belongs to a shard, by the id of its root. The row of a shard lists its latest
changes, the newest first. Each change has a random token, by which a reader finds all
later changes, or notices that the database was restored.
"""

import collections
import dataclasses
import functools
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from placement.db import models
from placement.objects import own_table
from placement.objects.transaction import Transaction

SHARDS = 256
# The row for the names of traits and resource classes.
NAMES = SHARDS
ROWS = SHARDS + 1
# A list of changes is cut off after this many characters.
LONGEST = 500
TOKEN_BYTES = 6
TOKEN_LENGTH = 2 * TOKEN_BYTES
# A change of more trees of a shard counts as a change of all.
MOST_LISTED = 20
ALL = "*"

_row = models.FOREST_STAMPS.c
# Parts of the SQL: each transaction begins with it, and would send five parameters.
_one: Any = sa.literal_column("1")
_length: Any = sa.literal_column(str(TOKEN_LENGTH))
# Of bytes, the database finds the part that belongs to a shard without counting
# characters.
_head = sa.cast(sa.func.substr(_row.changes, _one, _length), sa.LargeBinary)
_known_head = sa.func.substr(
    sa.bindparam("heads", type_=sa.LargeBinary), _row.shard * _length + _one, _length
)
_all = sa.select(sa.func.count().label("count")).select_from(models.FOREST_STAMPS)
_counted = _all.subquery()
_DIFFERING = sa.select(_counted.c["count"], _row.shard, _row.changes).select_from(
    _counted.outerjoin(models.FOREST_STAMPS, _head != _known_head)
)
_provider = models.ResourceProvider
UPDATE = (
    sa.update(models.FOREST_STAMPS)
    .where(_row.shard == sa.bindparam("of_shard"))
    .values(
        changes=sa.func.substr(
            sa.bindparam("entry", type_=sa.String) + _row.changes, 1, LONGEST
        )
    )
)
_ROOTS_IN = (
    sa.select(_provider.root_provider_id)
    .distinct()
    .where(
        (_provider.root_provider_id % SHARDS).in_(
            sa.bindparam("shards", expanding=True)
        )
    )
)


def list_updates(tx: Transaction) -> list[dict[str, Any]]:
    """Return what a transaction has changed, as parameters of ``UPDATE``.

    The list is empty if changes cannot be recorded. The updates run at the end of a
    transaction, in the order of the shards: nothing else locks these rows, and other
    transactions wait only for a commit.
    """
    by_shard = collections.defaultdict(list)
    for root_id in sorted(tx.changed_trees, key=str):
        by_shard[root_id % SHARDS].append(str(root_id))
    if tx.has_changed_names:
        by_shard[NAMES] = [ALL]
    if tx.has_changed_all:
        by_shard.update({shard: [ALL] for shard in range(ROWS)})
    if not by_shard or not is_usable(tx.connection):
        return []
    token = secrets.token_hex(TOKEN_BYTES)
    return [
        {"of_shard": shard, "entry": _entry(token, root_ids)}
        for shard, root_ids in sorted(by_shard.items())
    ]


def _entry(token: str, root_ids: Collection[str]) -> str:
    listed = [ALL] if ALL in root_ids or len(root_ids) > MOST_LISTED else root_ids
    return f"{token} {' '.join(listed)};"


def is_usable(connection: sa.Connection) -> bool:
    """Return whether changes can be recorded, and read.

    A process that cannot record its changes must not rely on the log either: other
    processes most likely have the same rights.
    """
    return own_table.is_writable(connection, models.FOREST_STAMPS)


class Changed(NamedTuple):
    """The differences between two moments.

    ``roots`` has the ids of the roots of trees that are known to differ. In ``shards``,
    any tree may differ as well. ``names`` says that those of traits or resource classes
    do.
    """

    roots: set[int]
    shards: list[int]
    names: bool


@dataclasses.dataclass(frozen=True, eq=False)
class LogPosition:
    """A position in the change log: the lists of changes at one moment, by shard."""

    lists: Sequence[str]

    # Each transaction that reads the cloud needs the tokens.
    @functools.cached_property
    def heads(self) -> bytes:
        """The newest token of each list."""
        return "".join([listed[:TOKEN_LENGTH] for listed in self.lists]).encode()

    def changed(self, lists: Mapping[int, str]) -> Changed:
        """Return which trees differ at another moment, earlier or later.

        :param lists: the lists of that moment that differ, by shard
        """
        roots: set[int] = set()
        shards: list[int] = []
        for shard, listed in lists.items():
            if shard == NAMES:
                continue
            before = self.lists[shard]
            changed = listed_since(before, listed)
            if changed is None:
                changed = listed_since(listed, before)
            if changed is None or ALL in changed:
                shards.append(shard)
            else:
                roots.update(map(int, changed))
        return Changed(roots, shards, NAMES in lists)

    def replace(self, lists: Mapping[int, str]) -> "LogPosition":
        """Return the position with some of its lists replaced, by shard."""
        replaced = list(self.lists)
        for shard, listed in lists.items():
            replaced[shard] = listed
        return LogPosition(replaced)


# A position that every list differs from: no token has blanks.
NOWHERE = LogPosition([" " * TOKEN_LENGTH] * ROWS)


def load_changes(
    connection: sa.Connection, position: LogPosition
) -> tuple[LogPosition, Changed] | None:
    """Return the position of the transaction, and what differs from another one.

    It is the same object if nothing does. None means that the log cannot be used, or
    that rows are missing.
    """
    if not is_usable(connection):
        return None
    rows: Sequence[Any] = own_table.execute(
        connection, models.FOREST_STAMPS, _DIFFERING, {"heads": position.heads}
    ).all()
    lists = {shard: listed for _, shard, listed in rows if shard is not None}
    present = position.replace(lists) if lists else position
    if rows[0][0] != ROWS or len(present.heads) != ROWS * TOKEN_LENGTH:
        return None
    return present, position.changed(lists)


def load_roots(connection: sa.Connection, shards: Sequence[int]) -> Sequence[int]:
    """Return the ids of the roots of all trees of some shards."""
    # A provider without a root is in no shard.
    rows: Sequence[Any] = connection.scalars(_ROOTS_IN, {"shards": shards}).all()
    return rows


def listed_since(older: str, newer: str) -> set[str] | None:
    """Return the trees listed in a shard since a moment, maybe including ``ALL``.

    None means that the newer list does not go back to the older one.
    """
    token = older[:TOKEN_LENGTH]
    listed: set[str] = set()
    for entry in newer.split(";"):
        if entry.startswith(token):
            return listed
        listed.update(entry[TOKEN_LENGTH:].split())
    return None
