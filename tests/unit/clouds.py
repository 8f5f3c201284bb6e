"""Clouds and requests that the tests of the search use, each as a plain value."""

import itertools
from collections.abc import Iterable, Mapping

from placement.model.inventory import InventoryUsage
from placement.model.request import Group, Request
from placement.model.tree import Provider, Snapshot, Tree, snapshot_of, walk
from placement.search import engine
from placement.search.search import Limits, Tally

Stocks = Mapping[str, InventoryUsage]

ONE = {"GPU": InventoryUsage(1)}
FULL = {"GPU": InventoryUsage(1, used=1)}
NUMA = frozenset({"NUMA"})


def tree(
    root: str,
    parents: Mapping[str, str],
    inventories: Mapping[str, Stocks],
    traits: Mapping[str, frozenset[str]] | None = None,
) -> Tree:
    """Return a tree; ``parents`` are those of all members but the root."""
    (members,) = walk({root: None, **parents})
    return Tree(
        tuple(
            Provider(
                uuid=name,
                parent_uuid=parents.get(name),
                root_uuid=root,
                inventories=inventories.get(name, {}),
                trait_names=tuple(sorted((traits or {}).get(name, ()))),
                traits=(traits or {}).get(name, frozenset()),
                aggregates=frozenset(),
                position=position,
                end=end,
            )
            for position, (name, end) in enumerate(members)
        ),
    )


def hosts(count: int, devices: Iterable[Stocks]) -> Snapshot:
    """Return hosts with the same devices below each."""
    devices = list(devices)
    trees = []
    for number in range(count):
        root = f"host{number}"
        names = [f"{root}-{which}" for which in range(len(devices))]
        trees.append(
            tree(
                root, dict.fromkeys(names, root), dict(zip(names, devices, strict=True))
            )
        )
    return snapshot_of(trees)


def groups(count: int, amount: int = 1) -> tuple[Group, ...]:
    return tuple(Group(str(number), {"GPU": amount}) for number in range(1, count + 1))


def ask(
    snapshot: Snapshot,
    request: Request,
    limit: int | None = None,
    limits: Limits | None = None,
) -> tuple[list[engine.Candidate], Tally]:
    """Return the candidates, up to a limit, and what the search did for them."""
    tally = Tally()
    found = engine.search(snapshot, request, tally=tally, limits=limits)
    return list(itertools.islice(found, limit)), tally


def roots(candidates: Iterable[engine.Candidate]) -> list[str]:
    return [candidate.providers[0].root_uuid for candidate in candidates]


def cluster(classes: int, providers: int, traits: Iterable[str]) -> Snapshot:
    """Return a host with some providers of each class, with one trait each."""
    names = {
        f"{number}-{which}": f"C{number}"
        for number in range(classes)
        for which in range(providers)
    }
    having = dict(
        zip(
            names, (frozenset({each}) for each in itertools.cycle(traits)), strict=False
        )
    )
    inventories = {name: {of: InventoryUsage(1)} for name, of in names.items()}
    return snapshot_of(
        [tree("host", dict.fromkeys(names, "host"), inventories, having)]
    )


def of_all_classes(classes: int, traits: Iterable[str]) -> Request:
    resources = {f"C{number}": 1 for number in range(classes)}
    required = tuple(frozenset({each}) for each in traits)
    return Request((Group("", resources, required=required),))


def numa_host(name: str, functions: int, nodes: int = 2) -> Tree:
    """Return a host of some NUMA nodes with some functions below each."""
    parents, inventories, traits = {}, {}, {}
    for node in [f"{name}-{number}" for number in range(nodes)]:
        parents[node], traits[node] = name, NUMA
        for number in range(functions):
            parents[f"{node}-{number}"] = node
            inventories[f"{node}-{number}"] = ONE
    return tree(name, parents, inventories, traits)


def on_one_node(count: int) -> Request:
    return Request(
        (*groups(count), Group("N", required=(NUMA,))),
        isolate=True,
        same_subtree=(frozenset(["N", *map(str, range(1, count + 1))]),),
    )


def pairs(sets: int) -> Request:
    """Return a request for sets of two functions, each set on one NUMA node."""
    names = [(f"{n}a", f"{n}b", f"{n}n") for n in range(sets)]
    return Request(
        tuple(
            Group(name, {"GPU": 1}) if name != node else nodal(name)
            for first, second, node in names
            for name in (first, second, node)
        ),
        same_subtree=tuple(map(frozenset, names)),
    )


def nodal(name: str) -> Group:
    return Group(name, required=(NUMA,))


# Three nodes of three functions hold nine, but no more than three pairs. Relaxations
# look at functions or at nodes, so this has to be searched.
PAIRS = pairs(4)


def small_host(name: str) -> Tree:
    return numa_host(name, functions=3, nodes=3)


def large_host(name: str) -> Tree:
    return numa_host(name, functions=8, nodes=3)
