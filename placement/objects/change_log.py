"""Which trees have changed, and whether names have, for processes that keep them.

A tree belongs to a shard, by the id of its root. The row of a shard lists its latest
changes, the newest first. Each has a random token: a reader that knows one token finds
what has changed since, and notices if the database was restored.
"""

import collections
import dataclasses
import secrets
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.objects import own_table
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
# The key of the changes to record, among the notes on a transaction.
_CHANGES = "changes"
_newest = (
    sa.select(sa.func.substr(_row.changes, 1, TOKEN_LENGTH).label("token"))
    .order_by(_row.shard)
    .subquery()
)
# Part of the SQL of the statement: as a parameter it would be put there each time.
_comma: Any = sa.literal_column("','")
_HEADS = sa.select(sa.func.aggregate_strings(_newest.c.token, _comma))
_provider = models.ResourceProvider
_tokens = _HEADS.subquery()
# Rows without a root are not in the API.
_HEADS_AND_GENERATION = sa.select(
    *_tokens.c, _provider.uuid, _provider.generation
).outerjoin_from(
    _tokens,
    _provider,
    (_provider.uuid == sa.bindparam("uuid")) & _provider.root_provider_id.is_not(None),
)
# How long the tokens of all shards are together, with the commas between them.
_HEADS_LENGTH = ROWS * (TOKEN_LENGTH + 1) - 1
_CHANGES_OF_ALL = sa.select(_row.shard, _row.changes).order_by(_row.shard)
_CHANGES_OF_SOME = _CHANGES_OF_ALL.where(
    _row.shard.in_(sa.bindparam("shards", expanding=True))
)
# Most often one shard has changed. A list of parameters takes longer.
_CHANGES_OF_ONE = _CHANGES_OF_ALL.where(_row.shard == sa.bindparam("of_shard"))
UPDATE = (
    sa.update(models.FOREST_STAMPS)
    .where(_row.shard == sa.bindparam("of_shard"))
    .values(
        changes=sa.func.substr(
            sa.bindparam("entry", type_=sa.String) + _row.changes, 1, LONGEST
        )
    )
)


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
    return [
        {"of_shard": shard, "entry": _entry(root_ids)}
        for shard, root_ids in by_shard.items()
    ]


def _entry(root_ids: Collection[str]) -> str:
    listed = [ALL] if ALL in root_ids or len(root_ids) > MOST_LISTED else root_ids
    return f"{secrets.token_hex(TOKEN_BYTES)} {' '.join(listed)};"


def is_usable(connection: sa.Connection) -> bool:
    """Return whether changes can be recorded, and read.

    Who cannot record its own changes must not rely on those of others either: other
    processes most likely have the same rights.
    """
    return own_table.is_writable(connection, models.FOREST_STAMPS)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The lists of changes at one moment.

    ``changes`` has the list of each shard, ``shards`` each shard by its newest token.
    """

    changes: Mapping[int, str]
    shards: Mapping[str, int]

    def differing(self, tokens: Iterable[str]) -> set[int]:
        """Return the shards that have changed.

        :param tokens: the newest tokens at another moment, in any order
        """
        gone = self.shards.keys() - tokens
        return {self.shards[token] for token in gone}

    def changed_roots(self, other: "Seen", most: int) -> set[int] | None:
        """Return the roots of the trees that differ; None if they cannot be listed.

        Either moment may be the earlier one.

        :param most: how many can be listed
        """
        roots: set[int] = set()
        for shard in self.differing(other.shards) - {NAMES}:
            changed = changed_between(self.changes[shard], other.changes[shard])
            if changed is None:
                return None
            roots |= changed
        return roots if len(roots) <= most else None

    def replace(self, changes: Mapping[int, str]) -> "Seen":
        """Return the lists with some of them replaced, by shard."""
        shards = dict(self.shards)
        for shard in changes:
            shards.pop(self.changes[shard][:TOKEN_LENGTH], None)
        return Seen({**self.changes, **changes}, {**shards, **_by_token(changes)})

    def is_older(self, other: "Seen") -> bool:
        """Return whether a list of the other one goes back to this one's."""
        return any(
            self.changes[shard][:TOKEN_LENGTH] in other.changes[shard][TOKEN_LENGTH:]
            for shard in self.differing(other.shards)
        )


def seen_of(changes: Mapping[int, str]) -> Seen:
    """Return what is known of the lists of all shards, given by shard."""
    return Seen(changes, _by_token(changes))


def _by_token(changes: Mapping[int, str]) -> dict[str, int]:
    return {listed[:TOKEN_LENGTH]: shard for shard, listed in changes.items()}


def load_heads(connection: sa.Connection) -> str | None:
    """Return the newest token of each shard, joined by commas into one string.

    None means that rows are missing: the changes of their shards are not recorded.
    """
    heads = own_table.execute(connection, models.FOREST_STAMPS, _HEADS).scalar()
    return _complete(heads)


def load_heads_with(
    connection: sa.Connection, uuid: str
) -> tuple[str | None, int | None]:
    """Return what ``load_heads`` does, and the generation of a provider.

    The generation is None if there is no such provider.
    """
    row: Any = own_table.execute(
        connection, models.FOREST_STAMPS, _HEADS_AND_GENERATION, {"uuid": uuid}
    ).one()
    heads, found, generation = row
    # The database may be lax about case.
    return _complete(heads), generation if found == uuid else None


def _complete(heads: str | None) -> str | None:
    return heads if heads and len(heads) == _HEADS_LENGTH else None


def load_changes(
    connection: sa.Connection, shards: Collection[int] | None = None
) -> dict[int, str]:
    """Return the listed changes of some shards, or of all."""
    query, listed = _CHANGES_OF_ALL, dict[str, Any]()
    if shards is not None and len(shards) == 1:
        query, listed = _CHANGES_OF_ONE, {"of_shard": next(iter(shards))}
    elif shards is not None:
        query, listed = _CHANGES_OF_SOME, {"shards": sorted(shards)}
    rows = own_table.execute(connection, models.FOREST_STAMPS, query, listed).all()
    return {row.shard: row.changes for row in rows}


def changed_between(one: str, other: str) -> set[int] | None:
    """Return the roots of the trees that differ between two moments of a shard.

    Either may be the older one. Return None if neither list goes back to the other.
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
