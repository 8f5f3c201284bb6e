"""The steps that make a resource provider match its node.

A node is compared with its provider; each difference becomes a step. The provider has
the UUID of the node, also as its name.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from placement_clients import errors
from placement_clients.client import Client, path_of
from placement_clients.record import (
    INVENTORIES,
    TRAITS,
    Inventory,
    Part,
    parse_provider,
)

T = TypeVar("T")
CUSTOM_PREFIX = "CUSTOM_"
AVAILABLE = "available"
# Power states in which it is unknown whether the node would start.
UNCERTAIN = (None, "error")


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """The target of a provider: one unit of a class, reserved or not, and traits.

    Without a class nothing of it can be allocated.
    """

    uuid: str
    resource_class: str | None
    reserved: int
    traits: frozenset[str]

    @property
    def inventories(self) -> dict[str, Inventory]:
        """The inventories by class. A node is allocated as a whole."""
        if self.resource_class is None:
            return {}
        return {self.resource_class: Inventory(1, self.reserved, max_unit=1)}


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """The state in Placement: of the provider, and of the traits it should have.

    ``name`` is that of the provider, None if there is no provider: a new one has
    generation 0. ``known_traits`` are the wanted traits that exist.
    """

    generation: int
    inventories: Mapping[str, Inventory]
    traits: frozenset[str]
    known_traits: frozenset[str]
    name: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A write to Placement.

    ``perform`` takes the generation of the provider, and returns the next one.
    ``optional`` steps may be refused because of allocations; the steps after them are
    done all the same.
    """

    text: str
    perform: Callable[[Client, int], int]
    optional: bool = False


def wanted_of(node: Mapping[str, Any]) -> Wanted:
    """Return the target of the provider of a node.

    :param node: as the bare metal API shows it
    :raises KeyError: a member is missing
    :raises TypeError: the traits are not a list of names
    :raises ValueError: it has no UUID
    """
    resource_class, traits = node["resource_class"], node["traits"]
    if not isinstance(traits, list) or not all(
        isinstance(each, str) for each in traits
    ):
        raise TypeError(f"the traits are {traits!r}")
    return Wanted(
        canonical_uuid(node["uuid"]),
        class_name(resource_class) if resource_class else None,
        0 if is_free(node) else 1,
        frozenset(traits),
    )


def canonical_uuid(text: object) -> str:
    """Return a UUID as Placement spells it: Ironic keeps the spelling of its users.

    :raises ValueError: it is not a UUID
    """
    return str(UUID(str(text)))


def spelled(text: str) -> str:
    """Return a UUID as Placement spells it, and anything else unchanged."""
    try:
        return canonical_uuid(text)
    except ValueError:
        return text


def class_name(resource_class: str) -> str:
    """Return the name of a node's resource class in Placement."""
    return CUSTOM_PREFIX + re.sub("[^0-9A-Za-z]+", "_", resource_class).upper()


def is_free(node: Mapping[str, Any]) -> bool:
    """Return whether a node can be allocated now."""
    return (
        not node["maintenance"]
        and node["power_state"] not in UNCERTAIN
        and node["provision_state"] == AVAILABLE
        and node["instance_uuid"] is None
    )


def find(placement: Client, wanted: Wanted) -> Found:
    """Read the state in Placement.

    :raises errors.PlacementError: it cannot be read
    """
    uuid = wanted.uuid
    name = _name_of(placement, uuid)
    if name is None:
        return Found(0, {}, frozenset(), _existing(placement, wanted.traits))
    inventories = placement.get_part(uuid, INVENTORIES)
    traits = frozenset(placement.get_part(uuid, TRAITS).value)
    existing = traits
    if wanted.traits != traits:
        existing = _existing(placement, wanted.traits)
    # If the provider changed between the two, the older generation makes the write
    # fail.
    return Found(inventories.generation, inventories.value, traits, existing, name)


def _existing(placement: Client, names: frozenset[str]) -> frozenset[str]:
    return placement.list_traits(names) if names else names


def is_there(placement: Client, uuid: str) -> bool:
    """Return whether there is a provider.

    :raises errors.PlacementError: it cannot be read
    """
    return _name_of(placement, uuid) is not None


def _name_of(placement: Client, uuid: str) -> str | None:
    """Return the name of a provider, None if there is none."""
    tree = placement.list_providers(in_tree=uuid)
    return next((each.name for each in tree if each.uuid == uuid), None)


def unknown_traits(wanted: Wanted, found: Found) -> list[str]:
    """Return the standard traits unknown to Placement, which no client can create."""
    missing = wanted.traits - found.known_traits
    return sorted(name for name in missing if not name.startswith(CUSTOM_PREFIX))


def steps(wanted: Wanted, found: Found) -> list[Step]:
    """Return the steps that make the provider match its node."""
    return [
        *_provider_steps(wanted, found),
        *_inventory_steps(wanted, found),
        *_trait_steps(wanted, found),
    ]


def _provider_steps(wanted: Wanted, found: Found) -> list[Step]:
    if found.name is None:
        return [_create(wanted.uuid)]
    return [] if found.name == wanted.uuid else [_rename(wanted.uuid, found.name)]


def _inventory_steps(wanted: Wanted, found: Found) -> list[Step]:
    if found.inventories == wanted.inventories:
        return []
    if wanted.resource_class is None:
        return [_withdraw(wanted.uuid, found.inventories)]
    text = f"set the inventory to one {wanted.resource_class}"
    if wanted.reserved:
        text += ", reserved"
    return [
        _ensure("resource class", "resource_classes", wanted.resource_class, "1.7"),
        _replace(text, wanted.uuid, INVENTORIES, wanted.inventories, optional=True),
    ]


def _trait_steps(wanted: Wanted, found: Found) -> list[Step]:
    names = wanted.traits.difference(unknown_traits(wanted, found))
    if names == found.traits:
        return []
    missing = sorted(names - found.known_traits)
    text = f"set the traits to {', '.join(sorted(names)) or 'none'}"
    return [
        *(_ensure("trait", "traits", name, "1.6") for name in missing),
        _replace(text, wanted.uuid, TRAITS, names),
    ]


def _create(uuid: str) -> Step:
    def perform(placement: Client, generation: int) -> int:
        try:
            return placement.create_provider(uuid, uuid=uuid).generation
        except errors.Conflict:
            if not is_there(placement, uuid):
                # Another provider has the name.
                raise
            # Another client has created it since the check.
            return placement.get_provider(uuid).generation

    return Step(f"create the provider {uuid}", perform)


def _rename(uuid: str, name: str) -> Step:
    def perform(placement: Client, generation: int) -> int:
        path = path_of("resource_providers", uuid)
        renamed = placement.put(path, {"name": uuid}, version="1.0")
        return parse_provider(renamed).generation

    return Step(f"rename the provider {name} back", perform)


def reserve(inventories: Mapping[str, Inventory]) -> dict[str, Inventory]:
    """Return inventories of which nothing more can be allocated."""
    return {
        name: dataclasses.replace(inventory, reserved=inventory.total)
        for name, inventory in inventories.items()
    }


def _withdraw(uuid: str, inventories: Mapping[str, Inventory]) -> Step:
    """Remove all inventories; while an instance uses them, only reserve them."""
    reserved = reserve(inventories)

    def perform(placement: Client, generation: int) -> int:
        try:
            return placement.replace(uuid, INVENTORIES, generation, {}).generation
        except errors.Conflict as exc:
            if not exc.in_use or reserved == inventories:
                raise
        return placement.replace(uuid, INVENTORIES, generation, reserved).generation

    return Step("remove the inventory", perform, optional=True)


def _ensure(kind: str, path: str, name: str, version: str) -> Step:
    def perform(placement: Client, generation: int) -> int:
        placement.put(path_of(path, name), version=version)
        return generation

    return Step(f"make sure of the {kind} {name}", perform)


def _replace(
    text: str, uuid: str, part: Part[T], value: T, *, optional: bool = False
) -> Step:
    def perform(placement: Client, generation: int) -> int:
        return placement.replace(uuid, part, generation, value).generation

    return Step(text, perform, optional)
