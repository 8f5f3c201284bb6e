"""Reading a forest from the database: all of it, or the part that a question names."""

from placement.forest import forest, reading, vocabulary
from placement.forest.forest import Forest
from placement.forest.part import Part
from placement.forest.vocabulary import Vocabulary
from placement.model.tree import SHARING
from placement.objects import resource_class, resource_provider, trait
from placement.objects.transaction import Connection


def load_vocabulary(connection: Connection) -> Vocabulary:
    """Return the names of all resource classes and traits."""
    classes, traits = resource_class.list_all(connection), trait.list_all(connection)
    return vocabulary.of_names(
        {each.id: each.name for each in classes},
        {each.id: each.name for each in traits},
    )


def load(
    connection: Connection, part: Part | None = None, former: Forest | None = None
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
    connection: Connection, part: Part, words: Vocabulary
) -> frozenset[int] | None:
    """Return the ids of the roots of the trees in a part; None if it is everything."""
    named = resource_provider.list_roots(connection, part.uuids, part.names)
    sharing: frozenset[int] = frozenset()
    if part.helped and SHARING in words.trait_ids:
        key = words.trait_ids[SHARING]
        sharing = resource_provider.list_roots_with_trait(connection, key)
    if not part.rooted and not sharing.isdisjoint(named):
        return None
    return sharing | named
