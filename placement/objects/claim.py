"""Claims of consumers, and the room for them: capacity and constraints."""

from collections.abc import Collection, Iterable, Mapping

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.model.allocation import Claim, Place, class_names, provider_uuids
from placement.model.inventory import FIELDS, Inventory, InventoryUsage
from placement.objects.inventory import USED
from placement.objects.resource_provider import KnownProvider
from placement_foundation.database import storage
from placement_foundation.database.trouble import LostRaceError

_stored = models.Inventory
_INVENTORIES = (
    sa.select(
        _stored.resource_provider_id,
        _stored.resource_class_id,
        sa.select(models.ResourceClass.name)
        .where(models.ResourceClass.id == _stored.resource_class_id)
        .scalar_subquery(),
        USED,
        *[getattr(_stored, name) for name in FIELDS],
    )
    .where(
        _stored.resource_provider_id.in_(sa.bindparam("providers", expanding=True)),
        _stored.resource_class_id.in_(sa.bindparam("classes", expanding=True)),
    )
    .order_by(_stored.id)
)


def load_inventories(
    connection: sa.Connection,
    providers: Iterable[KnownProvider],
    class_ids: Mapping[str, int],
) -> dict[Place, InventoryUsage]:
    """Return the inventories that providers have of some resource classes.

    :param class_ids: ids of the classes, keyed by name
    :raises LostRaceError: an id is that of another class by now; the transaction
        begins again
    """
    uuids = {provider.id: provider.uuid for provider in providers}
    names = {class_id: name for name, class_id in class_ids.items()}
    inventories: dict[Place, InventoryUsage] = {}
    for chunk in storage.chunks(uuids):
        parameters = {"providers": chunk, "classes": list(names)}
        rows = connection.execute(_INVENTORIES, parameters)
        for provider_id, class_id, name, amount, *fields in rows:
            if name != names[class_id]:
                raise LostRaceError(f"the class {names[class_id]} is now {name}")
            place = uuids[provider_id], name
            inventories[place] = InventoryUsage.of(Inventory(*fields), int(amount))
    return inventories


def check_room(
    claims: Collection[Claim],
    inventories: Mapping[Place, InventoryUsage],
    freed: Mapping[Place, int],
) -> None:
    """Check that each amount fits, given what others use and the claims before it.

    :param inventories: the inventories, with everything that is used of them
    :param freed: how much of that the consumers of the claims give back
    :raises Conflict: an amount does not fit; it names the first such
    """
    _check_inventories(claims, inventories)
    for _, fault in list_refused(claims, inventories, freed):
        raise fault


def list_refused(
    claims: Iterable[Claim],
    inventories: Mapping[Place, InventoryUsage],
    freed: Mapping[Place, int],
) -> list[tuple[Claim, errors.Conflict]]:
    """Return the claims that do not fit, each with the first fault.

    A claim that fits leaves less room for later ones. The parameters are those of
    ``check_room``.
    """
    left = {
        place: inventory.with_more(-freed.get(place, 0))
        for place, inventory in inventories.items()
    }
    refused = []
    for claim in claims:
        amounts = {
            (uuid, name): amount
            for uuid, resources in claim.amounts.items()
            for name, amount in resources.items()
        }
        try:
            for place, amount in amounts.items():
                if place not in left:
                    raise _no_inventory([place[1]], [place[0]])
                _check_amount(place, amount, left[place], inventories[place].used)
        except errors.Conflict as fault:
            refused.append((claim, fault))
        else:
            for place, amount in amounts.items():
                left[place] = left[place].with_more(amount)
    return refused


def _check_inventories(claims: Collection[Claim], inventories: Iterable[Place]) -> None:
    """Check that each provider in claims has an inventory of a claimed class.

    :raises Conflict: some providers have none
    """
    stocked = {uuid for uuid, _ in inventories}
    empty = [uuid for uuid in provider_uuids(claims) if uuid not in stocked]
    if empty:
        raise _no_inventory(class_names(claims), empty)


def _check_amount(
    place: Place, amount: int, inventory: InventoryUsage, used_before: int
) -> None:
    """Check that an amount fits.

    More may be used of an inventory than it has, if it has shrunk. A write is accepted
    then as long as the usage does not grow.
    """
    if not inventory.suits(amount):
        raise _refusal(place, "violate inventory constraints")
    if not inventory.holds(amount) and inventory.used + amount > used_before:
        raise _refusal(place, "exceed the capacity")


def _no_inventory(names: Iterable[str], uuids: Iterable[str]) -> errors.Conflict:
    return errors.Conflict(
        f"Unable to allocate inventory: Inventory for '{', '.join(names)}' on "
        f"resource provider '{', '.join(uuids)}' invalid."
    )


def _refusal(place: Place, what: str) -> errors.Conflict:
    uuid, name = place
    return errors.Conflict(
        f"Unable to allocate inventory: Unable to create allocation for '{name}' on "
        f"resource provider '{uuid}'. The requested amount would {what}."
    )
