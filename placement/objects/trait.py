"""Traits: the qualities of resource providers."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model.entry import Entry, EntryType
from placement.model.resource_provider import (
    UNKNOWN_PROVIDER,
    Belongings,
    ResourceProvider,
)
from placement.model.trait import (
    CUSTOM_PREFIX,
    UNKNOWN_TRAIT,
    Trait,
    TraitFilters,
)
from placement.objects import association, exact_match, resource_provider
from placement.objects.resource_provider import stored_generation
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

TRAITS = sa.select(
    models.Trait.id,
    models.Trait.name,
    sa.func.coalesce(models.Trait.updated_at, models.Trait.created_at),
).order_by(models.Trait.id)


_having = models.ResourceProvider
_OF_PROVIDER = (
    sa.select(_having.uuid, stored_generation(_having), *TRAITS.selected_columns)
    .select_from(_having)
    .outerjoin(models.ResourceProviderTrait)
    .outerjoin(models.Trait)
    .where(_having.uuid == sa.bindparam("uuid"))
    .where(_having.root_provider_id.is_not(None))
    .order_by(models.Trait.id)
)


def ids_by_name(connection: sa.Connection, names: Iterable[str]) -> dict[str, int]:
    """Return the ids of traits by name; unknown ones are left out."""
    return exact_match.ids_by_string(connection, models.Trait.name, names)


def list_by_filters(connection: sa.Connection, filters: TraitFilters) -> list[Trait]:
    """Return the traits that pass filters, in the order of their ids."""
    query = TRAITS.where(*_conditions(filters))
    rows: Iterable[Any] = connection.execute(query)
    # The database may be lax about case.
    return [Trait(*row) for row in rows if filters.accepts(row[1])]


def _conditions(filters: TraitFilters) -> Iterator[sa.ColumnElement[bool]]:
    """Yield conditions for the database, enough to leave out most other traits."""
    if filters.names is not None and len(filters.names) <= storage.CHUNK:
        yield models.Trait.name.in_(exact_match.searchable(filters.names))
    if filters.associated is not None:
        had = models.Trait.id.in_(sa.select(models.ResourceProviderTrait.trait_id))
        yield had if filters.associated else ~had


def list_all(connection: sa.Connection) -> list[Trait]:
    """Return all traits, in the order of their ids."""
    return list_by_filters(connection, TraitFilters())


def load_of_provider(connection: sa.Connection, uuid: str) -> Belongings[list[Trait]]:
    """Return the traits of a provider, in the order of their ids, by one query.

    :raises NotFound: there is no such provider
    """
    rows: Iterable[Any] = ()
    if exact_match.is_searchable(uuid):
        rows = connection.execute(_OF_PROVIDER, {"uuid": uuid}).all()
    found = [row for row in rows if row[0] == uuid]
    if not found:
        raise errors.NotFound(UNKNOWN_PROVIDER.format(uuid=uuid))
    traits = [Trait(*row[2:]) for row in found if row[2] is not None]
    return Belongings(traits, found[0][1])


def get_by_name(connection: sa.Connection, name: str) -> Trait:
    """Return a trait.

    :raises NotFound: there is no such trait
    """
    trait = find_by_name(connection, name)
    if trait is None:
        raise errors.NotFound(UNKNOWN_TRAIT.format(name=name))
    return trait


def find_by_name(connection: sa.Connection, name: str) -> Trait | None:
    """Return a trait, or None if there is none of that name."""
    named = TraitFilters(names=frozenset({name}))
    return next(iter(list_by_filters(connection, named)), None)


def create(tx: Transaction, name: str) -> Trait:
    """Create a trait, whose name is known to be free."""
    tx.connection.execute(sa.insert(models.Trait), {"name": name})
    tx.record_names([Entry(EntryType.TRAIT_CREATED, name)])
    return get_by_name(tx.connection, name)


def ensure(tx: Transaction, names: Iterable[str]) -> dict[str, int]:
    """Return the ids of traits by name; create custom ones that are new.

    :raises BadRequest: there is no such standard trait, or the database considers a
        custom one equal to another
    """
    wanted = set(names)
    ids = ids_by_name(tx.connection, wanted)
    new = sorted(name for name in wanted - ids.keys() if name.startswith(CUSTOM_PREFIX))
    if new:
        ids |= exact_match.insert_missing(tx.connection, models.Trait.name, new)
        tx.record_names([Entry(EntryType.TRAIT_CREATED, name) for name in new])
    unknown = sorted(wanted - ids.keys())
    if unknown:
        raise errors.BadRequest(UNKNOWN_TRAIT.format(name=", ".join(unknown)))
    return ids


def delete(tx: Transaction, known: Trait) -> None:
    """Delete a trait.

    :raises Conflict: a provider has it
    :raises NotFound: the trait no longer exists
    """
    had = sa.select(models.ResourceProviderTrait.trait_id).where(
        models.ResourceProviderTrait.trait_id == known.id
    )
    if tx.connection.execute(had.limit(1)).first():
        raise errors.Conflict(
            f"The trait {known.name} is in use by a resource provider."
        )
    row = models.Trait
    result = tx.connection.execute(sa.delete(row).where(row.id == known.id))
    if not result.rowcount:
        raise errors.NotFound(UNKNOWN_TRAIT.format(name=known.name))
    tx.record_names([Entry(EntryType.TRAIT_DELETED, known.name)])


def replace_all(
    tx: Transaction, provider: ResourceProvider, names: Collection[str]
) -> None:
    """Make these the traits of a provider.

    Its generation increases if they really change.

    :raises BadRequest: there is no such trait
    :raises ConcurrentUpdate: another request has changed the provider
    """
    ids = ids_by_name(tx.connection, names)
    unknown = [name for name in dict.fromkeys(names) if name not in ids]
    if unknown:
        raise errors.BadRequest(UNKNOWN_TRAIT.format(name=", ".join(unknown)))
    entries = _associate(tx, {provider: names}, ids)
    resource_provider.record_change(tx, [provider], entries, bump=bool(entries))


def replace_of_many(
    tx: Transaction, wanted: Mapping[ResourceProvider, Collection[str]]
) -> list[Entry]:
    """Make these the traits of providers, without changing their generations.

    New custom traits are created. The caller records the returned entries of the
    journal.

    :raises BadRequest: there is no such trait
    """
    return _associate(tx, wanted, ensure(tx, set().union(*wanted.values())))


def _associate(
    tx: Transaction,
    wanted: Mapping[ResourceProvider, Collection[str]],
    ids: Mapping[str, int],
) -> list[Entry]:
    member, name = models.ResourceProviderTrait.trait_id, models.Trait.name
    return association.replace(tx, EntryType.TRAITS_CHANGED, member, name, wanted, ids)
