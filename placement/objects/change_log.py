"""Which trees have changed, and whether names have, for processes that keep them.

A tree belongs to a shard, by the id of its root. The row of a shard lists its latest
changes, the newest first. Each has a random token: a reader that knows one token finds
what has changed since, and notices if the database was restored.
"""

import collections
import dataclasses
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql

from placement.db import models
from placement.objects import generation, own_table
from placement_foundation.database import storage

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
# The keys of the changes to record, and of the token with which they are recorded,
# among the notes on a transaction.
_CHANGES, _OWN_TOKEN = "changes", "token of changes"
# Parts of the SQL of a statement: as parameters they would be put there each time.
_comma: Any = sa.literal_column("','")
_slash: Any = sa.literal_column("'/'")
_colon: Any = sa.literal_column("':'")
_one: Any = sa.literal_column("1")
_length: Any = sa.literal_column(str(TOKEN_LENGTH))
_names: Any = sa.literal_column(str(NAMES))
_shards: Any = sa.literal_column(str(SHARDS))
_token = sa.func.substr(_row.changes, _one, _length)
_newest = sa.select(_token.label("token")).order_by(_row.shard).subquery()
_HEADS = sa.select(sa.func.aggregate_strings(_newest.c.token, _comma))
# How long the tokens of all shards are together, with the commas between them.
_HEADS_LENGTH = ROWS * (TOKEN_LENGTH + 1) - 1
_SEEN = sa.select(_row.shard, _row.changes).order_by(_row.shard)
# Of bytes, the database finds the part that belongs to a shard without counting
# characters.
_known = sa.func.substr(
    sa.bindparam("heads", type_=sa.LargeBinary), _row.shard * _length + _one, _length
)
_DIFFERING = sa.select(
    sa.func.count(),
    sa.func.aggregate_strings(
        sa.case(
            (
                sa.cast(_token, sa.LargeBinary) != _known,
                sa.cast(_row.shard, sa.String(4)) + _colon + _row.changes,
            )
        ),
        _slash,
    ),
).select_from(models.FOREST_STAMPS)
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


def _update_each() -> sa.Update:
    """Return what updates any number of rows on PostgreSQL, and locks them in order."""
    shards = sa.bindparam("of_shards", type_=postgresql.ARRAY(sa.Integer))
    entries = sa.bindparam("each_entry", type_=postgresql.ARRAY(sa.String))
    given = sa.func.unnest(shards, entries).table_valued("shard", "entry")
    wanted = sa.select(given.render_derived()).cte("wanted")
    locked = (
        sa.select(_row.shard)
        .join(wanted, wanted.c.shard == _row.shard)
        .order_by(_row.shard)
        .with_for_update(of=models.FOREST_STAMPS)
        .cte("locked")
    )
    entry: Any = wanted.c.entry
    return (
        sa.update(models.FOREST_STAMPS)
        .where(_row.shard == wanted.c.shard, _row.shard == locked.c.shard)
        .values(changes=sa.func.substr(entry + _row.changes, 1, LONGEST))
    )


_UPDATE_EACH = _update_each()


def in_one(noted: Sequence[Mapping[str, Any]]) -> tuple[sa.Update, Mapping[str, Any]]:
    """Return one statement for PostgreSQL that records what is noted.

    :param noted: parameters of ``UPDATE``; those of the statement are returned
    """
    if len(noted) == 1:
        return UPDATE, noted[0]
    return _UPDATE_EACH, {
        "of_shards": [each["of_shard"] for each in noted],
        "each_entry": [each["entry"] for each in noted],
    }


def _about(key: orm.InstrumentedAttribute[Any]) -> sa.Select[Any]:
    """Select what ``Nearby`` has, of the provider that has the parameter as its key."""
    of_names = models.FOREST_STAMPS.alias()
    itself: Any = key == sa.bindparam("key")
    changes = sa.select(_row.changes).where(
        _row.shard == _provider.root_provider_id % _shards
    )
    # Rows without a root are not in the API.
    return (
        sa.select(
            of_names.c.changes,
            key,
            _provider.root_provider_id,
            generation.stored(_provider),
            changes.scalar_subquery(),
        )
        .outerjoin_from(
            of_names, _provider, itself & _provider.root_provider_id.is_not(None)
        )
        .where(of_names.c.shard == _names)
    )


_ROOTS_IN = (
    sa.select(_provider.root_provider_id)
    .distinct()
    .where(
        (_provider.root_provider_id % _shards).in_(
            sa.bindparam("shards", expanding=True)
        )
    )
)
_ABOUT = {key: _about(getattr(_provider, key)) for key in ("uuid", "name")}


def note_trees(connection: sa.Connection, root_ids: Iterable[int]) -> None:
    """Note that the trees with these root ids have changed."""
    changed = {(root_id % SHARDS, str(root_id)): None for root_id in root_ids}
    if changed:
        _noted(connection).update(changed)


def note_names(connection: sa.Connection) -> None:
    """Note that traits or resource classes have changed."""
    _noted(connection)[NAMES, ALL] = None


def note_everything(connection: sa.Connection) -> None:
    """Note that everything may have changed."""
    _noted(connection).update({(shard, ALL): None for shard in range(ROWS)})


def _noted(connection: sa.Connection) -> dict[tuple[int, str], None]:
    noted: dict[tuple[int, str], None] = storage.notes(connection).setdefault(
        _CHANGES, {}
    )
    return noted


def list_noted(connection: sa.Connection) -> list[dict[str, Any]]:
    """Return what is noted, as parameters of ``UPDATE``, if it can be recorded.

    It is executed at the end of a transaction, in this order, which is that of the
    shards: nothing else locks their rows, and others wait only for a commit.
    """
    noted = storage.notes(connection).get(_CHANGES)
    if not noted or not is_usable(connection):
        return []
    by_shard = collections.defaultdict(list)
    for shard, root_id in sorted(noted):
        by_shard[shard].append(root_id)
    token = token_of(connection)
    return [
        {"of_shard": shard, "entry": _entry(token, root_ids)}
        for shard, root_ids in by_shard.items()
    ]


def token_of(connection: sa.Connection) -> str:
    """Return the token with which the changes of a transaction are recorded."""
    noted = storage.notes(connection)
    token: str = noted.setdefault(_OWN_TOKEN, secrets.token_hex(TOKEN_BYTES))
    return token


def _entry(token: str, root_ids: Collection[str]) -> str:
    listed = [ALL] if ALL in root_ids or len(root_ids) > MOST_LISTED else root_ids
    return f"{token} {' '.join(listed)};"


def is_usable(connection: sa.Connection) -> bool:
    """Return whether changes can be recorded, and read.

    Who cannot record its own changes must not rely on those of others either: other
    processes most likely have the same rights.
    """
    return own_table.is_writable(connection, models.FOREST_STAMPS)


class Nearby(NamedTuple):
    """What a database has of a provider, and whether its tree or names have changed.

    If there is no such provider, ``root_id`` and ``generation`` are None. ``changes``
    has the lists of the shards of its tree and of names.
    """

    root_id: int | None
    generation: int | None
    changes: Mapping[int, str]


class Changed(NamedTuple):
    """What differs between two moments.

    ``roots`` has the trees that are known to differ, by the ids of their roots: the
    token of the only write after the first moment that has changed the tree, or an
    empty string. In ``shards``, any tree may differ as well.
    """

    roots: dict[int, str]
    shards: list[int]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The lists of changes at one moment, by shard.

    ``heads`` are their newest tokens.
    """

    changes: Sequence[str]
    heads: bytes

    def differing(self, other: "Seen") -> dict[int, str]:
        """Return the lists of another moment that differ from these, by shard."""
        pairs = zip(self.changes, other.changes, strict=True)
        return {shard: two for shard, (one, two) in enumerate(pairs) if one != two}

    def changed(self, changes: Mapping[int, str]) -> Changed:
        """Return which trees differ at another moment, earlier or later.

        :param changes: the lists of that moment that differ, by shard
        """
        found = Changed({}, [])
        for shard, listed in changes.items():
            if shard == NAMES:
                continue
            changed = changed_between(self.changes[shard], listed)
            if changed is None:
                found.shards.append(shard)
            else:
                found.roots.update(changed)
        return found

    def has_same(self, nearby: Nearby) -> bool:
        """Return whether neither the tree of a provider nor any name has changed.

        Either moment may be the earlier one.
        """
        for shard, changes in nearby.changes.items():
            if changes == self.changes[shard]:
                continue
            # Names are never listed, so any change of them is one of everything.
            changed = changed_between(self.changes[shard], changes)
            if changed is None or nearby.root_id in changed:
                return False
        return True

    def replace(self, changes: Mapping[int, str]) -> "Seen":
        """Return the lists with some of them replaced, by shard."""
        lists, heads = list(self.changes), bytearray(self.heads)
        for shard, listed in changes.items():
            lists[shard] = listed
            start = shard * TOKEN_LENGTH
            heads[start : start + TOKEN_LENGTH] = listed[:TOKEN_LENGTH].encode()
        return Seen(lists, bytes(heads))

    def is_newer(self, changes: Mapping[int, str]) -> bool:
        """Return whether a list goes back to one of another moment that differs."""
        return any(
            listed[:TOKEN_LENGTH] in self.changes[shard][TOKEN_LENGTH:]
            for shard, listed in changes.items()
        )


def load_heads(connection: sa.Connection) -> str | None:
    """Return the newest token of each shard, joined by commas into one string.

    None means that rows are missing: the changes of their shards are not recorded.
    """
    heads = own_table.execute(connection, models.FOREST_STAMPS, _HEADS).scalar()
    return heads if heads and len(heads) == _HEADS_LENGTH else None


def load_seen(connection: sa.Connection) -> Seen | None:
    """Return the lists of all shards; None if rows are missing."""
    rows: Sequence[Any] = own_table.execute(
        connection, models.FOREST_STAMPS, _SEEN
    ).all()
    changes = [listed for _, listed in rows]
    heads = "".join([listed[:TOKEN_LENGTH] for listed in changes]).encode()
    is_complete = len(rows) == ROWS and len(heads) == ROWS * TOKEN_LENGTH
    return Seen(changes, heads) if is_complete else None


def load_differing(connection: sa.Connection, seen: Seen) -> dict[int, str] | None:
    """Return the lists that are other ones now, by shard; None if rows are missing."""
    row: Sequence[Any] = own_table.execute(
        connection, models.FOREST_STAMPS, _DIFFERING, {"heads": seen.heads}
    ).one()
    count, joined = row
    changes = {}
    for each in joined.split("/") if joined else ():
        shard, _, listed = each.partition(":")
        changes[int(shard)] = listed
    is_complete = count == ROWS and all(
        len(listed) >= TOKEN_LENGTH for listed in changes.values()
    )
    return changes if is_complete else None


def load_roots(connection: sa.Connection, shards: Sequence[int]) -> Sequence[int]:
    """Return the ids of the roots of all trees of some shards."""
    # A provider without a root is in no shard.
    found: Sequence[Any] = connection.scalars(_ROOTS_IN, {"shards": shards}).all()
    return found


def load_nearby(connection: sa.Connection, key: str, value: str) -> Nearby | None:
    """Return what there is of a provider; None if rows are missing.

    :param key: ``uuid`` or ``name``
    """
    rows: Sequence[Any] = own_table.execute(
        connection, models.FOREST_STAMPS, _ABOUT[key], {"key": value}
    ).all()
    if not rows:
        return None
    names, found, root_id, generation, changes = rows[0]
    # The database may be lax about case.
    if found != value:
        return Nearby(None, None, {NAMES: names})
    if changes is None:
        return None
    return Nearby(root_id, generation, {root_id % SHARDS: changes, NAMES: names})


def changed_between(one: str, other: str) -> dict[int, str] | None:
    """Return the roots of the trees that differ between two moments of a shard.

    Either may be the older one. Return None if neither list goes back to the other.

    :return: the token of the only write after the first moment that has changed the
        tree, or an empty string, by the id of the root
    """
    for newer, older in ((other, one), (one, other)):
        token = older[:TOKEN_LENGTH]
        roots: dict[int, str] = {}
        for entry in newer.split(";"):
            if entry.startswith(token):
                return roots
            listed = entry[TOKEN_LENGTH:].split()
            if ALL in listed:
                break
            written = entry[:TOKEN_LENGTH] if newer is other else ""
            for root_id in map(int, listed):
                roots[root_id] = "" if root_id in roots else written
    return None
