"""Compares what is declared of one provider with what it has, unit by unit.

A unit is the inventory of one resource class, a trait, or an aggregate.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from placement.declaration.world import Undeclarable
from placement.model.declaration import Change, Declared, DeclaredProvider, is_same
from placement.model.inventory import FIELDS, Inventory, InventoryUsage
from placement.model.tree import Provider


@dataclasses.dataclass(frozen=True, slots=True)
class Owners:
    """What was declared of a provider: by this owner before, and by others.

    With ``force``, what others declare otherwise is taken over.
    """

    prior: Declared
    others: Mapping[str, Declared]
    force: bool = False


class Compared(NamedTuple):
    """What a provider is to have of one kind, None if that is what it has.

    A change that has an owner conflicts with what that owner declares.
    """

    wanted: Any
    changes: list[Change]
    drift: list[Change]


def compare_inventories(
    part: DeclaredProvider, provider: Provider, owners: Owners
) -> Compared:
    """Compare the inventories of a provider.

    :raises Undeclarable: an inventory in use would go, or become too small
    """
    known = {
        name: stored_of(inventory) for name, inventory in provider.inventories.items()
    }
    units = list(_declared_units(part, known, owners))
    left = list(_left_units(part, known, owners))
    drift = [each for _, each in left if not is_same(each.before, each.after)]
    units += [
        (name, dataclasses.replace(each, after=None))
        for name, each in left
        if each not in drift
    ]
    wanted = dict(known)
    for name, change in units:
        if not is_same(known.get(name), change.after):
            _set(wanted, name, change.after)
    changes = [change for _, change in units]
    if owners.force or not any(change.owner for change in changes):
        for name in sorted(known):
            _check_use(provider, name, wanted.get(name))
    return Compared(wanted if wanted != known else None, changes, drift)


# The resource class of an inventory, and how it differs.
_Unit: TypeAlias = tuple[str, Change]


def _declared_units(
    part: DeclaredProvider, known: Mapping[str, Inventory], owners: Owners
) -> Iterator[_Unit]:
    """Yield the inventories that are not as they are declared now."""
    for name, value in sorted(part.inventories.items()):
        holder = _holder(name, value, owners)
        if not is_same(known.get(name), value) or (holder and not owners.force):
            path = f"{part.name}/inventories/{name}"
            yield name, Change(path, known.get(name), value, holder)


def _left_units(
    part: DeclaredProvider, known: Mapping[str, Inventory], owners: Owners
) -> Iterator[_Unit]:
    """Yield the inventories that this owner alone declared, and no longer does.

    ``before`` is what was declared, ``after`` what is there.
    """
    for name, value in sorted(owners.prior.inventories.items()):
        if name in known and not _is_declared(name, part, owners):
            path = f"{part.name}/inventories/{name}"
            yield name, Change(path, value, known[name])


def _is_declared(name: str, part: DeclaredProvider, owners: Owners) -> bool:
    """Return whether an inventory is declared now, or by another owner."""
    others = owners.others.values()
    return name in part.inventories or any(name in each.inventories for each in others)


def stored_of(inventory: Inventory) -> Inventory:
    """Return an inventory without what is used of it."""
    return Inventory(*[getattr(inventory, name) for name in FIELDS])


def _holder(name: str, value: Inventory | None, owners: Owners) -> str | None:
    """Return another owner who declares an inventory otherwise, None if none does."""
    for owner, other in sorted(owners.others.items()):
        if name in other.inventories and not is_same(other.inventories[name], value):
            return owner
    return None


def _set(inventories: dict[str, Inventory], name: str, value: Inventory | None) -> None:
    if value is None:
        inventories.pop(name, None)
    else:
        inventories[name] = value


def _check_use(provider: Provider, name: str, wanted: Inventory | None) -> None:
    """Check that an inventory can be changed, given what is used of it.

    :raises Undeclarable: it cannot
    """
    inventory: InventoryUsage = provider.inventories[name]
    if wanted is None and inventory.used:
        raise Undeclarable(
            f"{inventory.used} {name} of {provider.name} are in use, so the inventory "
            "cannot be removed."
        )
    if wanted and wanted.capacity < min(inventory.used, inventory.capacity):
        raise Undeclarable(
            f"{inventory.used} {name} of {provider.name} are in use: a capacity of "
            f"{wanted.capacity} is too small."
        )


def compare_traits(
    part: DeclaredProvider, provider: Provider, owners: Owners
) -> Compared:
    """Compare the traits of a provider."""
    return _compare_names(
        f"{part.name}/traits",
        part.traits,
        provider.traits,
        owners.prior.traits,
        frozenset().union(*(other.traits for other in owners.others.values())),
    )


def compare_aggregates(
    part: DeclaredProvider, provider: Provider, owners: Owners
) -> Compared:
    """Compare the aggregates that a provider is in."""
    return _compare_names(
        f"{part.name}/aggregates",
        part.aggregates,
        provider.aggregates,
        owners.prior.aggregates,
        frozenset().union(*(other.aggregates for other in owners.others.values())),
    )


def _compare_names(
    path: str,
    declared: frozenset[str],
    known: frozenset[str],
    prior: frozenset[str],
    held: frozenset[str],
) -> Compared:
    """Compare names, which are there or are not: so there is no conflict, nor drift."""
    added = declared - known
    gone = (prior & known) - declared - held
    changes = [
        *(Change(f"{path}/{name}", False, True) for name in sorted(added)),
        *(Change(f"{path}/{name}", True, False) for name in sorted(gone)),
    ]
    return Compared((known | added) - gone if changes else None, changes, [])


def yielded(
    other: Declared, part: DeclaredProvider, parent_uuid: str | None
) -> Declared:
    """Return what another owner declares, without what is taken over."""
    kept = {
        name: value
        for name, value in other.inventories.items()
        if name not in part.inventories or is_same(value, part.inventories[name])
    }
    other = dataclasses.replace(other, inventories=kept)
    if is_elsewhere(other, part, parent_uuid):
        other = dataclasses.replace(other, name=None, parent_uuid=None)
    return other


def is_elsewhere(
    other: Declared, part: DeclaredProvider, parent_uuid: str | None
) -> bool:
    """Return whether an owner declares a provider with another name or parent."""
    declared = (other.name, other.parent_uuid)
    return other.name is not None and declared != (part.name, parent_uuid)


def drift_of(declared: Declared, provider: Provider | None, name: str) -> list[Change]:
    """Return how a provider differs from what was declared of it.

    ``before`` is what was declared, ``after`` what is there.

    :param name: the name of the provider
    """
    if provider is None:
        return [Change(name, {"name": declared.name}, None)] if declared.name else []
    drift = []
    if declared.name and declared.name != provider.name:
        drift.append(Change(f"{name}/name", declared.name, provider.name))
    if declared.name and declared.parent_uuid != provider.parent_uuid:
        drift.append(
            Change(f"{name}/parent", declared.parent_uuid, provider.parent_uuid)
        )
    for resource_class, value in sorted(declared.inventories.items()):
        inventory = provider.inventories.get(resource_class)
        known = stored_of(inventory) if inventory else None
        if not is_same(known, value):
            drift.append(Change(f"{name}/inventories/{resource_class}", value, known))
    for kind, wanted, there in (
        ("traits", declared.traits, provider.traits),
        ("aggregates", declared.aggregates, provider.aggregates),
    ):
        lacking = sorted(wanted - there)
        drift += [Change(f"{name}/{kind}/{each}", True, False) for each in lacking]
    return drift
