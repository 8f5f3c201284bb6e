"""The stored declarations: the latest of each owner for each provider."""

import functools
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import sqlalchemy as sa

from placement.db import models
from placement.model.declaration import Declared
from placement.model.inventory import Inventory
from placement.model.member import members_of
from placement.objects import own_table
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

# The UUID of a provider, and an owner.
Key: TypeAlias = tuple[str, str]

_table = models.DECLARATIONS
_row = _table.c
_ALL = sa.select(_row.provider_uuid, _row.owner, _row.document).order_by(
    _row.provider_uuid, _row.owner
)


def check_table(connection: sa.Connection) -> None:
    """Check that the table can be used.

    :raises UnusableTable: the table is missing, or rights are
    """
    own_table.check(connection, _table)


def load(
    connection: sa.Connection, provider_uuids: Iterable[str]
) -> dict[str, dict[str, Declared]]:
    """Return the declarations of some providers, by UUID and by owner."""
    chunks = storage.chunks(sorted(provider_uuids))
    return _load(connection, [_ALL.where(_row.provider_uuid.in_(c)) for c in chunks])


def load_all(
    connection: sa.Connection, owner: str | None = None
) -> dict[str, dict[str, Declared]]:
    """Return all declarations of one owner, or of all owners.

    They are keyed by UUID of the provider and by owner, in this order.
    """
    query = _ALL if owner is None else _ALL.where(_row.owner == owner)
    return _load(connection, [query])


def _load(
    connection: sa.Connection, queries: Iterable[sa.Select[Any]]
) -> dict[str, dict[str, Declared]]:
    declarations: dict[str, dict[str, Declared]] = {}
    # Many providers are declared alike, and share the values.
    parse = functools.cache(parse_document)
    for query in queries:
        rows: Iterable[Any] = own_table.execute(connection, _table, query)
        for uuid, owner, document in rows:
            what = own_table.parse(_table, f"{owner} for {uuid}", document, parse)
            declarations.setdefault(uuid, {})[owner] = what
    return declarations


def store(tx: Transaction, declared: Mapping[Key, Declared]) -> None:
    """Store declarations; remove those that are empty."""
    for chunk in storage.chunks(sorted(declared)):
        there = sa.tuple_(_row.provider_uuid, _row.owner).in_(chunk)
        # MariaDB uses the primary key for the first condition only.
        these = _row.provider_uuid.in_(sorted({uuid for uuid, _ in chunk}))
        delete = sa.delete(_table).where(these, there)
        own_table.execute(tx.connection, _table, delete)
    rows = [
        {"provider_uuid": uuid, "owner": owner, "document": _render(what)}
        for (uuid, owner), what in sorted(declared.items(), key=lambda item: item[0])
        if not what.is_empty
    ]
    if rows:
        own_table.execute(tx.connection, _table, sa.insert(_table), rows)


def forget(tx: Transaction, provider_uuids: Iterable[str]) -> None:
    """Remove the declarations of providers that have gone."""
    if not own_table.is_writable(tx.connection, _table):
        return
    for chunk in storage.chunks(sorted(provider_uuids)):
        delete = sa.delete(_table).where(_row.provider_uuid.in_(chunk))
        own_table.execute(tx.connection, _table, delete)


def _render(what: Declared) -> str:
    document = members_of(what)
    document["inventories"] = {
        name: value and members_of(value) for name, value in what.inventories.items()
    }
    document["traits"] = sorted(what.traits)
    document["aggregates"] = sorted(what.aggregates)
    return json.dumps({name: value for name, value in document.items() if value})


def parse_document(text: str) -> Declared:
    """Return the declaration in a document of the table.

    :raises Exception: the document is damaged
    """
    document = json.loads(text)
    return Declared(
        document.get("name"),
        document.get("parent_uuid"),
        {
            name: None if record is None else Inventory(**record)
            for name, record in document.get("inventories", {}).items()
        },
        frozenset(document.get("traits", ())),
        frozenset(document.get("aggregates", ())),
        document.get("created", False),
    )
