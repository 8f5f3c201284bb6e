"""Sums over the rows that trees are made of, each row weighted by its content.

The sums change with each row that is added, removed or changed, and with two rows that
exchange their contents. The database computes the same: see
``placement/objects/database_sum.py``. So there are only products of two numbers below
2**31, and remainders.
"""

import functools
import operator
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from placement.model.checksum import (
    FACTOR,
    FIELD_FACTORS,
    MODULUS,
    OTHER_FACTOR,
    OTHER_MODULUS,
)
from placement.model.tree import Provider, Tree
from placement_foundation.database.digest import digest_of

# Of how many names, and of how many sets of them, the digests are remembered.
MOST_NAMES = 10_000

# Sums of providers, inventories, usages, traits and aggregates.
Sums: TypeAlias = tuple[int, ...]
NO_SUMS: Sums = (0,) * 5

_fields_of = operator.attrgetter(*FIELD_FACTORS)
_FACTORS = tuple(FIELD_FACTORS.values())
_digest_of_name = functools.lru_cache(MOST_NAMES)(digest_of)


@functools.lru_cache(MOST_NAMES)
def _digest_of_names(names: frozenset[str]) -> int:
    return sum(map(_digest_of_name, names))


def weight(number: int) -> int:
    """Return the weight of the rows of a provider, by its id."""
    number += 1
    return (
        (number * FACTOR % MODULUS) * (number * OTHER_FACTOR % OTHER_MODULUS) % MODULUS
    )


def of_tree(tree: Tree) -> Sums:
    """Return the sums of a tree."""
    ids = {member.uuid: member.id for member in tree.members}
    return add_up([_of_provider(member, ids) for member in tree.members])


def _of_provider(provider: Provider, ids: Mapping[str, int]) -> Sums:
    """Return the sums of a provider.

    :param ids: of the providers of its tree, by UUID
    """
    own = weight(provider.id)
    inventories = used = 0
    for name, inventory in provider.inventories.items():
        kind = _digest_of_name(name)
        fields = sum(map(operator.mul, _fields_of(inventory), _FACTORS))
        inventories += kind * (fields % MODULUS)
        used += kind * inventory.used
    row = (
        provider.id,
        ids.get(provider.parent_uuid or "", 0),
        ids.get(provider.root_uuid, 0),
        provider.generation or 0,
        provider.uuid,
        provider.name or "",
    )
    return (
        digest_of(",".join(map(str, row))),
        own * inventories % MODULUS,
        own * used % MODULUS,
        own * _digest_of_names(provider.traits) % MODULUS,
        own * _digest_of_names(provider.aggregates) % MODULUS,
    )


def of_names(*named: Mapping[int, str]) -> int:
    """Return the sum of names, given by id."""
    return sum(
        digest_of(f"{key},{name}") for names in named for key, name in names.items()
    )


def add_up(each: Iterable[Sums]) -> Sums:
    """Return the sums of sums."""
    return tuple(map(sum, zip(NO_SUMS, *each, strict=True)))
