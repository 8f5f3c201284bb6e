"""The cloud as it would be: without some consumers and hosts, with other providers."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias

from placement import errors
from placement.forest.forest import Forest
from placement.forest.vocabulary import Vocabulary
from placement.model.inventory import FIELDS, Inventory, InventoryUsage, complain
from placement.model.resource_class import UNKNOWN_CLASS
from placement.model.resource_provider import UNKNOWN_PROVIDER
from placement.model.trait import UNKNOWN_TRAIT
from placement.model.tree import Provider, Tree
from placement.questions.name import refuse_unknown

# What would no longer be used: amounts by UUID of the provider and class.
Freed: TypeAlias = Mapping[tuple[str, str], int]


NO_SUCH_PROVIDER = f"{UNKNOWN_PROVIDER}."


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """The names to be added to a set, and those to be removed from it."""

    add: frozenset[str] = frozenset()
    remove: frozenset[str] = frozenset()

    def of(self, names: frozenset[str]) -> frozenset[str]:
        """Return the set as it would be."""
        return (names - self.remove) | self.add


@dataclasses.dataclass(frozen=True, slots=True)
class CloudChange:
    """The changes to a provider.

    ``inventories`` have the fields that would change, by resource class; None means
    that the inventory would not exist.
    """

    inventories: Mapping[str, Mapping[str, Any] | None]
    traits: Difference
    aggregates: Difference


@dataclasses.dataclass(frozen=True, slots=True)
class World:
    """The changes to the cloud. Providers and hosts are given by UUID."""

    ignore_consumers: frozenset[str]
    without_hosts: frozenset[str]
    providers: Mapping[str, CloudChange]


def imagine(forest: Forest, world: World, freed: Freed) -> Forest:
    """Return the forest as it would be after the changes.

    :raises BadRequest: the changes name something that does not exist, or leave an
        inventory without capacity
    """
    _check_names(forest, world)
    changed = {uuid for uuid, _ in freed} | world.providers.keys()
    touched = {forest.tree_of(uuid) for uuid in changed | world.without_hosts}
    trees = [tree for tree in touched if tree]
    return forest.replace(
        forest.vocabulary,
        [tree.root.id for tree in trees],
        {
            tree.root.id: _imagine_tree(tree, forest.vocabulary, world, freed)
            for tree in trees
            if tree.root.uuid not in world.without_hosts
        },
    )


def _check_names(forest: Forest, world: World) -> None:
    trees, words = forest.everything.tree_by_uuid, forest.vocabulary
    for uuid in sorted(world.providers.keys() | world.without_hosts):
        if uuid not in trees:
            raise errors.UnknownProvider(NO_SUCH_PROVIDER.format(uuid=uuid))
    for uuid in sorted(world.without_hosts):
        if trees[uuid].root.uuid != uuid:
            raise errors.BadRequest(f"Resource provider {uuid} is not a root.")
    for change in world.providers.values():
        refuse_unknown(change.inventories, words.class_ids, UNKNOWN_CLASS)
        traits = change.traits.add | change.traits.remove
        refuse_unknown(traits, words.trait_ids, UNKNOWN_TRAIT)


def _imagine_tree(tree: Tree, words: Vocabulary, world: World, freed: Freed) -> Tree:
    return Tree(
        tuple(
            _imagine_provider(member, words, world.providers.get(member.uuid), freed)
            for member in tree.members
        )
    )


def _imagine_provider(
    provider: Provider, words: Vocabulary, change: CloudChange | None, freed: Freed
) -> Provider:
    given_back = {
        name: -freed.get((provider.uuid, name), 0) for name in provider.inventories
    }
    provider = provider.taking(given_back)
    if change is None:
        return provider
    inventories = dict(provider.inventories)
    for name, fields in change.inventories.items():
        if fields is None:
            inventories.pop(name, None)
        else:
            inventories[name] = _imagine_inventory(
                provider, name, inventories.get(name), fields
            )
    # In the same order as when they are loaded.
    ids = words.class_ids
    inventories = {
        name: inventories[name] for name in sorted(inventories, key=ids.__getitem__)
    }
    traits = change.traits.of(provider.traits)
    return dataclasses.replace(
        provider,
        inventories=inventories,
        traits=traits,
        trait_names=words.in_order(words.trait_ids[name] for name in traits),
        aggregates=change.aggregates.of(provider.aggregates),
    )


def _imagine_inventory(
    provider: Provider,
    name: str,
    inventory: InventoryUsage | None,
    fields: Mapping[str, Any],
) -> InventoryUsage:
    """Return an inventory with changed fields, or a new one if there was none."""
    if inventory is None and "total" not in fields:
        raise errors.BadRequest(
            f"Resource provider {provider.uuid} has no inventory of class {name}: its "
            "total is needed."
        )
    prior = {field: getattr(inventory, field) for field in FIELDS} if inventory else {}
    imagined = Inventory(**{**prior, **fields})
    fault = complain(provider.uuid, name, imagined, reserved_may_be_total=True)
    if fault:
        raise errors.BadRequest(fault)
    return InventoryUsage.of(imagined, inventory.used if inventory else 0)
