"""Compares what is declared of one provider with what it has, unit by unit.

A unit is the inventory of one resource class, a trait, or an aggregate.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

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


# Inventories are there as values; names of traits and aggregates are there, or not.
ABSENT = {"inventories": None, "traits": False, "aggregates": False}


def _units_of(kind: str, of: Provider | DeclaredProvider | Declared) -> dict[str, Any]:
    """Return the units of a kind, by name, as they are compared."""
    if kind != "inventories":
        return dict.fromkeys(sorted(getattr(of, kind)), True)
    return {
        name: stored_of(each) if isinstance(each, InventoryUsage) else each
        for name, each in sorted(of.inventories.items())
    }


def compare(
    kind: str, part: DeclaredProvider, provider: Provider, owners: Owners
) -> Compared:
    """Compare what a provider has of one kind.

    :raises Undeclarable: an inventory in use would go, or become too small
    """
    known, declared, prior = (
        _units_of(kind, each) for each in (provider, part, owners.prior)
    )
    others = {
        owner: _units_of(kind, each) for owner, each in sorted(owners.others.items())
    }
    wanted, absent, path = dict(known), ABSENT[kind], f"{part.name}/{kind}"
    changes, drift = [], []
    for name, value in declared.items():
        before, holder = known.get(name, absent), _holder(name, value, others)
        differs = not is_same(before, value)
        if differs or (holder and not owners.force):
            changes.append(Change(f"{path}/{name}", before, value, holder))
        if differs:
            wanted[name] = value
    held = {*declared, *(name for each in others.values() for name in each)}
    for name in [name for name in prior if name in known and name not in held]:
        # This owner alone declared it, and no longer does.
        if is_same(prior[name], known[name]):
            changes.append(Change(f"{path}/{name}", prior[name], absent))
            del wanted[name]
        else:
            drift.append(Change(f"{path}/{name}", prior[name], known[name]))
    wanted = {name: value for name, value in wanted.items() if value is not absent}
    is_conflict = not owners.force and any(change.owner for change in changes)
    if kind == "inventories" and not is_conflict:
        for name in sorted(known):
            _check_use(provider, name, wanted.get(name))
    if wanted == known:
        return Compared(None, changes, drift)
    units = wanted if kind == "inventories" else frozenset(wanted)
    return Compared(units, changes, drift)


def _holder(
    name: str, value: Any, others: Mapping[str, Mapping[str, Any]]
) -> str | None:
    """Return another owner who declares a unit otherwise, None if none does."""
    for owner, units in others.items():
        if name in units and not is_same(units[name], value):
            return owner
    return None


def stored_of(inventory: Inventory) -> Inventory:
    """Return an inventory without what is used of it."""
    return Inventory(*[getattr(inventory, name) for name in FIELDS])


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
    for kind, absent in ABSENT.items():
        known = _units_of(kind, provider)
        for unit, value in _units_of(kind, declared).items():
            if not is_same(known.get(unit, absent), value):
                path = f"{name}/{kind}/{unit}"
                drift.append(Change(path, value, known.get(unit, absent)))
    return drift
