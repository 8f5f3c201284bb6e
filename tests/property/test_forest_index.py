"""The index of a forest: what it leaves out cannot serve, and it follows changes."""

import dataclasses
import itertools
import random
from typing import Any

import pytest

from placement.forest import fingerprint, forest, vocabulary
from placement.forest.forest import Block
from placement.model.constraint import (
    MemberOf,
    Need,
    Resources,
    RootRequired,
    TraitForbidden,
    TraitRequired,
)
from placement.model.request import Group, Request
from placement.model.tree import Snapshot, Tree
from placement.search import engine
from tests.property import forest as clouds
from tests.property.test_search import as_found

WORDS = vocabulary.of_names({}, {})
NEEDS = [
    *[Need(Resources(None, ((name, 2),))) for name in clouds.CLASSES],
    *[Need(Resources(None, ((name, 3),))) for name in clouds.CLASSES],
    *[Need(TraitRequired(None, (name,))) for name in clouds.TRAITS],
    *[Need(TraitForbidden(None, name)) for name in clouds.TRAITS],
    *[Need(RootRequired(None, name)) for name in clouds.TRAITS],
    *[Need(MemberOf(None, (name,))) for name in clouds.AGGREGATES],
]


def answers(snapshot: Snapshot, request: Request) -> list[Any]:
    """Return all candidates, in a form that can be compared."""
    return [as_found(each) for each in engine.search(snapshot, request)]


def trees_of(cloud: list[clouds.Node], first: int = 1) -> dict[int, Tree]:
    """Return trees by made up ids of their roots, which their members have as well."""
    numbers = itertools.count(first)
    trees = {}
    for tree in clouds.snapshot_of(cloud).trees:
        members = tuple(
            dataclasses.replace(member, id=next(numbers), generation=3)
            for member in tree.members
        )
        trees[members[0].id] = Tree(members)
    return trees


@pytest.mark.parametrize("seed", range(3))
def test_the_index_changes_neither_the_candidates_nor_their_order(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forest, "BLOCK_SIZE", 2)
    rng = random.Random(seed)
    looked_at = left_out = 0
    for _ in range(30):
        cloud = clouds.random_forest(rng, size=9)
        grown = forest.forest_of(WORDS, trees_of(cloud))
        for _ in range(5):
            request = clouds.random_request(rng, cloud)
            relevant = grown.relevant(request)
            found = answers(relevant, request)
            assert found == answers(grown.everything, request), (cloud, request)
            looked_at += len(relevant.trees)
            left_out += len(grown.everything.trees) - len(relevant.trees)
    assert left_out > looked_at > 0


def test_trees_come_round_from_any_place_each_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forest, "BLOCK_SIZE", 3)
    rng = random.Random(5)
    turned = 0
    for _ in range(30):
        cloud = clouds.random_forest(rng, size=9)
        grown = forest.forest_of(WORDS, trees_of(cloud))
        request = clouds.random_request(rng, cloud)
        listed = [tree.root.uuid for tree in grown.relevant(request).trees]
        for start in (rng.random(), rng.random(), 0.999):
            trees = grown.relevant(request).trees
            if not isinstance(trees, forest.Trees):
                continue
            found = [tree.root.uuid for tree in trees.beginning(start)]
            split = listed.index(found[0]) if found else 0
            assert found == listed[split:] + listed[:split]
            turned += split > 0
    assert turned > 10


@pytest.mark.parametrize("seed", range(2))
def test_a_forest_that_follows_changes_is_like_one_that_is_made_anew(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forest, "BLOCK_SIZE", 3)
    rng = random.Random(seed)
    trees: dict[int, Tree] = {}
    grown = forest.forest_of(WORDS, trees)
    compared = fingerprint.NOTHING
    for _ in range(40):
        before, described = grown, describe(grown)
        gone = {key for key in trees if rng.random() < 0.15}
        first = rng.choice([1, 40, 90])
        fresh = trees_of(clouds.random_forest(rng, size=5), first)
        there = {key: tree for key, tree in fresh.items() if rng.random() < 0.8}
        used = {key: use(rng, tree) for key, tree in trees.items() if key not in gone}
        some = {key: tree for key, tree in used.items() if rng.random() < 0.3}
        there = {**there, **some}
        gone |= {key for key in trees if key in there or collides(trees[key], there)}
        trees = {key: tree for key, tree in trees.items() if key not in gone} | there
        trees = {key: trees[key] for key in sorted(trees)}
        trees, there = without_twins(trees, there)
        gone |= {key for key in describe(before)[0] if key not in trees}
        grown = grown.replace(WORDS, gone, there)
        assert describe(grown) == describe(forest.forest_of(WORDS, trees))
        assert describe(before) == described, "a forest was changed"
        if rng.random() < 0.5:
            own = fingerprint.of_forest(grown, compared)
            assert own == fingerprint.of_forest(grown)
            compared = fingerprint.Comparison(grown, own, own)


def use(rng: random.Random, tree: Tree) -> Tree:
    """Return a tree of which more is used, and maybe in other units."""
    units = {}
    if rng.random() < 0.3:
        units = {"min_unit": rng.choice([1, 2]), "step_size": rng.choice([1, 2])}
    members = tuple(
        dataclasses.replace(
            member,
            generation=member.generation + 1,
            inventories={
                name: dataclasses.replace(
                    inventory, used=inventory.used + rng.choice([0, 1]), **units
                )
                for name, inventory in member.inventories.items()
            },
        )
        for member in tree.members
    )
    return Tree(members)


def collides(tree: Tree, others: dict[int, Tree]) -> bool:
    """Return whether a member has the UUID of a member of another tree."""
    uuids = {member.uuid for other in others.values() for member in other.members}
    return any(member.uuid in uuids for member in tree.members)


def without_twins(
    trees: dict[int, Tree], there: dict[int, Tree]
) -> tuple[dict[int, Tree], dict[int, Tree]]:
    """Leave out trees in which there is a UUID for the second time."""
    seen: set[str] = set()
    kept = {}
    for key, tree in trees.items():
        uuids = {member.uuid for member in tree.members}
        if not uuids & seen:
            kept[key] = tree
            seen |= uuids
    return kept, {key: tree for key, tree in there.items() if key in kept}


def describe(grown: forest.Forest) -> Any:
    """Return what a forest says of its trees, whatever its blocks are."""
    said = {
        root: of_tree(each, position)
        for each in grown.blocks
        for position, root in enumerate(each.roots)
    }
    homes = {
        uuid: grown.everything.tree_by_uuid[uuid].root.id
        for uuid in grown.everything.tree_by_uuid
    }
    shared = [provider.uuid for provider in grown.sharing]
    return said, homes, shared


def of_tree(each: Block, position: int) -> Any:
    """Return what a block says of one of its trees."""
    tree = each.trees[position]
    return (
        [(member.uuid, dict(member.inventories)) for member in tree.members],
        [need for need in NEEDS if tree in each.select([need])],
    )


@pytest.mark.parametrize("seed", range(4))
def test_hosts_without_parts_are_found_by_the_index(seed: int) -> None:
    rng = random.Random(seed)
    count = 0
    for _ in range(60):
        cloud = [lone_host(rng, f"p{number}") for number in range(8)]
        grown = forest.forest_of(WORDS, trees_of(cloud))
        for _ in range(5):
            groups = [picky_group(rng, "")]
            if rng.random() < 0.3:
                groups.append(picky_group(rng, "1"))
            request = Request(tuple(groups), nested=rng.random() < 0.8)
            relevant = grown.relevant(request)
            found = answers(relevant, request)
            assert found == answers(grown.everything, request), (cloud, request)
            count += len(found)
    assert count > 100


def lone_host(rng: random.Random, name: str) -> clouds.Node:
    """Return a host that is alone in its tree and shares nothing."""
    return clouds.Node(
        name,
        None,
        {each: clouds.random_inventory(rng) for each in clouds.CLASSES},
        frozenset(each for each in clouds.TRAITS[:3] if rng.random() < 0.5),
        frozenset(each for each in clouds.AGGREGATES if rng.random() < 0.5),
    )


def picky_group(rng: random.Random, suffix: str) -> Group:
    """Return a group that asks for something of each kind, or against it, at times."""

    def some(names: tuple[str, ...], part: float) -> frozenset[str]:
        return frozenset(each for each in names if rng.random() < part)

    def sets(names: tuple[str, ...]) -> tuple[frozenset[str], ...]:
        chosen = some(names, 0.5)
        return (chosen,) if chosen and rng.random() < 0.4 else ()

    names = rng.sample(clouds.CLASSES, rng.randint(1, 3))
    return Group(
        suffix=suffix,
        resources={each: rng.randint(1, 3) for each in names},
        required=sets(clouds.TRAITS[:3]),
        forbidden=some(clouds.TRAITS[:3], 0.2),
        member_of=sets(clouds.AGGREGATES),
        not_member_of=some(clouds.AGGREGATES, 0.2),
    )
