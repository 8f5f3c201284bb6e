"""The measured requests, and their clouds."""

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

from benchmarks.cloud import uuid_of

CANDIDATES = "/allocation_candidates"
SMALL = "resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20"


@dataclasses.dataclass(frozen=True)
class Question:
    """A repeated request, and its cloud: a kind and a number of hosts."""

    name: str
    kind: str
    hosts: int
    path: str
    method: str = "GET"

    def requests(self, way: str) -> Iterator[tuple[str, Any]]:
        """Yield the path and the body of each request, endlessly.

        :param way: how the service is reached
        """
        yield from itertools.repeat((self.path, None))


@dataclasses.dataclass(frozen=True)
class Claim(Question):
    """A claim by a new consumer each time, on one host after the other."""

    def requests(self, way: str) -> Iterator[tuple[str, Any]]:
        """Yield the path of each consumer, and its claim."""
        for number in itertools.count():
            provider = uuid_of(f"host{number % self.hosts}")
            yield (
                f"{self.path}/{uuid_of(f'{way} {number}')}",
                {
                    "allocations": {
                        provider: {"resources": {"VCPU": 1, "MEMORY_MB": 1}}
                    },
                    "project_id": "project",
                    "user_id": "user",
                    "consumer_generation": None,
                    "consumer_type": "INSTANCE",
                },
            )


def _gpus(groups: int) -> str:
    each = "&".join(f"resources{number}=PGPU:1" for number in range(1, groups + 1))
    return f"{CANDIDATES}?{each}&group_policy=isolate"


NUMA = (
    f"{CANDIDATES}?resources=DISK_GB:20&resources_C=VCPU:2,MEMORY_MB:4096"
    "&resources_N=SRIOV_NET_VF:1&required_N=CUSTOM_PHYSNET0"
    "&required_T=HW_NUMA_ROOT&same_subtree=_C,_N,_T&group_policy=none"
)
HOST = f"/resource_providers/{uuid_of('host0')}"


def questions(scale: float = 1) -> list[Question]:
    """Return the questions, about clouds that are ``scale`` times as large."""

    def hosts(count: int) -> int:
        return max(int(count * scale), 1)

    few, many, some = hosts(1_000), hosts(10_000), hosts(200)
    small, flat = f"{CANDIDATES}?{SMALL}", f"candidates, {few} flat hosts"
    zone = uuid_of("zone1")
    return [
        Question(f"{flat}, limit=1", "flat", few, f"{small}&limit=1"),
        Question(f"{flat}, limit=1000", "flat", few, f"{small}&limit=1000"),
        Question(
            f"{flat}, one rack by its trait",
            "flat",
            few,
            f"{small}&required=CUSTOM_RACK0&limit=1000",
        ),
        Question(
            f"{flat}, one of three zones",
            "flat",
            few,
            f"{small}&member_of={zone}&limit=1000",
        ),
        Question(
            f"{flat}, nothing fits",
            "flat",
            few,
            f"{CANDIDATES}?resources=VCPU:60&limit=1000",
        ),
        Question(
            f"candidates, {many} flat hosts, limit=10",
            "flat",
            many,
            f"{small}&limit=10",
        ),
        Question(
            f"candidates, {many} flat hosts, limit=1000",
            "flat",
            many,
            f"{small}&limit=1000",
        ),
        Question(
            f"candidates, {few} hosts with shared disks, limit=1000",
            "shared",
            few,
            f"{small}&limit=1000",
        ),
        Question(
            f"NUMA + VF with same_subtree, {few} nested hosts, limit=100",
            "nested",
            few,
            f"{NUMA}&limit=100",
        ),
        *(
            Question(
                f"{groups} of 8 GPUs in {groups} groups, {some} hosts, limit=100",
                "wide",
                some,
                f"{_gpus(groups)}&limit=100",
            )
            for groups in (2, 8, 9)
        ),
        Question(
            f"candidates, {many} flat hosts, nothing fits",
            "flat",
            many,
            f"{CANDIDATES}?resources=VCPU:60&limit=1000",
        ),
        Question(
            f"candidates, {hosts(100_000)} flat hosts, limit=10",
            "flat",
            hosts(100_000),
            f"{small}&limit=10",
        ),
        Question(
            f"candidates, {few} nested hosts, no suffix, limit=1000",
            "nested",
            few,
            f"{CANDIDATES}?resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20&limit=1000",
        ),
        Question(
            f"candidates, {many} hosts with a trait of their own, limit=10",
            "own",
            many,
            f"{small}&limit=10",
        ),
        Question(f"all {few} resource providers", "flat", few, "/resource_providers"),
        Question(
            f"usages of a project with {4 * few} consumers",
            "flat",
            few,
            "/usages?project_id=project",
        ),
        *(
            Question(f"{name} of a host", "flat", few, f"{HOST}/{name}")
            for name in ("inventories", "traits", "aggregates", "usages", "allocations")
        ),
        Question("a host by itself", "flat", few, HOST),
        Question(
            f"one of {many} hosts by its name",
            "flat",
            many,
            "/resource_providers?name=host0",
        ),
        Question(
            f"one of {few} nested hosts, all its tree",
            "nested",
            few,
            f"/resource_providers?in_tree={uuid_of('host0')}",
        ),
        Claim("claim by a new consumer", "flat", few, "/allocations", method="PUT"),
    ]
