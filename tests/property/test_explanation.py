"""Explanations against brute force: each number, on thousands of small clouds."""

import dataclasses
import itertools
import os
import random
import re
from typing import Any

import pytest

from placement.model import constraint
from placement.model.request import Group, Request
from placement.questions.explanation import (
    finding,
    report,
    sentence,
    survey,
)
from placement.questions.explanation.reason import Reason
from tests.property import forest, relaxed

# Each batch explains so many requests. ``tox -e explanations`` has more batches.
BATCHES = int(os.environ.get("PLACEMENT_TEST_EXPLANATIONS", "4"))
CASES = 50
MOST_CONSTRAINTS = 16
# How far brute force looks whether a host is nearer than it is said to be.
MOST_WEIGHT = 2


def as_plain(each: constraint.Constraint) -> relaxed.Constraint:
    return each.kind, each.suffix, each.value, each.resource_class


def random_case(rng: random.Random) -> tuple[list[forest.Node], Request]:
    """Return a cloud and a request that brute force can deal with."""
    while True:
        if rng.random() < 0.2:
            cloud, request = forest.wide_forest(rng), forest.crowded_request(rng)
        else:
            cloud = forest.random_forest(rng, size=5)
            request = forest.random_request(rng, cloud)
        # No query can ask for nothing at all.
        if (
            any(group.resources for group in request.groups)
            and len(relaxed.constraints_of(request)) <= MOST_CONSTRAINTS
            and len(request.groups) <= 3
        ):
            return cloud, request


@pytest.mark.parametrize("seed", range(BATCHES))
def test_each_number_is_what_brute_force_counts(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(CASES):
        compare(rng, *random_case(rng))


def compare(rng: random.Random, cloud: list[forest.Node], request: Request) -> None:
    brute = relaxed.BruteForce(cloud, request)
    snapshot = forest.snapshot_of(cloud)
    asked = survey.Survey(snapshot, request)
    roots = [root.name for root in brute.roots]
    most_changes, most_near = rng.choice([1, 10, 1000]), rng.choice([0, 1, 5])
    question = report.ExplanationQuery(
        request, changes=most_changes, near=most_near, hosts=tuple(roots)
    )
    told = report.report(snapshot, question, survey.Deadline(600))
    context = (cloud, request)

    assert told.complete
    assert told.hosts == len(roots), context
    assert told.serves == len(brute.serving(brute.all)), context
    assert [as_plain(each.constraint) for each in told.figures] == brute.constraints
    assert [(each.before, each.after) for each in told.figures] == brute.funnel(), (
        context
    )
    if told.figures:
        assert told.figures[-1].after == told.serves, context
    for figures, plain in zip(told.figures, brute.constraints, strict=True):
        assert figures.alone == brute.alone(plain), (plain, *context)
        assert figures.gain == brute.gain(plain), (plain, *context)
        smaller = figures.smaller and (figures.smaller.amount, figures.smaller.serves)
        expected = brute.largest(plain) if plain[0] in ("unit", "room") else None
        assert smaller == expected, (plain, *context)
    assert told.changes is not None
    assert [
        (tuple(map(as_plain, each.dropped)), each.serves) for each in told.changes
    ] == brute.changes(most_changes), context
    for each in told.changes:
        check_change(brute, each, context)
    check_summary(brute, told, context)
    assert told.near is not None
    assert [
        (each.tree.root.uuid, tuple(map(as_plain, each.unmet))) for each in told.near
    ] == brute.near(most_near), context
    for near in told.near[:1]:
        root = next(one for one in brute.roots if one.name == near.tree.root.uuid)
        found = relaxed.weight(map(as_plain, near.unmet))
        assert found > MOST_WEIGHT or not brute.is_nearer(root, found), context
    assert [
        (each.tree.root.uuid, tuple(map(as_plain, each.unmet))) for each in told.asked
    ] == [(root.name, brute.unmet(root)) for root in brute.roots], context
    check_hosts(brute, asked, told, context)


ASK = re.compile(r"(\d+) (\w+) instead of (\d+)(?: for group (\w+))?")
SERVE = re.compile(r": (\d+) hosts? serves?")
WOULD_DO = re.compile(r"(\d+) would do")


def check_change(
    brute: relaxed.BruteForce, change: report.QueryChange, context: object
) -> None:
    """Ask what a sentence says, and count as many hosts."""
    said = sentence.change(change)
    asks, serves = ASK.findall(said), SERVE.findall(said)
    amounts = {(suffix, name): int(amount) for amount, name, _, suffix in asks}
    dropped = {
        plain
        for plain in map(as_plain, change.dropped)
        if (plain[1] or "", plain[3] or "") not in amounts
    }
    assert bool(asks) == bool(change.offer), said
    already = count_with(brute, {}, set())
    for number in serves:
        assert int(number) == count_with(brute, amounts, dropped), (said, context)
        assert int(number) > already or not asks, (said, context)


def count_with(
    brute: relaxed.BruteForce,
    amounts: dict[tuple[str, str], int],
    dropped: set[relaxed.Constraint],
) -> int:
    """Return how many hosts serve the request with other amounts, by brute force."""
    request = dataclasses.replace(
        brute.request,
        groups=tuple(
            dataclasses.replace(
                group,
                resources={
                    name: amounts.get((group.suffix, name), amount)
                    for name, amount in group.resources.items()
                },
            )
            for group in brute.request.groups
        ),
    )
    other = relaxed.BruteForce(brute.forest, request)
    left = [
        new
        for new, old in zip(other.constraints, brute.constraints, strict=True)
        if old not in dropped
    ]
    return len(other.serving(frozenset(left)))


def check_summary(
    brute: relaxed.BruteForce, told: report.Report, context: object
) -> None:
    """Compare a summary with what hosts have."""
    said = sentence.summary(told)
    assert "other reasons" not in said
    assert sum(each.out for each in told.reasons) == told.hosts - told.serves, context
    funnel = dict(zip(brute.constraints, brute.steps(), strict=True))
    for reason in told.reasons:
        before, after = funnel[as_plain(reason.constraint)]
        out = before - after
        assert (reason.before, reason.out) == (len(before), len(out)), (said, context)
        if reason.is_plain and reason.constraint.kind == "unit":
            largest = brute.largest(as_plain(reason.constraint), out)
            would_do = f"{largest[0]} would do" if largest else None
            assert reason.smaller == (largest and largest[0]), (said, context)
            assert would_do is None or would_do in said, (said, context)
        of_several = reason.constraint.kind == "inventory" and reason.constraint.suffix
        if reason.is_plain and reason.constraint.kind in LACKING and not of_several:
            assert reason.out == len(lacking(brute, reason)), (said, context)
        kind, _, value, _ = as_plain(reason.constraint)
        if reason.is_plain and kind == "member_of":
            named = any(node.aggregates & set(value) for node in brute.forest)
            assert reason.is_vain == (not named), (said, context)
        if reason.is_plain and kind == "in_tree":
            assert reason.is_vain == (value not in brute.by_name), (said, context)
    for reason in told.reasons:
        if reason.is_plain and reason.constraint.kind == "room":
            assert room_left(brute, reason) in said, (said, context)
    found = sorted(each.smaller for each in told.reasons if each.smaller)
    assert sorted(map(int, WOULD_DO.findall(said))) == found, (said, context)


NUMBERS = re.compile(r"(\w+) (-?[\d.]+)")


def check_hosts(
    brute: relaxed.BruteForce,
    asked: survey.Survey,
    told: report.Report,
    context: object,
) -> None:
    """Compare what is said of each host by itself with what the host has."""
    for host in told.asked:
        verdicts = finding.judge(asked, host.tree)
        root = brute.by_name[host.tree.root.uuid]
        nodes = [node for node in brute.forest if root in brute.anchors[node]]
        for each, verdict in verdicts.items():
            kind, _, value, name = as_plain(each)
            if kind in PROVIDER_LACKS:
                meeting = {provider.uuid for provider in verdict.meeting}
                lacks = LACKING[kind]
                assert meeting == {
                    node.name
                    for node in nodes
                    if not lacks([node], node.root, value, name, None)
                }, (each, context)
                closest = verdict.closest
                assert (closest is None) == (len(meeting) == len(nodes))
                assert closest is None or closest.uuid not in meeting
        for each in host.unmet:
            said = sentence.unmet(verdicts[each])
            kind, _, value, name = as_plain(each)
            is_plain = not said.startswith("cannot serve so that")
            if kind in HOST_LACKS:
                lacks = HOST_LACKS[kind](nodes, root, value, name, None)
                assert is_plain == lacks, (said, context)
            if is_plain and kind in ("room", "unit"):
                inventories = [node.inventories.get(str(name)) for node in nodes]
                assert any(
                    has(inventory, said) for inventory in inventories if inventory
                ), (
                    said,
                    context,
                )


def has(inventory: forest.Inventory, said: str) -> bool:
    """Return whether the numbers in brackets are those of an inventory."""
    shown = dict(NUMBERS.findall(said.partition("(")[2]))
    free = re.findall(r"\((\d+) free", said)
    return all(
        float(getattr(inventory, field)) == pytest.approx(float(number))
        for field, number in shown.items()
    ) and free in ([], [str(max(0, inventory.capacity - inventory.used))])


def room_left(brute: relaxed.BruteForce, reason: Reason) -> str:
    """Return what a sentence has to say of the hosts with too little room."""
    _, suffix, amount, name = as_plain(reason.constraint)
    assert name
    free = [
        [
            max(0, node.inventories[name].capacity - node.inventories[name].used)
            for node in brute.forest
            if root in brute.anchors[node] and name in node.inventories
        ]
        for root in lacking(brute, reason)
    ]
    most, in_all = max(map(max, free)), max(map(sum, free))
    said = f"less than {amount} {name} free on one provider"
    said += f"{constraint.group_of(suffix)} ({most} at most"
    return f"{said}; {in_all} for one host in all" if in_all > most else said


def lacking(brute: relaxed.BruteForce, reason: Reason) -> list[forest.Node]:
    """Return the hosts that passed so far and lack what the sentence says, plainly."""
    kind, _, value, name = as_plain(reason.constraint)
    place = brute.constraints.index(as_plain(reason.constraint))
    passing = {root.name for root in brute.roots}
    for number, plain in enumerate(brute.constraints[:place], 1):
        kept = frozenset(brute.constraints[:number])
        if plain[0].startswith("root_"):
            found = [root for root in brute.roots if brute.has_root_traits(root, kept)]
            passing &= {root.name for root in found}
        else:
            passing &= brute.serving(kept, plain[1])
    found = []
    for root in brute.roots:
        nodes = [node for node in brute.forest if root in brute.anchors[node]]
        if root.name in passing and LACKING[kind](nodes, root, value, name, reason):
            found.append(root)
    return found


def _none_has(nodes: Any, root: Any, value: Any, name: Any, reason: Any) -> bool:
    return not any(name in node.inventories for node in nodes)


LACKING: dict[str, Any] = {
    "inventory": _none_has,
    "required": lambda nodes, root, value, *_: (
        not any(node.traits & set(value) for node in nodes)
    ),
    "forbidden": lambda nodes, root, value, *_: any(
        value in node.traits for node in nodes if node.root is root
    ),
    "member_of": lambda nodes, root, value, *_: (
        not any(node.aggregates & set(value) for node in nodes)
    ),
    "room": lambda nodes, root, value, name, _: (
        not any(
            node.inventories[name].used + value <= node.inventories[name].capacity
            for node in nodes
            if name in node.inventories
        )
    ),
    "unit": lambda nodes, root, value, name, _: (
        not any(
            node.inventories[name].min_unit <= value <= node.inventories[name].max_unit
            and value % node.inventories[name].step_size == 0
            for node in nodes
            if name in node.inventories
        )
    ),
}
# Kinds of constraints that a provider meets by itself.
PROVIDER_LACKS = ("inventory", "required", "forbidden", "room", "unit")
# What is said of one host, rather than of all that drop out.
HOST_LACKS: dict[str, Any] = {
    **LACKING,
    "root_required": lambda nodes, root, value, *_: value not in root.traits,
    "root_forbidden": lambda nodes, root, value, *_: value in root.traits,
    "forbidden": lambda nodes, root, value, *_: all(
        value in node.traits for node in nodes
    ),
}


@pytest.mark.parametrize(("groups", "seconds"), [(5, 600), (2, 0)])
def test_a_host_that_does_not_serve_is_never_said_to(
    groups: int, seconds: float
) -> None:
    """Either more is to be dropped than is tried, or there is no time to try."""
    root = forest.Node("root", None, {}, frozenset(), frozenset())
    cloud = [
        root,
        forest.Node("a", root, {"VCPU": forest.Inventory(9)}, frozenset(), frozenset()),
        forest.Node("b", root, {}, frozenset({"CUSTOM_T1"}), frozenset()),
    ]
    request = Request(
        tuple(
            Group(str(number), {"VCPU": 1}, required=(frozenset({"CUSTOM_T1"}),))
            for number in range(groups)
        )
    )
    brute = relaxed.BruteForce(cloud, request)
    question = report.ExplanationQuery(request, hosts=("root",))
    # Each look at this clock takes a millisecond.
    looks = itertools.count()
    deadline = survey.Deadline(seconds, clock=lambda: next(looks) / 1000)
    told = report.report(forest.snapshot_of(cloud), question, deadline)
    assert told.serves == 0
    [near] = told.near or ()
    for host in (near, *told.asked):
        assert host.unmet
        left = brute.all - set(map(as_plain, host.unmet))
        assert brute.serves(brute.roots[0], left)
