"""Reading a forest from the database: all of it, or the part that a question names."""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.forest import forest, reading, vocabulary
from placement.forest.forest import Forest
from placement.forest.part import Part
from placement.forest.vocabulary import Vocabulary
from placement.model.tree import SHARING
from placement.objects import exact_match, trait
from placement.objects.exact_match import WantedStrings

_CLASSES = sa.select(models.ResourceClass.id, models.ResourceClass.name)


def load_vocabulary(connection: sa.Connection) -> Vocabulary:
    """Return the names of all resource classes and traits."""
    classes: Iterable[Any] = connection.execute(_CLASSES).all()
    traits = connection.execute(trait.TRAITS).all()
    return vocabulary.of_names(
        dict(classes),
        {key: name for key, name, _ in traits},
        {key: modified for key, _, modified in traits},
    )


def load(
    connection: sa.Connection, part: Part | None = None, former: Forest | None = None
) -> Forest:
    """Return a forest.

    :param part: what the forest must have; None means the whole cloud
    :param former: unchanged values are taken from there, to share their memory
    """
    words = load_vocabulary(connection)
    roots = None
    if part and part.has_known_words(words):
        roots = _find_roots(connection, part, words)
    find_former = former.provider if former else None
    return forest.forest_of(words, reading.load(connection, words, roots, find_former))


def _find_roots(
    connection: sa.Connection, part: Part, words: Vocabulary
) -> frozenset[int] | None:
    """Return the ids of the roots of the trees in a part; None if it is everything."""
    row = models.ResourceProvider
    root_id: Any = row.root_provider_id
    name: Any = row.name
    found = exact_match.ids_of_all(
        connection,
        [
            WantedStrings(root_id, row.uuid, part.uuids),
            WantedStrings(root_id, name, part.names),
        ],
    )
    # Providers without a root are not part of the API.
    named = {key for ids in found for key in ids.values() if key}
    sharing = _find_sharing(connection, words) if part.helped else frozenset()
    if not part.rooted and not sharing.isdisjoint(named):
        return None
    return sharing | named


def _find_sharing(connection: sa.Connection, words: Vocabulary) -> frozenset[int]:
    """Return the ids of the roots of the trees with providers that share."""
    row, association = models.ResourceProvider, models.ResourceProviderTrait
    query = (
        sa.select(row.root_provider_id)
        .join(association, association.resource_provider_id == row.id)
        .where(association.trait_id == words.trait_ids.get(SHARING))
    )
    return frozenset(root_id for (root_id,) in connection.execute(query) if root_id)
