"""Reading a whole forest from the database."""

from placement.forest import forest, reading, vocabulary
from placement.forest.forest import Forest
from placement.forest.vocabulary import Vocabulary
from placement.objects import resource_class, trait
from placement.objects.transaction import Connection


def load_vocabulary(connection: Connection) -> Vocabulary:
    """Return the names of all resource classes and traits."""
    classes, traits = resource_class.list_all(connection), trait.list_all(connection)
    return vocabulary.of_names(
        {each.id: each.name for each in classes},
        {each.id: each.name for each in traits},
    )


def load(connection: Connection) -> Forest:
    """Return the forest of the whole cloud."""
    words = load_vocabulary(connection)
    return forest.forest_of(words, reading.load(connection, words))
