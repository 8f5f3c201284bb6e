"""Compares the declaration of one provider with its state, unit by unit.

A unit is the inventory of one resource class, a trait, or an aggregate.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from placement.declaration.world import Undeclarable
from placement.model.declaration import Change, Declared, DeclaredProvider, is_same
from placement.model.inventory import FIELDS, Inventory, InventoryUsage
from placement.model.tree import Provider


@dataclasses.dataclass(frozen=True, slots=True)
class Owners:
    """The declarations of a provider: by this owner before, and by others.

    With ``force``, units that others declare otherwise are taken over.
    """

    prior: Declared
    others: Mapping[str, Declared]
    force: bool = False


class Compared(NamedTuple):
    """The units of one kind that a provider is to have, None if it has just these.

    A change that has an owner conflicts with the declaration of that owner.
    """

    wanted: Any
    changes: list[Change]
    drift: list[Change]


# The value of a unit that a provider lacks; traits and aggregates that it has are True.
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
    """Compare the units of one kind of a provider with their declarations.

    :raises Undeclarable: an inventory in use would go, or become too small
    """
    units = _units_of(kind, provider)
    wanted, changes, drift = dict(units), list[Change](), list[Change]()
    for name, change in _declared_changes(kind, part, units, owners):
        changes.append(change)
        if not is_same(change.before, change.after):
            wanted[name] = change.after
    for name, change in _left_changes(kind, part, units, owners):
        if change.after is ABSENT[kind]:
            changes.append(change)
            wanted[name] = change.after
        else:
            drift.append(change)
    wanted = {name: each for name, each in wanted.items() if each is not ABSENT[kind]}
    if kind != "inventories":
        return Compared(frozenset(wanted) if changes else None, changes, drift)
    if owners.force or not any(change.owner for change in changes):
        for name in sorted(units):
            _check_use(provider, name, wanted.get(name))
    return Compared(wanted if wanted != units else None, changes, drift)


def _declared_changes(
    kind: str, part: DeclaredProvider, known: Mapping[str, Any], owners: Owners
) -> Iterator[tuple[str, Change]]:
    """Yield the units that are not as they are declared now, each with its name."""
    others = {
        owner: _units_of(kind, each) for owner, each in sorted(owners.others.items())
    }
    for name, value in _units_of(kind, part).items():
        before, holder = known.get(name, ABSENT[kind]), _holder(name, value, others)
        if not is_same(before, value) or (holder and not owners.force):
            yield name, Change(f"{part.name}/{kind}/{name}", before, value, holder)


def _left_changes(
    kind: str, part: DeclaredProvider, known: Mapping[str, Any], owners: Owners
) -> Iterator[tuple[str, Change]]:
    """Yield the units that this owner alone declared, and no longer does.

    They go, unless they have drifted: then ``after`` is the present value.
    """
    others = owners.others.values()
    for name, value in _units_of(kind, owners.prior).items():
        is_held = any(name in getattr(each, kind) for each in (part, *others))
        if name in known and not is_held:
            after = ABSENT[kind] if is_same(value, known[name]) else known[name]
            yield name, Change(f"{part.name}/{kind}/{name}", value, after)


def _holder(
    name: str, value: Any, others: Mapping[str, Mapping[str, Any]]
) -> str | None:
    """Return another owner who declares a unit otherwise, None if none does."""
    for owner, units in others.items():
        if name in units and not is_same(units[name], value):
            return owner
    return None


def stored_of(inventory: Inventory) -> Inventory:
    """Return an inventory without its usage."""
    return Inventory(*[getattr(inventory, name) for name in FIELDS])


def _check_use(provider: Provider, name: str, wanted: Inventory | None) -> None:
    """Check that an inventory can be changed, given its usage.

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
    """Return the declaration of another owner, without the units taken over."""
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
    """Return how a provider differs from its declaration.

    ``before`` is the declared value, ``after`` the present one.

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
        units = _units_of(kind, provider)
        for unit, value in _units_of(kind, declared).items():
            if not is_same(units.get(unit, absent), value):
                path = f"{name}/{kind}/{unit}"
                drift.append(Change(path, value, units.get(unit, absent)))
    return drift
