"""What explanations say of clouds as there are."""

import dataclasses
from collections.abc import Iterator

import pytest

from placement.model.request import Request
from placement.model.tree import SHARING
from placement.questions.explanation import finding, report, sentence, survey
from placement.schemas import query as wire
from placement_foundation.http import query_string
from placement_foundation.http.version import Version
from tests.property import forest
from tests.property.forest import Inventory, Node

RACK = "7b6c0b5e-0000-4000-8000-000000000001"
OTHER_RACK = "7b6c0b5e-0000-4000-8000-000000000002"
NO_RACK = "7b6c0b5e-0000-4000-8000-000000000003"


def node(
    name: str,
    parent: Node | None = None,
    traits: tuple[str, ...] = (),
    aggregates: tuple[str, ...] = (),
    **inventories: Inventory,
) -> Node:
    return Node(name, parent, inventories, frozenset(traits), frozenset(aggregates))


def flat() -> Iterator[Node]:
    """Yield ten hosts: four are trusted, one of these retires, three are in a rack."""
    for number in range(10):
        traits = ["CUSTOM_TRUSTED"] if number < 4 else []
        if number == 0:
            traits.append("CUSTOM_RETIRING")
        yield node(
            f"host{number}",
            traits=tuple(traits),
            aggregates=(RACK,) if number > 6 else (),
            VCPU=Inventory(64, max_unit=32, used=50 + number % 3),
            MEMORY_MB=Inventory(1024, used=100 * number),
        )


def nested() -> Iterator[Node]:
    """Yield two hosts of two NUMA nodes, with a NIC below the first."""
    for number in range(2):
        host = node(f"host{number}", DISK_GB=Inventory(100))
        yield host
        for place in range(2):
            numa = node(
                f"host{number}numa{place}",
                host,
                traits=("HW_NUMA_ROOT",),
                VCPU=Inventory(32, used=12),
            )
            yield numa
            if place == 0:
                yield node(
                    f"host{number}nic",
                    numa,
                    traits=("CUSTOM_PHYSNET0",),
                    SRIOV_NET_VF=Inventory(8),
                )


def wide() -> Iterator[Node]:
    """Yield a host with eight GPUs."""
    host = node("host", VCPU=Inventory(64))
    yield host
    for number in range(8):
        yield node(f"gpu{number}", host, PGPU=Inventory(1))


def shared() -> Iterator[Node]:
    """Yield two hosts and the disk that they share."""
    for number in range(2):
        yield node(f"host{number}", aggregates=(RACK,), VCPU=Inventory(8))
    yield node("disk", traits=(SHARING,), aggregates=(RACK,), DISK_GB=Inventory(1000))


def reserved() -> Iterator[Node]:
    """Yield hosts whose memory is all reserved."""
    for number in range(5):
        yield node(
            f"host{number}",
            MEMORY_MB=Inventory(4096, reserved=4096),
        )


def unshared() -> Iterator[Node]:
    """Yield hosts in a rack, and two pools that hosts cannot use."""
    for number in range(10):
        yield node(f"host{number}", aggregates=(RACK,), VCPU=Inventory(8))
    # It has the trait, but is in no aggregate.
    yield node("pool", traits=(SHARING,), DISK_GB=Inventory(1000))
    # It is in the aggregate, but does not have the trait.
    yield node("memory", aggregates=(RACK,), MEMORY_MB=Inventory(1000))


def layered() -> Iterator[Node]:
    """Yield hosts that fail for many reasons, and two that come furthest."""
    names = ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "CUSTOM_D")
    for number in range(10):
        yield node(
            f"host{number}",
            traits=names[: number // 2],
            VCPU=Inventory(4 + number),
        )


def cells() -> Iterator[Node]:
    """Yield hosts with twelve processors free, six in each of two cells."""
    for number in range(2):
        host = node(f"host{number}")
        yield host
        for cell in range(2):
            cores = Inventory(16, reserved=4, allocation_ratio=0.75, used=3)
            yield node(f"host{number}cell{cell}", host, PCPU=cores)


CLOUDS = {
    "flat": flat,
    "nested": nested,
    "wide": wide,
    "shared": shared,
    "reserved": reserved,
    "unshared": unshared,
    "layered": layered,
    "cells": cells,
}


def parsed(query: str) -> Request:
    parse = wire.CANDIDATES.at(Version(1, 39))
    assert parse
    return parse(query_string.decode(query)).request


def explain(cloud: str, query: str) -> report.Report:
    # The providers of these clouds are called by names where UUIDs are asked for.
    in_tree = "00000000-0000-4000-8000-000000000000"
    request = parsed(query)
    groups = tuple(
        dataclasses.replace(group, in_tree="host3")
        if group.in_tree == in_tree
        else group
        for group in request.groups
    )
    request = dataclasses.replace(request, groups=groups)
    snapshot = forest.snapshot_of(list(CLOUDS[cloud]()))
    question = report.ExplanationQuery(request)
    return report.report(snapshot, question, survey.Deadline(600))


@pytest.mark.parametrize(
    ("cloud", "query", "summary", "change"),
    [
        ("flat", "resources=VCPU:4", "All 10 hosts serve this request.", None),
        (
            "flat",
            "resources=VCPU:4&required=CUSTOM_TRUSTED,!CUSTOM_RETIRING",
            "3 of 10 hosts serve this request. 6 lack CUSTOM_TRUSTED; of the 4 others, "
            "1 has CUSTOM_RETIRING, which is forbidden.",
            None,
        ),
        (
            "flat",
            "resources=VCPU:16&required=CUSTOM_TRUSTED",
            "None of 10 hosts serves this request. 6 lack CUSTOM_TRUSTED; the 4 others "
            "have less than 16 VCPU free on one provider (14 at most).",
            "ask for 14 VCPU instead of 16: 2 hosts serve",
        ),
        (
            "flat",
            "resources=VCPU:40",
            "None of 10 hosts serves this request. All 10 refuse 40 VCPU to one "
            "consumer (max_unit 32; 14 would do).",
            "ask for 14 VCPU instead of 40: 4 hosts serve",
        ),
        (
            "flat",
            "resources=PGPU:1",
            "None of 10 hosts serves this request. All 10 have no PGPU.",
            "do without PGPU: 10 hosts serve",
        ),
        (
            "flat",
            f"resources=VCPU:14&member_of={RACK}&required=CUSTOM_TRUSTED",
            "None of 10 hosts serves this request. 7 are outside aggregate "
            f"{RACK}; the 3 others lack CUSTOM_TRUSTED.",
            f"look outside aggregate {RACK}: 2 hosts serve",
        ),
        (
            "flat",
            f"resources=VCPU:1&member_of=in:{RACK},{OTHER_RACK}&member_of=!{RACK}",
            "None of 10 hosts serves this request. 7 are outside the 2 aggregates that "
            f"were named; the 3 others are in aggregate {RACK}, which is ruled out.",
            f"look outside aggregates {RACK} and {OTHER_RACK}: 7 hosts serve",
        ),
        (
            "flat",
            "resources=VCPU:1&in_tree=00000000-0000-4000-8000-000000000000"
            "&required=!CUSTOM_TRUSTED",
            "None of 10 hosts serves this request. 9 belong to another tree than that "
            "of host3; the other has CUSTOM_TRUSTED, which is forbidden.",
            "look at all hosts, not only that of host3: 6 hosts serve",
        ),
        (
            "flat",
            "resources=VCPU:14,MEMORY_MB:900&required=in:CUSTOM_TRUSTED,CUSTOM_OTHER",
            "1 of 10 hosts serves this request. 6 have none of CUSTOM_OTHER and "
            "CUSTOM_TRUSTED; of the 4 others, 2 have less than 14 VCPU free on one "
            "provider (13 at most); of the 2 others, 1 has less than 900 MEMORY_MB "
            "free on one provider (724 at most).",
            None,
        ),
        (
            "flat",
            "resources=VCPU:20,MEMORY_MB:2000&root_required=CUSTOM_TRUSTED",
            "None of 10 hosts serves this request. 6 lack CUSTOM_TRUSTED; the 4 others "
            "have less than 20 VCPU free on one provider (14 at most).",
            "ask for 14 VCPU instead of 20 and 1024 MEMORY_MB instead of 2000: "
            "1 host serves",
        ),
        (
            "nested",
            "resources1=VCPU:24&resources2=VCPU:8&group_policy=isolate",
            "None of 2 hosts serves this request. All 2 have less than 24 VCPU free on "
            "one provider for group 1 (20 at most; 40 for one host in all).",
            "ask for 20 VCPU instead of 24 for group 1: 2 hosts serve",
        ),
        (
            "nested",
            "resources1=VCPU:12&resources2=VCPU:12&resources3=VCPU:12"
            "&group_policy=none",
            "None of 2 hosts serves this request. All 2 cannot serve groups 1, 2 and "
            "3 at the same time.",
            "ask for 8 VCPU instead of 12 for group 1: 2 hosts serve",
        ),
        (
            "nested",
            "resources_n=VCPU:1,SRIOV_NET_VF:1",
            "None of 2 hosts serves this request. All 2 have no provider with VCPU and "
            "SRIOV_NET_VF for group _n.",
            "do without VCPU for group _n: 2 hosts serve",
        ),
        (
            "nested",
            "resources1=VCPU:1&required1=CUSTOM_PHYSNET0",
            "None of 2 hosts serves this request. All 2 cannot serve so that one "
            "provider that serves group 1 has CUSTOM_PHYSNET0.",
            "do without CUSTOM_PHYSNET0 for group 1: 2 hosts serve",
        ),
        (
            "nested",
            "resources1=VCPU:1&resources2=SRIOV_NET_VF:1&resources3=DISK_GB:1"
            "&required2=CUSTOM_PHYSNET0&group_policy=isolate&same_subtree=1,3"
            "&same_subtree=1,2&resources4=SRIOV_NET_VF:1",
            "None of 2 hosts serves this request. All 2 cannot give each group a "
            "provider of its own.",
            "let groups share a provider (group_policy=none): 2 hosts serve",
        ),
        (
            "wide",
            "resources1=PGPU:1&resources2=PGPU:1&group_policy=none&same_subtree=1,2",
            "The only host does not serve this request. It cannot serve groups 1 and 2 "
            "from one subtree.",
            "do not ask for groups 1 and 2 in one subtree: 1 host serves",
        ),
        (
            "wide",
            "&".join(f"resources{each}=PGPU:1" for each in range(9))
            + "&group_policy=none",
            "The only host does not serve this request. It cannot serve groups 0, 1, "
            "2, 3 and 5 more at the same time.",
            "do without PGPU for group 0: 1 host serves",
        ),
        (
            "reserved",
            "resources=MEMORY_MB:4096",
            "None of 5 hosts serves this request. All 5 have less than 4096 MEMORY_MB "
            "free on one provider (0 at most; total 4096, reserved 4096, "
            "allocation_ratio 1, used 0).",
            "make room for 4096 MEMORY_MB: 5 hosts serve",
        ),
        (
            "unshared",
            "resources=VCPU:1,DISK_GB:10",
            "None of 12 hosts serves this request. 2 have no VCPU; the 10 others have "
            "no DISK_GB (pool shares DISK_GB, but is in no aggregate with them).",
            "do without DISK_GB: 10 hosts serve",
        ),
        (
            "unshared",
            "resources=VCPU:1,MEMORY_MB:10",
            "None of 12 hosts serves this request. 2 have no VCPU; the 10 others have "
            "no MEMORY_MB (memory is in an aggregate with them, but lacks "
            "MISC_SHARES_VIA_AGGREGATE).",
            "do without MEMORY_MB: 10 hosts serve",
        ),
        (
            # No amount of a class that no host has will do.
            "flat",
            "resources=VCPU:40,PGPU:1",
            "None of 10 hosts serves this request. All 10 have no PGPU.",
            "do without PGPU and ask for 14 VCPU instead of 40: 4 hosts serve",
        ),
        (
            "layered",
            "resources=VCPU:16&required=CUSTOM_A,CUSTOM_B,CUSTOM_C,CUSTOM_D",
            "None of 10 hosts serves this request. The 2 that came furthest have less "
            "than 16 VCPU free on one provider (13 at most). Before, 2 lack CUSTOM_A; "
            "of the 8 others, 2 lack CUSTOM_B; of the 6 others, 2 lack CUSTOM_C; of "
            "the 4 others, 2 lack CUSTOM_D.",
            "ask for 13 VCPU instead of 16: 1 host serves",
        ),
        (
            "cells",
            "resources=PCPU:10",
            "None of 2 hosts serves this request. All 2 have less than 10 PCPU free on "
            "one provider (6 at most; 12 for one host in all; total 16, reserved 4, "
            "allocation_ratio 0.75, used 3).",
            "ask for 6 PCPU instead of 10: 2 hosts serve",
        ),
        (
            "flat",
            "resources=VCPU:1&in_tree=11111111-0000-4000-8000-000000000000",
            "None of 10 hosts serves this request. All 10 belong to another tree than "
            "that of 11111111-0000-4000-8000-000000000000 (no provider has this UUID).",
            "look at all hosts, not only that of 11111111-0000-4000-8000-000000000000: "
            "10 hosts serve",
        ),
        (
            "flat",
            f"resources=VCPU:1&member_of={OTHER_RACK}",
            "None of 10 hosts serves this request. All 10 are outside aggregate "
            f"{OTHER_RACK} (no provider is in it).",
            f"look outside aggregate {OTHER_RACK}: 10 hosts serve",
        ),
        (
            "shared",
            f"resources=VCPU:1&member_of=in:{OTHER_RACK},{NO_RACK}",
            "None of 3 hosts serves this request. 1 has no VCPU; the 2 others are "
            "outside the 2 aggregates that were named (no provider is in any).",
            f"look outside aggregates {OTHER_RACK} and {NO_RACK}: 2 hosts serve",
        ),
    ],
)
def test_the_reason_is_reported_at_once(
    cloud: str, query: str, summary: str, change: str | None
) -> None:
    told = explain(cloud, query)
    assert sentence.summary(told) == summary
    changes = [sentence.change(each) for each in told.changes or ()]
    assert (change in changes) if change else not changes, changes


def test_each_constraint_is_a_sentence() -> None:
    told = explain(
        "nested",
        "root_required=CUSTOM_A,!CUSTOM_B&resources1=VCPU:1&resources2=SRIOV_NET_VF:2"
        f"&member_of1={RACK}&member_of1=!{OTHER_RACK}&required2=in:CUSTOM_C,CUSTOM_D"
        "&required2=!CUSTOM_E&in_tree2=00000000-0000-4000-8000-000000000000"
        "&group_policy=isolate&same_subtree=1,2",
    )
    texts = {each.constraint.id: each.constraint.text() for each in told.figures}
    assert texts == {
        "root_required:CUSTOM_A": "the host itself has CUSTOM_A",
        "root_forbidden:CUSTOM_B": "the host itself does not have CUSTOM_B",
        "inventory1:VCPU": "there is VCPU for group 1",
        f"member_of1:{RACK}": f"what serves group 1 is in aggregate {RACK}",
        f"not_member_of1:{OTHER_RACK}": (
            f"what serves group 1 is not in aggregate {OTHER_RACK}"
        ),
        "unit1:VCPU": "one consumer may have 1 VCPU for group 1",
        "room1:VCPU": "1 VCPU is free on one provider for group 1",
        "inventory2:SRIOV_NET_VF": "there is SRIOV_NET_VF for group 2",
        "in_tree2:host3": "what serves group 2 is in the tree of host3",
        "required2:CUSTOM_C,CUSTOM_D": (
            "one provider that serves group 2 has CUSTOM_C or CUSTOM_D"
        ),
        "forbidden2:CUSTOM_E": "no provider that serves group 2 has CUSTOM_E",
        "unit2:SRIOV_NET_VF": "one consumer may have 2 SRIOV_NET_VF for group 2",
        "room2:SRIOV_NET_VF": "2 SRIOV_NET_VF are free on one provider for group 2",
        "together": "one host serves groups 1 and 2 at the same time",
        "isolate": "each group with a suffix has a provider of its own",
        "same_subtree:1,2": "groups 1 and 2 are served from one subtree",
    }


def test_what_is_left_out_is_not_finished() -> None:
    """The funnel is always given; the rest as far as the time allows."""
    question = report.ExplanationQuery(parsed("resources=VCPU:40"))
    now = iter([0.0, 0.0] + [9.0] * 1000)
    deadline = survey.Deadline(2, clock=lambda: next(now))
    told = report.report(forest.snapshot_of(list(flat())), question, deadline)
    assert not told.complete
    assert (told.serves, told.hosts) == (0, 10)
    assert [(each.before, each.after) for each in told.figures] == [
        (10, 10),
        (10, 0),
        (0, 0),
    ]
    assert [each.gain for each in told.figures] == [10, None, None]


def test_what_one_host_lacks_names_the_provider_within_it() -> None:
    """The other cell has more room, but not the trait."""
    host = node("host")
    cloud = [
        host,
        node("cell0", host, PCPU=Inventory(8, used=2)),
        node("cell1", host, ("CUSTOM_FAST",), PCPU=Inventory(8, used=5)),
    ]
    request = parsed("resources1=PCPU:8&required1=CUSTOM_FAST")
    asked = survey.Survey(forest.snapshot_of(cloud), request)
    verdicts = finding.judge(asked, asked.snapshot.trees[0])
    said = [
        sentence.unmet(verdict)
        for constraint, verdict in verdicts.items()
        if constraint.kind == "room"
    ]
    assert said == [
        "has less than 8 PCPU free on one provider for group 1 "
        "(3 free on cell1: total 8, reserved 0, allocation_ratio 1, used 5)"
    ]
