"""Traits: what resource providers are like."""

import dataclasses
import datetime
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from placement import errors
from placement.db import models
from placement.objects import association, exact_text, resource_provider, stamp
from placement.objects.resource_provider import ResourceProvider
from placement_foundation import storage

CUSTOM_PREFIX = "CUSTOM_"
LONGEST_NAME = 255

UNKNOWN = "No such trait(s): {name}."


@dataclasses.dataclass(frozen=True, slots=True)
class Trait:
    """A trait; ``modified`` is in UTC."""

    id: int
    name: str
    modified: datetime.datetime | None

    @property
    def is_standard(self) -> bool:
        """Whether it is from the catalogue that all services share."""
        return not self.name.startswith(CUSTOM_PREFIX)


@dataclasses.dataclass(frozen=True, slots=True)
class Filters:
    """Which traits to list. None does not filter.

    ``associated`` asks for those that some provider has, or that none has.
    """

    names: frozenset[str] | None = None
    prefix: str | None = None
    associated: bool | None = None

    def accepts(self, name: str) -> bool:
        """Tell whether a name is asked for."""
        listed = self.names is None or name in self.names
        return listed and (self.prefix is None or name.startswith(self.prefix))


TRAITS = sa.select(
    models.Trait.id,
    models.Trait.name,
    sa.func.coalesce(models.Trait.updated_at, models.Trait.created_at),
).order_by(models.Trait.id)


def ids_by_name(session: Session, names: Iterable[str]) -> dict[str, int]:
    """Return the ids of traits by name; unknown ones are left out."""
    return exact_text.ids_by_text(session, models.Trait.id, models.Trait.name, names)


def list_by_filters(session: Session, filters: Filters) -> list[Trait]:
    """Return the traits that filters ask for, in the order of their ids."""
    query = TRAITS.where(*_conditions(filters))
    rows: Iterable[Any] = session.connection().execute(query)
    # The database may be lax about case.
    return [Trait(*row) for row in rows if filters.accepts(row[1])]


def _conditions(filters: Filters) -> Iterator[sa.ColumnElement[bool]]:
    """Yield what the database looks at: enough to leave out most others."""
    if filters.names is not None and len(filters.names) <= storage.CHUNK:
        yield models.Trait.name.in_(filter(exact_text.is_searchable, filters.names))
    if filters.prefix is not None:
        prefix = filters.prefix[: LONGEST_NAME + 1]
        if exact_text.is_searchable(prefix):
            yield models.Trait.name.startswith(prefix, autoescape=True)
        else:
            yield sa.false()
    if filters.associated is not None:
        had = models.Trait.id.in_(sa.select(models.ResourceProviderTrait.trait_id))
        yield had if filters.associated else ~had


def list_by_provider(session: Session, provider_id: int) -> list[Trait]:
    """Return the traits of a provider, in the order of their ids."""
    query = TRAITS.join(
        models.ResourceProviderTrait,
        models.ResourceProviderTrait.trait_id == models.Trait.id,
    ).where(models.ResourceProviderTrait.resource_provider_id == provider_id)
    rows: Iterable[Any] = session.connection().execute(query)
    return [Trait(*row) for row in rows]


def get_by_name(session: Session, name: str) -> Trait:
    """Return a trait.

    :raises NotFound: there is no such trait
    """
    found = find_by_name(session, name)
    if found is None:
        raise errors.NotFound(UNKNOWN.format(name=name))
    return found


def find_by_name(session: Session, name: str) -> Trait | None:
    """Return a trait, or None if there is none of that name."""
    row = exact_text.find_by_text(session, TRAITS, models.Trait.name, name)
    return None if row is None else Trait(*row)


def create(session: Session, name: str) -> Trait:
    """Make a trait, whose name is known to be free."""
    session.connection().execute(sa.insert(models.Trait), {"name": name})
    stamp.note_names(session)
    return get_by_name(session, name)


def delete(session: Session, known: Trait) -> None:
    """Delete a trait.

    :raises Conflict: a provider has it
    :raises NotFound: it is gone
    """
    had = sa.select(models.ResourceProviderTrait.trait_id).where(
        models.ResourceProviderTrait.trait_id == known.id
    )
    if session.connection().execute(had.limit(1)).first():
        raise errors.Conflict(
            f"The trait {known.name} is in use by a resource provider."
        )
    row = models.Trait
    result = session.connection().execute(sa.delete(row).where(row.id == known.id))
    if not result.rowcount:
        raise errors.NotFound(UNKNOWN.format(name=known.name))
    stamp.note_names(session)


def replace_all(
    session: Session, provider: ResourceProvider, names: Collection[str]
) -> int:
    """Make these the traits of a provider, and return its generation.

    It goes up if the traits really change.

    :raises BadRequest: there is no such trait
    :raises ConcurrentUpdate: another request has changed the provider
    """
    ids = ids_by_name(session, names)
    unknown = [name for name in dict.fromkeys(names) if name not in ids]
    if unknown:
        raise errors.BadRequest(UNKNOWN.format(name=", ".join(unknown)))
    member = models.ResourceProviderTrait.trait_id
    changed = association.replace(session, provider.id, member, set(ids.values()))
    resource_provider.record_change(session, [provider], bump=changed)
    return provider.generation + changed
