"""Reshaping: inventories and their allocations move in one step."""

import dataclasses
from collections.abc import Collection, Mapping

from placement import errors
from placement.model.allocation import Claim
from placement.model.reshape import Shape
from placement.objects import (
    inventory,
    locking,
    replacing,
    resource_class,
    resource_provider,
)
from placement.objects.locking import ClaimNames, Held
from placement.objects.transaction import Transaction
from placement_foundation.database.trouble import LostRaceError


def reshape(
    tx: Transaction,
    shapes: Mapping[str, Shape],
    claims: Collection[Claim],
    *,
    attempts: int,
) -> None:
    """Replace the inventories of providers and all allocations of some consumers.

    Claims are checked against the new inventories and those still to be removed.
    Generations grow as after three writes: new inventories are added, allocations move
    over, old inventories are removed.

    :param shapes: by provider UUID
    :param attempts: how often it may be tried; below 1, it is refused like a lost race
    :raises UnknownProvider: there is no provider with the UUID of a shape
    :raises ConcurrentUpdate: a provider or consumer does not have the expected
        generation
    :raises BadRequest: a claim names a provider that does not exist
    :raises NotFound: there is no such resource class
    :raises Conflict: an amount does not fit
    :raises InventoryInUse: an inventory to be removed has allocations
    """
    names = locking.look_up(tx.connection, claims, providers=shapes.keys())
    held = locking.hold(tx, names)
    _check_providers(shapes, held)
    replacing.check_claims(held)
    _check_classes(tx, shapes, names)
    with errors.retold(
        (errors.InventoryInUse, errors.ConcurrentUpdate), "update conflict: "
    ):
        replacing.check_attempts(attempts)
        _reshape(tx, shapes, held)


def _check_providers(shapes: Mapping[str, Shape], held: Held) -> None:
    for uuid, shape in shapes.items():
        provider = held.providers.get(uuid)
        if provider is None:
            raise errors.UnknownProvider(
                f"Resource provider {uuid} in inventories not found"
            )
        if provider.generation != shape.generation:
            raise errors.ConcurrentUpdate(
                f"resource provider generation conflict for provider {uuid}: "
                f"actual: {provider.generation}, given: {shape.generation}"
            )


def _check_classes(
    tx: Transaction, shapes: Mapping[str, Shape], known: ClaimNames
) -> None:
    names = [name for shape in shapes.values() for name in shape.class_names]
    ids = resource_class.lock_ids_by_name(tx, [*names, *known.class_names])
    # The ids that were looked up before anything was locked.
    if not known.class_ids.items() <= ids.items():
        raise LostRaceError("a resource class has another id by now")


def _reshape(tx: Transaction, shapes: Mapping[str, Shape], held: Held) -> None:
    """Do the work under locks, after all checks except those of the amounts."""
    coming = {
        (uuid, name): each
        for uuid, shape in shapes.items()
        for name, each in inventory.as_stored(tx.connection, shape.inventories).items()
    }
    filled = [
        held.providers[uuid] for uuid, shape in shapes.items() if shape.inventories
    ]
    resource_provider.record_change(tx, filled, [], bump=True)
    replacing.replace_held(tx, _read_again(tx, held), coming)
    providers = _read_again(tx, held).providers
    wanted = {providers[uuid]: shape.inventories for uuid, shape in shapes.items()}
    entries = inventory.replace_of_many(tx, wanted)
    resource_provider.record_change(tx, wanted, entries, bump=True)


def _read_again(tx: Transaction, held: Held) -> Held:
    """Return the same with the generations that the providers have now."""
    ids = {uuid: provider.id for uuid, provider in held.providers.items()}
    return dataclasses.replace(held, providers=resource_provider.lock_all(tx, ids))
