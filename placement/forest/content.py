"""What a forest has in it, as one digest: the same for equal forests of all processes.

Digests of trees are added, so they do not depend on how a forest is divided. Those of a
block are remembered as long as it is kept: after a claim, one block is read again.
"""

import hashlib
import weakref

from placement.forest.block import Block
from placement.forest.forest import Forest
from placement.forest.vocabulary import Vocabulary
from placement.model.inventory import InventoryUsage
from placement.model.tree import Provider, Tree

SIZE = 16
MODULUS = 1 << 8 * SIZE

_of_blocks: weakref.WeakKeyDictionary[Block, int] = weakref.WeakKeyDictionary()
_of_names: weakref.WeakKeyDictionary[Vocabulary, int] = weakref.WeakKeyDictionary()


def digest_of(forest: Forest) -> str:
    """Return a digest of everything in a forest that an answer may depend on."""
    total = sum(map(_of_block, forest.blocks)) % MODULUS
    return f"{total:x}.{_of_vocabulary(forest.vocabulary):x}"


def _of_block(block: Block) -> int:
    known = _of_blocks.get(block)
    if known is None:
        known = _of_blocks[block] = sum(map(_of_tree, block.trees))
    return known


def _of_tree(tree: Tree) -> int:
    return _hash([_list_provider(member) for member in tree.members])


def _list_provider(provider: Provider) -> tuple[object, ...]:
    return (
        provider.id,
        provider.uuid,
        provider.name,
        provider.parent_uuid,
        provider.root_uuid,
        provider.generation,
        [
            (name, *_list_inventory(inventory))
            for name, inventory in provider.inventories.items()
        ],
        provider.trait_names,
        sorted(provider.aggregates),
    )


def _list_inventory(inventory: InventoryUsage) -> tuple[object, ...]:
    return (
        inventory.total,
        inventory.reserved,
        inventory.min_unit,
        inventory.max_unit,
        inventory.step_size,
        inventory.allocation_ratio,
        inventory.used,
    )


def _of_vocabulary(names: Vocabulary) -> int:
    known = _of_names.get(names)
    if known is None:
        known = _of_names[names] = _hash(
            [*names.classes.items(), *names.traits.items()]
        )
    return known


def _hash(value: object) -> int:
    digest = hashlib.blake2b(repr(value).encode("utf-8", "replace"), digest_size=SIZE)
    return int.from_bytes(digest.digest())
