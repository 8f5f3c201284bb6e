"""The slowest program that is obviously right: who serves what is left of a request.

It tells for each set of constraints which hosts serve the request with these only, by
definition, and from that all numbers of an explanation. Constraints are those of the
API reference, as plain tuples: kind, suffix, value, class.
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from placement.model.request import Group, Request
from tests.property import oracle
from tests.property.forest import Node

Constraint: TypeAlias = tuple[str, str | None, Any, str | None]
Kept: TypeAlias = frozenset[Constraint]
# The providers of a group, and what is taken: provider, class, amount, whether its unit
# matters.
Choice: TypeAlias = tuple[set[Node], list[tuple[Node, str, int, bool]]]

MOST_DROPPED = 2
MOST_BLAMED = 4
TO_BLAME = (
    "same_subtree",
    "isolate",
    "together",
    "room",
    "unit",
    "forbidden",
    "not_member_of",
    "member_of",
    "required",
    "in_tree",
    "root_forbidden",
    "root_required",
    "inventory",
)


def constraints_of(request: Request) -> list[Constraint]:
    found: list[Constraint] = []
    found += [("root_required", None, name, None) for name in request.root_required]
    found += [("root_forbidden", None, name, None) for name in request.root_forbidden]
    found.sort(key=lambda each: (each[0] == "root_forbidden", each[2]))
    for group in request.groups:
        suffix, classes = group.suffix, group.resources
        found += [("inventory", suffix, name, name) for name in classes]
        if group.in_tree is not None:
            found.append(("in_tree", suffix, group.in_tree, None))
        for one_of in group.member_of:
            found.append(("member_of", suffix, tuple(sorted(one_of)), None))
        for name in sorted(group.not_member_of):
            found.append(("not_member_of", suffix, name, None))
        for one_of in group.required:
            found.append(("required", suffix, tuple(sorted(one_of)), None))
        for name in sorted(group.forbidden):
            found.append(("forbidden", suffix, name, None))
        found += [("unit", suffix, n, name) for name, n in classes.items()]
        found += [("room", suffix, n, name) for name, n in classes.items()]
    if len(request.groups) > 1:
        suffixes = tuple(group.suffix for group in request.groups)
        found.append(("together", None, suffixes, None))
    if request.isolate:
        found.append(("isolate", None, None, None))
    for names in request.same_subtree:
        found.append(("same_subtree", None, tuple(sorted(names)), None))
    return list(dict.fromkeys(found))


class BruteForce:
    """A cloud and a request, asked about by sets of constraints."""

    def __init__(self, forest: list[Node], request: Request) -> None:
        self.forest = forest
        self.request = request
        self.constraints = constraints_of(request)
        self.all: Kept = frozenset(self.constraints)
        self.roots = [node for node in forest if node.parent is None]
        self.by_name = {node.name: node for node in forest}
        self.anchors = {node: oracle.anchors(forest, node) for node in forest}
        self._known: dict[Any, bool] = {}

    def serving(self, kept: Kept, suffix: str | None = None) -> set[str]:
        """Return the hosts that serve what is kept: of one group, or of all."""
        return {root.name for root in self.roots if self.serves(root, kept, suffix)}

    def serves(self, root: Node, kept: Kept, suffix: str | None = None) -> bool:
        key = (root.name, kept, suffix)
        if key not in self._known:
            self._known[key] = self._serves(root, kept, suffix)
        return self._known[key]

    def _serves(self, root: Node, kept: Kept, suffix: str | None) -> bool:
        if not self.has_root_traits(root, kept):
            return False
        groups = [
            group for group in self.request.groups if suffix in (None, group.suffix)
        ]
        if suffix is None and len(groups) > 1 and not kinds(kept, "together"):
            return all(self.serves(root, kept, group.suffix) for group in groups)
        if suffix is not None:
            kept = frozenset(each for each in kept if each[1] is not None)
        choices = [list(self.choices(group, kept, root)) for group in groups]
        names = [group.suffix for group in groups]
        return any(
            self._go_together(dict(zip(names, picked, strict=True)), kept)
            for picked in itertools.product(*choices)
        )

    def has_root_traits(self, root: Node, kept: Kept) -> bool:
        required = {each[2] for each in kinds(kept, "root_required")}
        forbidden = {each[2] for each in kinds(kept, "root_forbidden")}
        return required <= root.traits and not forbidden & root.traits

    def choices(self, group: Group, kept: Kept, anchor: Node) -> Iterator[Choice]:
        if not (group.resources or group.required or group.member_of):
            return
        of_group = {each for each in kept if each[1] == group.suffix}
        classes = [
            name
            for name in group.resources
            if ("inventory", group.suffix, name, name) in of_group
        ]
        if group.suffix or not classes:
            for node in self.forest:
                if self._may_serve(node, group, of_group, classes, anchor):
                    required = kinds(of_group, "required")
                    if all(node.traits & set(each[2]) for each in required):
                        yield {node}, self._taken(node, classes, group, of_group)
            return
        givers = [
            [
                node
                for node in self.forest
                if self._may_serve(node, group, of_group, [name], anchor)
            ]
            for name in classes
        ]
        for picks in itertools.product(*givers):
            have = frozenset().union(*(node.traits for node in picks))
            if all(have & set(each[2]) for each in kinds(of_group, "required")):
                taken = [
                    each
                    for node, name in zip(picks, classes, strict=True)
                    for each in self._taken(node, [name], group, of_group)
                ]
                yield set(picks), taken

    def _may_serve(
        self,
        node: Node,
        group: Group,
        kept: set[Constraint],
        classes: list[str],
        anchor: Node,
    ) -> bool:
        home = node.root is anchor
        if anchor not in self.anchors[node]:
            return False
        for _, _, name, _ in kinds(kept, "in_tree"):
            if name not in self.by_name:
                return False
            if group.resources:
                if node.root is not self.by_name[name].root:
                    return False
                if not group.suffix and not home:
                    return False
        members = [set(each[2]) for each in kinds(kept, "member_of")]
        if not all(node.aggregates & one_of for one_of in members) and not (
            not group.suffix
            and home
            and all(anchor.aggregates & one_of for one_of in members)
        ):
            return False
        unwanted = {each[2] for each in kinds(kept, "not_member_of")}
        if node.aggregates & unwanted:
            return False
        if not group.suffix and anchor.aggregates & unwanted:
            return False
        if node.traits & {each[2] for each in kinds(kept, "forbidden")}:
            return False
        return all(self._gives(node, name, group, kept) for name in classes)

    def _gives(
        self, node: Node, name: str, group: Group, kept: set[Constraint]
    ) -> bool:
        if name not in node.inventories:
            return False
        inventory, amount = node.inventories[name], group.resources[name]
        if ("unit", group.suffix, amount, name) in kept and not (
            inventory.min_unit <= amount <= inventory.max_unit
            and amount % inventory.step_size == 0
        ):
            return False
        if ("room", group.suffix, amount, name) in kept:
            return inventory.used + amount <= inventory.capacity
        return True

    def _taken(
        self,
        node: Node,
        classes: list[str],
        group: Group,
        kept: set[Constraint],
    ) -> list[tuple[Node, str, int, bool]]:
        amounts = ((name, group.resources[name]) for name in classes)
        return [
            (node, name, n, ("unit", group.suffix, n, name) in kept)
            for name, n in amounts
            if ("room", group.suffix, n, name) in kept
        ]

    def _go_together(self, picked: dict[str, Choice], kept: Kept) -> bool:
        users = {suffix: serving for suffix, (serving, _) in picked.items()}
        if kinds(kept, "isolate"):
            suffixed = [
                node for suffix, some in users.items() if suffix for node in some
            ]
            if len(set(suffixed)) < len(suffixed):
                return False
        for _, _, names, _ in kinds(kept, "same_subtree"):
            together = set().union(*(users[name] for name in names))
            if not any(all(top in node.line for node in together) for top in together):
                return False
        taken = [each for _, amounts in picked.values() for each in amounts]
        everything: Counter[tuple[Node, str]] = Counter()
        in_units: Counter[tuple[Node, str]] = Counter()
        for node, name, amount, unit in taken:
            everything[node, name] += amount
            if unit:
                in_units[node, name] += amount
        for (node, name), amount in everything.items():
            inventory = node.inventories[name]
            if inventory.used + amount > inventory.capacity:
                return False
            if in_units[node, name] > inventory.max_unit:
                return False
        givers = {node for node, _, _, _ in taken}
        return self.request.nested or len({n.root for n in givers}) == len(givers)

    # The content of an explanation.

    def funnel(self) -> list[tuple[int, int]]:
        return [(len(before), len(after)) for before, after in self.steps()]

    def steps(self) -> Iterator[tuple[set[str], set[str]]]:
        passing = {root.name for root in self.roots}
        for number, constraint in enumerate(self.constraints, 1):
            kept = frozenset(self.constraints[:number])
            before = set(passing)
            if constraint[0].startswith("root_"):
                passing &= {
                    root.name for root in self.roots if self.has_root_traits(root, kept)
                }
            else:
                passing &= self.serving(kept, constraint[1])
            yield before, set(passing)

    def alone(self, constraint: Constraint) -> int:
        kind, suffix, _, _ = constraint
        if kind.startswith("root_"):
            one = frozenset({constraint})
            return sum(self.has_root_traits(root, one) for root in self.roots)
        kept = {constraint}
        if suffix is None:
            kept |= kinds(self.all, "inventory") | kinds(self.all, "together")
        else:
            inventories = kinds(self.all, "inventory")
            kept |= {each for each in inventories if each[1] == suffix}
        return len(self.serving(frozenset(kept), suffix))

    def gain(self, constraint: Constraint) -> int:
        without = self.serving(self.all - {constraint})
        return len(without) - len(self.serving(self.all))

    def largest(
        self, constraint: Constraint, among: set[str] | None = None
    ) -> tuple[int, int] | None:
        _, suffix, most, name = constraint
        assert name is not None
        for amount in range(most - 1, 0, -1):
            groups = tuple(
                dataclasses.replace(group, resources={**group.resources, name: amount})
                if group.suffix == suffix
                else group
                for group in self.request.groups
            )
            smaller = dataclasses.replace(self.request, groups=groups)
            other = BruteForce(self.forest, smaller)
            serving = other.serving(other.all)
            if among is not None:
                serving &= among
            if serving:
                return amount, len(serving)
        return None

    def changes(self, most: int) -> list[tuple[tuple[Constraint, ...], int]]:
        now = len(self.serving(self.all))
        for size in range(1, MOST_DROPPED + 1):
            found = []
            for dropped in itertools.combinations(self.constraints, size):
                serves = len(self.serving(self.all - set(dropped)))
                if serves > now:
                    found.append((dropped, serves))
            if found:
                found.sort(
                    key=lambda each: (
                        -each[1],
                        sum(one[0] in ("inventory", "together") for one in each[0]),
                        [self.constraints.index(one) for one in each[0]],
                    )
                )
                return found[:most]
        return []

    def near(self, most: int) -> list[tuple[str, tuple[Constraint, ...]]]:
        refusing = [root for root in self.roots if not self.serves(root, self.all)]

        def distance(root: Node) -> Any:
            unmet = self.unmet(root)
            return weight(unmet), self._lack(root, unmet)

        refusing.sort(key=distance)
        return [(root.name, self.unmet(root)) for root in refusing[:most]]

    def is_nearer(self, root: Node, distance: int) -> bool:
        """Return whether a host serves without constraints of less weight than this."""
        return any(
            weight(dropped) < distance and self.serves(root, self.all - set(dropped))
            for size in range(2 * distance)
            for dropped in itertools.combinations(self.constraints, size)
        )

    def _lack(self, root: Node, unmet: tuple[Constraint, ...]) -> float:
        lacks = [0.0]
        for kind, _, amount, name in unmet:
            if kind in ("room", "unit") and name is not None:
                most = [
                    node.inventories[name].capacity - node.inventories[name].used
                    if kind == "room"
                    else node.inventories[name].max_unit
                    for node in self.forest
                    if root in self.anchors[node] and name in node.inventories
                ]
                lacks.append(1 - max(0, min(amount, max(most))) / amount)
            if kind == "inventory":
                lacks.append(1.0)
        return max(lacks)

    def meets(self, root: Node, constraint: Constraint) -> bool:
        """Return whether a host meets a constraint, whatever else is asked."""
        kind, suffix, _, name = constraint
        one = {constraint}
        if kind.startswith("root_"):
            return self.has_root_traits(root, frozenset(one))
        if suffix is None:
            return True
        if kind in ("unit", "room"):
            one.add(("inventory", suffix, name, name))
        return self.serves(root, frozenset(one), suffix)

    def some_blame(
        self, root: Node, missed: set[Constraint], rest: list[Constraint]
    ) -> set[Constraint]:
        """Return what a host serves without, if more has to go than is tried."""
        if missed and not self.serves(root, frozenset()):
            return missed
        too_few, enough = -1, len(rest)
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            if self.serves(root, self.all - missed - set(rest[:middle])):
                enough = middle
            else:
                too_few = middle
        unmet = missed | set(rest[:enough])
        for each in rest[:enough]:
            if self.serves(root, self.all - (unmet - {each})):
                unmet -= {each}
        return unmet

    def unmet(self, root: Node) -> tuple[Constraint, ...]:
        if self.serves(root, self.all):
            return ()
        missed = {each for each in self.constraints if not self.meets(root, each)}
        rest = sorted(
            (each for each in self.constraints if each not in missed),
            key=lambda each: TO_BLAME.index(each[0]),
        )
        unmet = missed
        blames = [
            added
            for more in range(MOST_BLAMED + 1)
            for added in itertools.combinations(rest, more)
        ]
        # The order of those that are equally far stays.
        blames.sort(key=lambda added: bool(added) and weight((*missed, *added)))
        for added in blames:
            if self.serves(root, self.all - missed - set(added)):
                unmet = missed | set(added)
                break
        else:
            unmet = self.some_blame(root, missed, rest)
        return tuple(
            each
            for each in self.constraints
            if each in unmet
            and not (
                each[0] in ("unit", "room")
                and ("inventory", each[1], each[3], each[3]) in unmet
            )
        )


def weight(some: Iterable[Constraint]) -> int:
    """Return how much there is between a host and serving.

    Unit and room of one class count as one, and having none of it at all as two.
    """
    some = list(some)
    missing = {each[1:] for each in some if each[0] == "inventory"}
    classes = {each[1::2] for each in some if each[0] == "inventory"}
    short = {each[1::2] for each in some if each[0] in ("unit", "room")} - classes
    rest = [each for each in some if each[0] not in ("inventory", "unit", "room")]
    return 2 * len(missing) + len(short) + len(rest)


def kinds(some: "frozenset[Constraint] | set[Constraint]", kind: str) -> Any:
    """Return the constraints of a kind."""
    return {each for each in some if each[0] == kind}
