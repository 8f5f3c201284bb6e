"""Declared hardware, by the slowest program that is obviously right.

What there is, is a set of units with values: ``(provider, kind, name)``. Who declared
what is a second one for each owner.
"""

import dataclasses
import random
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from placement.model.declaration import DeclaredProvider, DeclaredTree
from placement.model.inventory import Inventory

OWNERS = ("fleet", "gpu-team")
# The children of each host.
TREES = {"host-a": ("host-a-gpu", "host-a-nic"), "host-b": ("host-b-gpu",)}
CLASSES = ("VCPU", "CUSTOM_FPGA")
TRAITS = ("HW_CPU_X86_VMX", "CUSTOM_RACK", "CUSTOM_FAST")
AGGREGATES = (
    "5c1f0000-0000-4000-8000-000000000001",
    "5c1f0000-0000-4000-8000-000000000002",
)
# A unit: the name of the provider, a kind, and a name.
Unit: TypeAlias = tuple[str, str, str]
NOTHING = object()


@dataclasses.dataclass(frozen=True)
class Apply:
    """An owner applies a file."""

    owner: str
    trees: tuple[DeclaredTree, ...]
    force: bool
    prune: bool
    complete: bool


@dataclasses.dataclass(frozen=True)
class Touch:
    """An agent, or a person, sets or removes a unit of a provider that exists."""

    unit: Unit
    value: Any


@dataclasses.dataclass
class Slow:
    """What there is and what was declared, as plainly as possible."""

    there: dict[Unit, Any] = dataclasses.field(default_factory=dict)
    providers: dict[str, str | None] = dataclasses.field(default_factory=dict)
    declared: dict[str, dict[Unit, Any]] = dataclasses.field(
        default_factory=lambda: {owner: {} for owner in OWNERS}
    )
    created: dict[str, str] = dataclasses.field(default_factory=dict)

    def touch(self, unit: Unit, value: Any) -> None:
        """Set or remove a unit, if the provider exists."""
        if unit[0] in self.providers:
            self._set(unit, value)

    def _set(self, unit: Unit, value: Any) -> None:
        if value is None:
            self.there.pop(unit, None)
        else:
            self.there[unit] = value

    def apply(self, asked: Apply) -> dict[str, str]:
        """Apply a file, and return what became of each tree."""
        results = {}
        for parts in asked.trees:
            results[parts[0].name] = self._apply_tree(parts, asked)
        if asked.prune and asked.complete:
            for root in TREES:
                if root in self.providers and root not in results:
                    self._drop(root, {}, asked)
        return results

    def _apply_tree(self, parts: DeclaredTree, asked: Apply) -> str:
        root = parts[0].name
        wanted = units_of(parts)
        others = [self.declared[owner] for owner in OWNERS if owner != asked.owner]
        disputed = {
            unit
            for unit, value in wanted.items()
            for other in others
            if other.get(unit, value) != value
        }
        if disputed and not asked.force:
            return "conflict"
        before = self._picture()
        for other in others:
            for unit in disputed:
                other.pop(unit, None)
        for part in parts:
            if part.name not in self.providers:
                parent = None if part.parent is None else parts[part.parent].name
                self.providers[part.name] = parent
                self.created[part.name] = asked.owner
        self._drop(root, wanted, asked)
        for unit, value in wanted.items():
            self._set(unit, value)
            self.declared[asked.owner][unit] = value
        if before == self._picture():
            return "unchanged"
        return "changed" if root in before[1] else "created"

    def _picture(self) -> tuple[dict[Unit, Any], dict[str, str | None]]:
        return dict(self.there), dict(self.providers)

    def _drop(self, root: str, wanted: Mapping[Unit, Any], asked: Apply) -> None:
        """Remove what an owner declared of a tree and no longer does."""
        mine = self.declared[asked.owner]
        kept = {unit[0] for unit in wanted}
        # Children first.
        for name in (*TREES[root], root):
            if name not in self.providers:
                continue
            gone = {unit for unit in mine if unit[0] == name and unit not in wanted}
            if name not in kept and self._may_go(name, asked):
                self._remove(name)
                continue
            for unit in gone:
                value = mine.pop(unit)
                held = any(
                    unit in self.declared[owner]
                    for owner in OWNERS
                    if owner != asked.owner
                )
                if not held and self.there.get(unit, NOTHING) == value:
                    self._set(unit, None)

    def _may_go(self, name: str, asked: Apply) -> bool:
        mine = self.declared[asked.owner]
        return (
            asked.prune
            and self.created.get(name) == asked.owner
            and name not in self.providers.values()
            and not any(
                unit[0] == name
                for owner in OWNERS
                if owner != asked.owner
                for unit in self.declared[owner]
            )
            and all(
                mine.get(unit, NOTHING) == value
                for unit, value in self.there.items()
                if unit[0] == name
            )
        )

    def _remove(self, name: str) -> None:
        del self.providers[name]
        self.created.pop(name, None)
        for units in (self.there, *self.declared.values()):
            for unit in [unit for unit in units if unit[0] == name]:
                del units[unit]


def units_of(parts: Iterable[DeclaredProvider]) -> dict[Unit, Any]:
    """Return what is declared of some providers; the provider itself is a unit."""
    units: dict[Unit, Any] = {}
    for part in parts:
        units[part.name, "exists", ""] = None
        for name, value in part.inventories.items():
            units[part.name, "inventories", name] = value
        units |= {(part.name, "traits", name): True for name in part.traits}
        units |= {(part.name, "aggregates", name): True for name in part.aggregates}
    return units


def a_step(rng: random.Random) -> Apply | Touch:
    """Return something that happens to the ledger."""
    if rng.random() < 0.35:
        return a_touch(rng)
    hosts = rng.sample(list(TREES), rng.randint(0, len(TREES)))
    return Apply(
        rng.choice(OWNERS),
        tuple(a_tree(rng, host) for host in hosts),
        force=rng.random() < 0.25,
        prune=rng.random() < 0.4,
        complete=rng.random() < 0.5,
    )


def a_touch(rng: random.Random) -> Touch:
    """Return what an agent does."""
    names = [name for root, below in TREES.items() for name in (root, *below)]
    kind = rng.choice(("inventories", "traits", "aggregates"))
    value: Any = rng.random() < 0.6 or None
    if kind == "inventories":
        value = an_inventory(rng)
        key = rng.choice(CLASSES)
    else:
        key = rng.choice(TRAITS if kind == "traits" else AGGREGATES)
    return Touch((rng.choice(names), kind, key), value)


def an_inventory(rng: random.Random) -> Inventory | None:
    """Return an inventory or none."""
    return rng.choice((None, Inventory(4), Inventory(8, reserved=1)))


def a_tree(rng: random.Random, host: str) -> tuple[DeclaredProvider, ...]:
    """Return what a file says of a host and some of its children."""
    below = [name for name in TREES[host] if rng.random() < 0.5]
    return tuple(
        DeclaredProvider(
            name,
            parent=0 if number else None,
            inventories={
                each: an_inventory(rng) for each in CLASSES if rng.random() < 0.5
            },
            traits=frozenset(each for each in TRAITS if rng.random() < 0.3),
            aggregates=frozenset(each for each in AGGREGATES if rng.random() < 0.3),
        )
        for number, name in enumerate((host, *below))
    )
