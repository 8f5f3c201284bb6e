"""Small random clouds and questions about them, written down as plainly as can be.

Nothing here comes from the code under test, so that the oracle can be trusted to know
only what the API reference says.
"""

import dataclasses
import random

from placement.model import tree
from placement.model.inventory import InventoryUsage
from placement.model.request import Group, Request
from placement.model.tree import SHARING, Provider, Snapshot, Tree, walk

CLASSES = ("VCPU", "MEMORY_MB", "CUSTOM_VF", "DISK_GB")
TRAITS = ("CUSTOM_T1", "CUSTOM_T2", "CUSTOM_T3", SHARING)
AGGREGATES = ("A", "B", "C")


@dataclasses.dataclass(frozen=True)
class Inventory:
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2147483647
    step_size: int = 1
    allocation_ratio: float = 1.0
    used: int = 0

    @property
    def capacity(self) -> int:
        return int((self.total - self.reserved) * self.allocation_ratio)


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """A provider; ``line`` is itself, its parent, and so on up to the root."""

    name: str
    parent: "Node | None"
    inventories: dict[str, Inventory]
    traits: frozenset[str]
    aggregates: frozenset[str]

    @property
    def line(self) -> list["Node"]:
        return [self, *(self.parent.line if self.parent else [])]

    @property
    def root(self) -> "Node":
        return self.line[-1]


def random_forest(rng: random.Random, size: int = 7) -> list[Node]:
    """Return a few trees, parents before their children."""
    nodes: list[Node] = []
    sharing = rng.random() < 0.6
    nesting = rng.choice([0, 0.5, 0.7, 0.9, 1])
    twins = rng.random() < 0.4
    plenty = rng.choice([0.4, 0.6, 0.9])
    for number in range(rng.randint(1, size)):
        parent = rng.choice(nodes) if nodes and rng.random() < nesting else None
        if twins and nodes and rng.random() < 0.6:
            like = nodes[-1]
            nodes.append(
                Node(
                    f"p{number}",
                    like.parent,
                    like.inventories,
                    like.traits,
                    like.aggregates,
                )
            )
            continue
        traits = {trait for trait in TRAITS[:3] if rng.random() < 0.35}
        if sharing and rng.random() < 0.4:
            traits.add(SHARING)
        nodes.append(
            Node(
                f"p{number}",
                parent,
                {
                    name: random_inventory(rng)
                    for name in CLASSES
                    if rng.random() < plenty
                },
                frozenset(traits),
                frozenset(name for name in AGGREGATES if rng.random() < 0.3),
            )
        )
    return nodes


def random_inventory(rng: random.Random) -> Inventory:
    if rng.random() < 0.4:
        return Inventory(rng.randint(1, 4))
    return Inventory(
        total=rng.randint(1, 6),
        reserved=rng.choice([0, 0, 1]),
        min_unit=rng.choice([1, 1, 1, 2]),
        max_unit=rng.choice([2147483647, 2147483647, 2, 3]),
        step_size=rng.choice([1, 1, 1, 2]),
        allocation_ratio=rng.choice([1.0, 1.0, 1.5, 0.9]),
        used=rng.choice([0, 0, 1, 2]),
    )


def random_request(rng: random.Random, forest: list[Node]) -> Request:
    """Return a question with a fair chance to have answers."""
    groups: list[Group] = []
    pickiness = rng.choice([0, 0, 0.3, 1])
    if rng.random() < 0.6:
        groups.append(random_group(rng, forest, "", pickiness))
    suffixes = ["1", "2", "_X", "4", "5"][: rng.choice([0, 1, 2, 2, 3, 4, 5])]
    alike = rng.random() < 0.4
    for suffix in suffixes or ([] if groups else ["1"]):
        suffixed = [group for group in groups if group.suffix]
        if alike and suffixed:
            groups.append(dataclasses.replace(suffixed[-1], suffix=suffix))
        else:
            groups.append(random_group(rng, forest, suffix, pickiness))
    rng.shuffle(groups)
    named = [group.suffix for group in groups if group.suffix]
    return Request(
        groups=tuple(groups),
        root_required=random_names(rng, TRAITS, 0.2 * pickiness),
        root_forbidden=random_names(rng, TRAITS, 0.2 * pickiness),
        isolate=rng.random() < 0.4,
        same_subtree=tuple(
            frozenset(rng.sample(named, rng.randint(1, len(named))))
            for _ in range(rng.choice([0, 0, 1, 1, 2]))
            if named
        ),
        nested=rng.random() < 0.75,
    )


def wide_forest(rng: random.Random) -> list[Node]:
    """Return one tree of devices, most of them alike, some of them below others."""
    nodes: list[Node] = []
    for name in ["host", "numa0", "numa1"][: rng.choice([1, 2, 3])]:
        traits = frozenset({"CUSTOM_T1"} if rng.random() < 0.5 else ())
        nodes.append(Node(name, nodes[0] if nodes else None, {}, traits, frozenset()))
    parents = list(nodes)
    for number in range(rng.randint(3, 6)):
        inventories = {
            name: Inventory(rng.choice([1, 1, 1, 2, 3]))
            for name in ("CUSTOM_VF", "VCPU")
            if rng.random() < (0.9 if name == "CUSTOM_VF" else 0.3)
        }
        traits = frozenset({"CUSTOM_T1"} if rng.random() < 0.2 else ())
        aggregates = frozenset({"A"} if rng.random() < 0.1 else ())
        parent = rng.choice(parents)
        nodes.append(Node(f"d{number}", parent, inventories, traits, aggregates))
    return nodes


def crowded_request(rng: random.Random) -> Request:
    """Return a question in which groups get into each other's way."""
    suffixes = [str(number) for number in range(1, rng.randint(3, 5))]
    groups = [
        Group(
            suffix=suffix,
            resources={
                "CUSTOM_VF": rng.choice([1, 1, 1, 2]),
                **({"VCPU": 1} if rng.random() < 0.15 else {}),
            },
            required=(frozenset({"CUSTOM_T1"}),) if rng.random() < 0.15 else (),
        )
        for suffix in suffixes
    ]
    if rng.random() < 0.3:
        groups.append(Group(suffix="", resources={"CUSTOM_VF": 1}))
    if rng.random() < 0.3:
        groups.append(Group(suffix="N", required=(frozenset({"CUSTOM_T1"}),)))
        suffixes.append("N")
    return Request(
        groups=tuple(groups),
        isolate=rng.random() < 0.5,
        same_subtree=tuple(
            frozenset(rng.sample(suffixes, rng.randint(2, len(suffixes))))
            for _ in range(rng.choice([0, 0, 1, 1, 2]))
        ),
        nested=rng.random() < 0.9,
    )


def random_group(
    rng: random.Random, forest: list[Node], suffix: str, pickiness: float
) -> Group:
    resourceless = bool(suffix) and rng.random() < 0.2
    classes = rng.sample(CLASSES, rng.choice([1, 1, 2, 3] if not suffix else [1, 1, 2]))
    return Group(
        suffix=suffix,
        resources={}
        if resourceless
        else {name: rng.choice([1, 1, 1, 2, 2, 3]) for name in classes},
        required=random_sets(rng, TRAITS[:3], 0.6 if resourceless else 0.3 * pickiness),
        forbidden=random_names(rng, TRAITS, 0.3 * pickiness),
        member_of=random_sets(rng, AGGREGATES, 0.2 * pickiness),
        not_member_of=random_names(rng, AGGREGATES, 0.15 * pickiness),
        in_tree=rng.choice([*(node.name for node in forest), "nobody"])
        if rng.random() < 0.15 * pickiness
        else None,
    )


def random_names(
    rng: random.Random, names: tuple[str, ...], chance: float
) -> frozenset[str]:
    return frozenset(name for name in names if rng.random() < chance)


def random_sets(
    rng: random.Random, names: tuple[str, ...], chance: float
) -> tuple[frozenset[str], ...]:
    return tuple(
        frozenset(rng.sample(names, rng.choice([1, 1, 2])))
        for _ in range(2)
        if rng.random() < chance
    )


def snapshot_of(forest: list[Node]) -> Snapshot:
    """Return a forest as the engine gets it."""
    by_name = {node.name: node for node in forest}
    parents = {node.name: node.parent.name if node.parent else None for node in forest}
    return tree.snapshot_of(
        tree_of([(by_name[name], end) for name, end in members])
        for members in walk(parents)
    )


def tree_of(members: list[tuple[Node, int]]) -> Tree:
    return Tree(
        tuple(
            Provider(
                uuid=node.name,
                parent_uuid=node.parent.name if node.parent else None,
                root_uuid=node.root.name,
                inventories={
                    name: InventoryUsage(**dataclasses.asdict(inventory))
                    for name, inventory in node.inventories.items()
                },
                trait_names=tuple(sorted(node.traits)),
                traits=node.traits,
                aggregates=node.aggregates,
                position=position,
                end=end,
            )
            for position, (node, end) in enumerate(members)
        ),
    )
