"""Sums that must be the same in the database and in a forest made from it.

A program that writes to the database without recording its changes alters some of them.
"""

from typing import Any, TypeAlias

import sqlalchemy as sa

from placement.db import models
from placement.forest import block
from placement.forest.forest import Forest
from placement.forest.vocabulary import Vocabulary

# Sums like those of a block, and one over the names.
Fingerprint: TypeAlias = tuple[int, ...]


def load(connection: sa.Connection) -> Fingerprint:
    """Return the fingerprint of the database, in one statement."""
    provider = models.ResourceProvider
    rooted = provider.root_provider_id.is_not(None)
    sums = [
        sa.select(sa.func.count()).select_from(provider).where(rooted),
        sa.select(sa.func.sum(provider.generation)).where(rooted),
        sa.select(sa.func.sum(provider.parent_provider_id)).where(rooted),
        sa.select(sa.func.sum(models.Allocation.used)),
        sa.select(sa.func.count()).select_from(models.ResourceProviderAggregate),
        sa.select(sa.func.count()).select_from(models.ResourceProviderTrait),
    ]
    names = [
        sa.select(sa.func.sum(row.id + sa.func.length(row.name)))
        for row in (models.Trait, models.ResourceClass)
    ]
    query = sa.select(*(each.scalar_subquery() for each in [*sums, *names]))
    row: Any = connection.execute(query).one()
    *values, traits, classes = (int(value or 0) for value in row)
    return (*values, traits + classes)


def of_forest(forest: Forest) -> Fingerprint:
    """Return the fingerprint of a forest."""
    sums = block.add_up(each.sums for each in forest.blocks)
    return (*sums, _of_names(forest.vocabulary))


def between(one: Fingerprint, other: Fingerprint) -> Fingerprint:
    """Return by how much two fingerprints differ."""
    return tuple(number - less for number, less in zip(one, other, strict=True))


def _of_names(vocabulary: Vocabulary) -> int:
    return sum(
        key + len(name)
        for names in (vocabulary.traits, vocabulary.classes)
        for key, name in names.items()
    )
