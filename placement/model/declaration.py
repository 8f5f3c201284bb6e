"""Declarations of providers by the owners of hardware, and what became of them."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from placement.model.inventory import Inventory

# The rounding error of a ratio that a database has stored with six digits.
RATIO_TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True, slots=True)
class DeclaredProvider:
    """A provider of a declared tree.

    ``parent`` is the position of its parent in the tree, None for the root. An
    inventory of None says that the provider has none of the class.
    """

    name: str
    uuid: str | None = None
    parent: int | None = None
    inventories: Mapping[str, Inventory | None] = dataclasses.field(
        default_factory=dict
    )
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


# A declared tree: the root first, and each provider after its parent.
DeclaredTree: TypeAlias = Sequence[DeclaredProvider]


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """The latest declaration of a provider by an owner.

    ``name`` is None if the owner no longer declares the provider itself. ``created``
    says that the provider exists because the owner declared it.
    """

    name: str | None = None
    parent_uuid: str | None = None
    inventories: Mapping[str, Inventory | None] = dataclasses.field(
        default_factory=dict
    )
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    created: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is declared any more, and nothing need be stored."""
        return self == Declared()


@dataclasses.dataclass(frozen=True, slots=True)
class Names:
    """The readable names of aggregates, by UUID, and of projects, by id."""

    aggregates: Mapping[str, str] = dataclasses.field(default_factory=dict)
    projects: Mapping[str, str] = dataclasses.field(default_factory=dict)


NO_NAMES = Names()

# The declarations of all owners, by UUID of the provider and by owner.
Declarations: TypeAlias = Mapping[str, Mapping[str, Declared]]


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A difference: ``path`` names the provider and what differs in it.

    ``owner`` is another owner with a different declaration.
    """

    path: str
    before: Any
    after: Any
    owner: str | None = None


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, as far as databases can store them."""
    if one == other or not (
        isinstance(one, Inventory) and isinstance(other, Inventory)
    ):
        return bool(one == other)
    alike = dataclasses.replace(one, allocation_ratio=other.allocation_ratio)
    return alike == other and math.isclose(
        one.allocation_ratio, other.allocation_ratio, rel_tol=RATIO_TOLERANCE
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Remembered:
    """A stored declaration of a provider by an owner.

    ``name`` is that of the provider, or the declared one if the provider has gone;
    ``root_uuid`` is None then.
    """

    owner: str
    uuid: str
    name: str | None
    root_uuid: str | None
    declared: Declared
    drift: tuple[Change, ...]
