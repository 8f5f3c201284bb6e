"""Values: a declaration, its terms, and the outcome for each of its trees."""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from placement.model.declaration import NO_NAMES, Change, Declared, DeclaredTree, Names
from placement.model.inventory import Inventory
from placement.model.tree import Provider

# Stands for the UUID of a provider that has none yet.
NO_UUID = ""


class Result(StrEnum):
    """The result for a tree."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"
    CONFLICT = "conflict"
    REFUSED = "refused"
    STALE = "stale"


def _no_uuid() -> str:
    return NO_UUID


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a declaration.

    With ``force``, units that other owners declare otherwise are taken over. With
    ``prune``, providers that this owner created and no longer declares are removed;
    with ``complete``, also those in trees that are not mentioned. ``make_uuid`` makes
    up the UUIDs of new providers. With ``planned``, only plans with these digests are
    carried out.
    """

    owner: str
    force: bool = False
    prune: bool = False
    complete: bool = False
    make_uuid: Callable[[], str] = _no_uuid
    planned: frozenset[str] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """The target state of a provider. None stands for parts that stay as they are.

    ``provider`` is None if it is to be created.
    """

    provider: Provider | None
    uuid: str
    name: str
    parent_uuid: str | None
    inventories: Mapping[str, Inventory] | None = None
    traits: frozenset[str] | None = None
    aggregates: frozenset[str] | None = None

    @property
    def has_parts(self) -> bool:
        """Whether anything that belongs to the provider changes."""
        kinds = (self.inventories, self.traits, self.aggregates)
        return any(kind is not None for kind in kinds)

    @property
    def is_renamed(self) -> bool:
        """Whether a provider that exists gets another name."""
        return self.provider is not None and self.provider.name != self.name

    @property
    def is_moved(self) -> bool:
        """Whether a provider that exists gets another parent."""
        provider = self.provider
        return provider is not None and provider.parent_uuid != self.parent_uuid


@dataclasses.dataclass(frozen=True, slots=True)
class TreePlan:
    """The outcome for one tree, and the values to write for it.

    ``goals`` has parents before their children, ``removed`` children before their
    parents. ``declared`` has the declarations to store, by UUID of the provider and by
    owner; empty ones are deleted. Plans of one ``group`` come true together.
    """

    result: Result
    name: str
    uuid: str
    changes: tuple[Change, ...] = ()
    drift: tuple[Change, ...] = ()
    reason: str | None = None
    goals: tuple[Goal, ...] = ()
    removed: tuple[Provider, ...] = ()
    declared: Mapping[tuple[str, str], Declared] = dataclasses.field(
        default_factory=dict
    )
    group: int = 0

    @property
    def writes(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.goals or self.removed or self.declared)

    @property
    def digest(self) -> str:
        """A short text that another plan has only if it changes the same."""
        changes = [
            (each.path, _stored(each.before), _stored(each.after))
            for each in self.changes
        ]
        uuids = [goal.uuid for goal in self.goals if goal.provider]
        uuids += [provider.uuid for provider in self.removed]
        text = repr((self.name, str(self.result), changes, uuids))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _stored(value: Any) -> Any:
    """Return a value as databases keep it: of ratios, MySQL has six digits."""
    if isinstance(value, Inventory):
        ratio = float(f"{value.allocation_ratio:.5g}")
        return dataclasses.replace(value, allocation_ratio=ratio)
    if isinstance(value, dict):
        return sorted((name, _stored(each)) for name, each in value.items())
    return value


@dataclasses.dataclass(frozen=True, slots=True)
class Declaration:
    """The trees that an owner declares, and the names of traits and resource classes.

    ``names`` are those of aggregates and projects.
    """

    trees: Sequence[DeclaredTree]
    terms: Terms
    traits: frozenset[str] = frozenset()
    resource_classes: frozenset[str] = frozenset()
    names: Names = NO_NAMES


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The plans for the trees of a declaration, in its order, and for pruned ones.

    ``traits`` and ``resource_classes`` are the names that are new, ``names`` the
    changes of those of aggregates and projects.
    """

    plans: Sequence[TreePlan]
    traits: Sequence[str]
    resource_classes: Sequence[str]
    names: Sequence[Change] = ()
