"""Sums that must be the same in the database and in a forest made from it.

A program that writes to the database without recording its changes alters some of them.
"""

from placement.forest import checksum
from placement.forest.forest import Forest, sums_of
from placement.model.checksum import MODULUS
from placement.objects.database_sum import Fingerprint

# The difference of two equal fingerprints.
NO_DIFFERENCE: Fingerprint = (0,) * (len(checksum.NO_SUMS) + 1)


def of_forest(forest: Forest) -> Fingerprint:
    """Return the fingerprint of a forest."""
    words = forest.vocabulary
    sums = (
        *checksum.add_up(map(sums_of, forest.blocks)),
        checksum.of_names(words.traits, words.classes),
    )
    return tuple(number % MODULUS for number in sums)


def between(one: Fingerprint, other: Fingerprint) -> Fingerprint:
    """Return by how much two fingerprints differ."""
    return tuple(
        (number - less) % MODULUS for number, less in zip(one, other, strict=True)
    )
