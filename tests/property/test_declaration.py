"""Plans for declared hardware, compared with a slow program that is obviously right."""

import collections
import dataclasses
import itertools
import random
from typing import Any

import pytest

from placement.declaration import plan as planning
from placement.declaration.outcome import Goal, Terms, TreePlan
from placement.declaration.world import StoredTrees, world_of
from placement.model.declaration import Declared
from placement.model.inventory import FIELDS, Inventory, InventoryUsage
from placement.model.tree import Provider, Tree
from tests.property import declaring
from tests.property.declaring import Apply, Slow, Touch

STEPS = 25


class Memory:
    """Carries out plans on values, as the ledger does on a database."""

    def __init__(self) -> None:
        self.providers: dict[str, Provider] = {}
        self.declared: dict[str, dict[str, Declared]] = {}
        self._numbers = itertools.count(1)

    def make_uuid(self) -> str:
        return f"uuid-{next(self._numbers)}"

    def world(self) -> StoredTrees:
        by_root = collections.defaultdict(list)
        for each in self.providers.values():
            by_root[each.root_uuid].append(each)
        trees = [
            Tree(tuple(sorted(members, key=lambda each: each.id)))
            for members in by_root.values()
        ]
        return world_of(trees, self.declared, declaring.CLASSES, ["HW_CPU_X86_VMX"])

    def apply(self, asked: Apply) -> dict[str, str]:
        terms = Terms(
            asked.owner, asked.force, asked.prune, asked.complete, self.make_uuid
        )
        plans = planning.plan(asked.trees, self.world(), terms)
        for each in plans:
            self._carry_out(each)
        return {each.name: str(each.result) for each in plans[: len(asked.trees)]}

    def _carry_out(self, each: TreePlan) -> None:
        for goal in each.goals:
            self.providers[goal.uuid] = self._reach(goal)
        for provider in each.removed:
            del self.providers[provider.uuid]
            self.declared.pop(provider.uuid, None)
        for (uuid, owner), what in each.declared.items():
            owners = self.declared.setdefault(uuid, {})
            owners[owner] = what
            if what.is_empty:
                del owners[owner]

    def _reach(self, goal: Goal) -> Provider:
        number = next(self._numbers)
        known = goal.provider or Provider(
            goal.uuid,
            goal.parent_uuid,
            goal.parent_uuid or goal.uuid,
            *({}, (), frozenset(), frozenset(), number, number + 1),
            id=number,
            name=goal.name,
        )
        return dataclasses.replace(
            known,
            inventories=known.inventories
            if goal.inventories is None
            else {
                name: InventoryUsage.of(value, 0)
                for name, value in goal.inventories.items()
            },
            traits=known.traits if goal.traits is None else goal.traits,
            aggregates=known.aggregates if goal.aggregates is None else goal.aggregates,
        )

    def touch(self, unit: declaring.Unit, value: Any) -> None:
        name, kind, key = unit
        known = next((p for p in self.providers.values() if p.name == name), None)
        if known is None:
            return
        changed: Any
        if kind == "inventories":
            changed = {
                "inventories": {k: v for k, v in known.inventories.items() if k != key}
            }
            if value is not None:
                changed["inventories"][key] = InventoryUsage.of(value, 0)
        elif value is None:
            changed = {kind: getattr(known, kind) - {key}}
        else:
            changed = {kind: getattr(known, kind) | {key}}
        self.providers[known.uuid] = dataclasses.replace(known, **changed)

    def there(self) -> dict[declaring.Unit, Any]:
        units: dict[declaring.Unit, Any] = {}
        for each in self.providers.values():
            for name, inventory in each.inventories.items():
                fields = {field: getattr(inventory, field) for field in FIELDS}
                units[each.name, "inventories", name] = Inventory(**fields)
            units |= {(each.name, "traits", name): True for name in each.traits}
            units |= {(each.name, "aggregates", n): True for n in each.aggregates}
        return units


@pytest.mark.parametrize("batch", range(8))
def test_two_owners_and_an_agent_never_undo_each_other_silently(batch: int) -> None:
    for number in range(15):
        seed = f"{batch}/{number}"
        rng = random.Random(seed)
        memory, slow = Memory(), Slow()
        for step in range(STEPS):
            what = declaring.a_step(rng)
            if isinstance(what, Touch):
                memory.touch(what.unit, what.value)
                slow.touch(what.unit, what.value)
            else:
                assert memory.apply(what) == slow.apply(what), (seed, step, what)
            assert memory.there() == slow.there, (seed, step, what)
            names = {each.name for each in memory.providers.values()}
            assert names == slow.providers.keys(), (seed, step, what)


@pytest.mark.parametrize("batch", range(3))
def test_a_plan_that_was_carried_out_is_empty(batch: int) -> None:
    for number in range(15):
        rng = random.Random(f"again {batch}/{number}")
        memory = Memory()
        for _ in range(10):
            what = declaring.a_step(rng)
            if isinstance(what, Touch):
                memory.touch(what.unit, what.value)
                continue
            before = memory.apply(what)
            terms = Terms(what.owner, what.force, what.prune, what.complete)
            for each in planning.plan(what.trees, memory.world(), terms):
                if before.get(each.name) != "conflict":
                    assert each.result == "unchanged"
                    assert not each.writes
