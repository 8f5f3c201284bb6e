"""Sums over all rows that trees are made of: their fingerprint, in one statement.

``placement/forest/checksum.py`` defines the sums, and computes them from a forest.
"""

from typing import Any, TypeAlias

import sqlalchemy as sa

from placement.db import models
from placement.model.checksum import (
    FACTOR,
    FIELD_FACTORS,
    MODULUS,
    OTHER_FACTOR,
    OTHER_MODULUS,
)
from placement_foundation.database.digest import digest

# Sums of providers, inventories, usages, traits and aggregates, and one over the names,
# modulo ``MODULUS``.
Fingerprint: TypeAlias = tuple[int, ...]

_provider, _inventory = models.ResourceProvider, models.Inventory
_allocation = models.Allocation
_trait, _aggregate = models.ResourceProviderTrait, models.ResourceProviderAggregate


def _constant(number: int) -> Any:
    # Part of the SQL of the statement: the database sees its size, and so its type.
    return sa.literal_column(str(number))


_MODULUS = _constant(MODULUS)
_COMMA: Any = sa.literal_column("','")


def _text(column: Any) -> Any:
    return sa.cast(sa.func.coalesce(column, 0), sa.String(20))


def _weight(provider_id: Any) -> Any:
    """Return ``weight`` of ``placement/forest/checksum.py`` in SQL."""
    number = sa.cast(provider_id, sa.BigInteger) + _constant(1)
    factor = number * _constant(FACTOR) % _MODULUS
    other = number * _constant(OTHER_FACTOR) % _constant(OTHER_MODULUS)
    return factor * other % _MODULUS


def _of_rows(summed: Any) -> Any:
    return sa.func.coalesce(sa.func.sum(summed % _MODULUS), _constant(0)) % _MODULUS


def _of_kinds(kind_id: Any, name: Any, row_id: Any, summed: Any) -> Any:
    """Return a sum over rows, those of each kind multiplied with the kind's digest.

    :param kind_id: the column of the rows that says their kind
    :param name: the name of a kind, whose id is ``row_id``
    """
    of_each = (
        sa.select(kind_id.label("kind"), _of_rows(summed).label("summed"))
        .group_by(kind_id)
        .subquery()
    )
    return (
        sa.select(_of_rows(digest(name) * of_each.c.summed))
        .select_from(of_each.join(name.class_, row_id == of_each.c.kind))
        .where(name.is_not(None))
    )


def _of_names(model: Any) -> Any:
    return sa.select(_of_rows(digest(_text(model.id) + _COMMA + model.name)))


def _make_query() -> sa.Select[Any]:
    row = _text(_provider.id)
    for number in (
        _provider.parent_provider_id,
        _provider.root_provider_id,
        _provider.generation,
    ):
        row = row + _COMMA + _text(number)
    name = sa.func.coalesce(_provider.name, sa.literal_column("''"))
    row = row + _COMMA + _provider.uuid + _COMMA + name
    fields = sum(
        (
            sa.cast(getattr(_inventory, field), sa.BigInteger) * _constant(factor)
            for field, factor in FIELD_FACTORS.items()
        ),
        start=_constant(0),
    )
    kind, kind_id = models.ResourceClass.name, models.ResourceClass.id
    by_class = (kind, kind_id)
    sums = (
        sa.select(_of_rows(digest(row))).where(_provider.root_provider_id.is_not(None)),
        _of_kinds(
            _inventory.resource_class_id,
            *by_class,
            _weight(_inventory.resource_provider_id) * (fields % _MODULUS),
        ),
        _of_kinds(
            _allocation.resource_class_id,
            *by_class,
            _weight(_allocation.resource_provider_id) * _allocation.used,
        ),
        _of_kinds(
            _trait.trait_id,
            models.Trait.name,
            models.Trait.id,
            _weight(_trait.resource_provider_id),
        ),
        _of_kinds(
            _aggregate.aggregate_id,
            models.Aggregate.uuid,
            models.Aggregate.id,
            _weight(_aggregate.resource_provider_id),
        ),
        _of_names(models.Trait),
        _of_names(models.ResourceClass),
    )
    return sa.select(*(each.scalar_subquery() for each in sums))


_QUERY = _make_query()


def load(connection: sa.Connection) -> Fingerprint:
    """Return the fingerprint of the database, in one statement."""
    *sums, traits, classes = map(int, connection.execute(_QUERY).one())
    return (*sums, (traits + classes) % MODULUS)
