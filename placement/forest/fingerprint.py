"""Sums that must be the same in the database and in a forest made from it.

A program that writes to the database without recording its changes alters some of them.
"""

import dataclasses

from placement.forest import checksum, forest, vocabulary
from placement.forest.forest import Forest
from placement.model.checksum import MODULUS
from placement.model.tree import Tree
from placement.objects.database_sum import Fingerprint

_ZERO: Fingerprint = (0,) * (len(checksum.NO_SUMS) + 1)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """A comparison of a forest with the database: the forest, and its fingerprint.

    ``difference`` is by how much the fingerprint of the database exceeds it while all
    changes are recorded, due to rows that no answer depends on.
    """

    forest: Forest
    fingerprint: Fingerprint
    difference: Fingerprint


# Before the first comparison.
NOTHING = Comparison(forest.forest_of(vocabulary.of_names({}, {}), {}), _ZERO, _ZERO)


def of_forest(grown: Forest, former: Comparison = NOTHING) -> Fingerprint:
    """Return the fingerprint of a forest.

    :param former: of an earlier state: only trees that have changed since are added up
    """
    more = _sums_beyond(grown, former.forest)
    less = _sums_beyond(former.forest, grown)
    sums = zip(former.fingerprint[:-1], more, less, strict=True)
    words = grown.vocabulary
    names = checksum.of_names(words.traits, words.classes)
    return (
        *((number + plus - minus) % MODULUS for number, plus, minus in sums),
        names % MODULUS,
    )


def _sums_beyond(one: Forest, other: Forest) -> checksum.Sums:
    """Return the sums over the trees of a forest that another one does not have."""
    trees: set[Tree] = set()
    for block in set(other.blocks).difference(one.blocks):
        trees.update(block.trees)
    return checksum.add_up(
        checksum.of_tree(tree)
        for block in set(one.blocks).difference(other.blocks)
        for tree in block.trees
        if tree not in trees
    )


def between(one: Fingerprint, other: Fingerprint) -> Fingerprint:
    """Return by how much two fingerprints differ."""
    return tuple(
        (number - less) % MODULUS for number, less in zip(one, other, strict=True)
    )
