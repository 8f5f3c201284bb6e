"""The example in ``docs/candidate-search.rst`` is true: what is found, and the work."""

from placement.model.inventory import InventoryUsage
from placement.model.request import Group, Request
from placement.model.tree import Tree, snapshot_of
from tests.unit.clouds import NUMA, Stocks, ask, tree

GPU = {"VGPU": InventoryUsage(1)}
NIC = {"VF": InventoryUsage(4)}


def host(name: str, first: int, second: int) -> Tree:
    """Return a host with two NUMA nodes that have some GPUs and a NIC each."""
    nodes = [f"{name}-numa{number}" for number in range(2)]
    parents = dict.fromkeys(nodes, name)
    inventories: dict[str, Stocks] = {}
    for node, nic, gpus in zip(nodes, ("nic0", "nic1"), (first, second), strict=True):
        done = sum("gpu" in device for device in inventories)
        devices = [*(f"gpu{n}" for n in range(done, done + gpus)), nic]
        for device in devices:
            parents[f"{name}-{device}"] = node
            inventories[f"{name}-{device}"] = NIC if device == nic else GPU
    return tree(name, parents, inventories, dict.fromkeys(nodes, NUMA))


def gpu(suffix: str) -> Group:
    return Group(suffix, {"VGPU": 1})


def node(suffix: str) -> Group:
    return Group(suffix, required=(NUMA,))


def request(groups: list[Group], *subtrees: str) -> Request:
    return Request(
        tuple(groups),
        isolate=True,
        same_subtree=tuple(frozenset(names.split(",")) for names in subtrees),
    )


FOUR = [gpu("_A"), Group("_B", {"VF": 2}), node("_N"), gpu("_C")]
NEAR = "_A,_B,_N"


def test_the_first_candidate_takes_a_pick_for_each_group() -> None:
    cloud = snapshot_of([host("host", 2, 1)])
    (found,), tally = ask(cloud, request(FOUR, NEAR), limit=1)
    assert [provider.uuid.removeprefix("host-") for provider in found.providers] == [
        "gpu0",
        "nic0",
        "numa0",
        "gpu1",
    ]
    assert tally.picks == 4


def test_all_candidates_take_no_proof() -> None:
    cloud = snapshot_of([host("host", 2, 1)])
    found, tally = ask(cloud, request(FOUR, NEAR))
    assert (len(found), tally.picks, tally.proofs) == (6, 13, 0)
    found, tally = ask(cloud, request([*FOUR, gpu("_D")], NEAR))
    assert (len(found), tally.proofs) == (6, 0)


def test_a_claim_too_much_is_seen_without_a_pick() -> None:
    cloud = snapshot_of([host("host", 2, 0)])
    found, tally = ask(cloud, request([*FOUR, gpu("_D")], NEAR))
    assert (len(found), tally.picks) == (0, 0)


def test_a_hundred_hosts_take_no_more_work_than_one() -> None:
    groups = [gpu("_A1"), gpu("_A2"), node("_N"), gpu("_B1"), gpu("_B2"), node("_M")]
    asked = request(groups, "_A1,_A2,_N", "_B1,_B2,_M")
    for count in (1, 100):
        cloud = snapshot_of(host(f"host{n}", 4, 0) for n in range(count))
        found, tally = ask(cloud, asked)
        assert (len(found), tally.picks, tally.proofs) == (0, 8, 1)
