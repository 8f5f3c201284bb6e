"""The fingerprint of a forest is that of the database it was read from."""

import random

import pytest
import sqlalchemy as sa

from placement.forest import fingerprint, forest, loading, reading
from placement.forest.forest import Forest
from placement.objects import database_sum
from placement.objects.database_sum import Fingerprint
from placement_foundation.database.digest import digest, digest_of
from placement_foundation.database.storage import Database
from tests.instances import Instances
from tests.property.cloud import Writer

NOTHING = (0,) * 6


def read(connection: sa.Connection) -> Forest:
    words = loading.load_vocabulary(connection)
    return forest.forest_of(words, reading.load(connection, words))


def difference(connection: sa.Connection) -> Fingerprint:
    of_forest = fingerprint.of_forest(read(connection))
    return fingerprint.between(database_sum.load(connection), of_forest)


@pytest.mark.parametrize(
    "text", ["", "a", "CUSTOM_ÄÖ", "x" * 300, "it's 100%: 中\U0001f600"]
)
def test_a_text_has_the_same_digest_everywhere(text: str, database: Database) -> None:
    query = sa.select(digest(sa.literal(text, sa.String(400))))
    assert database.read(lambda one: one.scalar(query)) == digest_of(text)


def test_a_forest_has_the_fingerprint_of_its_database(instances: Instances) -> None:
    one = instances.start()
    seed = random.randrange(10**6)
    writer = Writer(random.Random(seed), [one.client])
    for _ in range(80):
        act = writer.write()
        assert one.database.read(difference) == NOTHING, (seed, act)
