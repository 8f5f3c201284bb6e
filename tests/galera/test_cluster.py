"""A service for each node of a cluster: nothing is lost, nothing is given twice."""

import contextlib
import random
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from placement.db import migration
from placement_foundation import option
from placement_foundation.database import storage
from tests import backends
from tests.galera import cluster
from tests.galera.cluster import Node
from tests.stress import crash, room, service
from tests.stress.world import Service, Unanswered

pytestmark = pytest.mark.galera

# The inventory of each provider, and how many seconds claims are made.
TOTAL = 1000
SECONDS = 24
# What a client may be answered while nodes fail.
ANSWERS = {
    "204",
    "409 placement.undefined_code",
    "503 placement.database_unavailable",
    "unanswered",
}


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[Node]]:
    with cluster.running() as nodes:
        database = storage.connect(option.DatabaseSettings(nodes[0].url()))
        migration.SCHEMA.upgrade(database)
        database.engine.dispose()
        yield nodes


@pytest.fixture(scope="module")
def services(
    nodes: list[Node], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[tuple[str, int]]]:
    """Give the addresses and first processes of services, one on each node."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                service.running_as(node.url(), 2, tmp_path_factory.mktemp("service"))
            )
            for node in nodes
        ]


@pytest.fixture(scope="module")
def addresses(services: list[tuple[str, int]]) -> list[str]:
    return [address for address, _ in services]


# The first one: it knows all hosts and all changes only if nothing was there before.
def test_placers_and_the_feed_keep_their_word_through_crashes(
    nodes: list[Node], services: list[tuple[str, int]]
) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)

    def kill_node(chance: random.Random) -> None:
        nodes[2].kill()
        time.sleep(2)
        nodes[2].start()

    def pause_node(chance: random.Random) -> None:
        nodes[1].send(signal.SIGSTOP)
        time.sleep(1)
        nodes[1].send(signal.SIGCONT)

    kills = [crash.kill_worker(master) for _, master in services]
    harms = [kills[0], kill_node, kills[1], pause_node, kills[2]]
    addresses = [address for address, _ in services]
    verdict = crash.run(addresses, harms, seconds=20, seed=seed)
    backends.check_is_left_sound(nodes[0].url())
    assert not verdict.faults, crash.report(verdict)
    answers = ("place", 201), ("claim", 204), ("release", 204), ("contend", 204)
    for kind, status in answers:
        assert verdict.done[kind, status], crash.report(verdict)


class Claimer(threading.Thread):
    """Claims one unit after the other, through any node that answers."""

    def __init__(self, addresses: list[str], providers: list[str]) -> None:
        super().__init__()
        self._services = [Service(address) for address in addresses]
        self._providers = providers
        self.acknowledged: list[str] = []
        self.statuses: Counter[str] = Counter()

    def run(self) -> None:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            self._claim()
        for each in self._services:
            each.close()

    def _claim(self) -> None:
        consumer = str(uuid.uuid4())
        body = {
            "allocations": {
                provider: {"resources": {"VCPU": 1}}
                for provider in random.sample(self._providers, 2)
            },
            "project_id": "galera",
            "user_id": "galera",
            "consumer_generation": None,
            "consumer_type": "TEST",
        }
        try:
            asked = random.choice(self._services)
            status, document = asked.call("PUT", f"/allocations/{consumer}", body)
        except Unanswered:
            self.statuses["unanswered"] += 1
            return
        code = document["errors"][0]["code"] if document else ""
        self.statuses[f"{status} {code}".strip()] += 1
        if status == 204:
            self.acknowledged.append(consumer)


def test_nodes_may_be_killed_and_paused(
    nodes: list[Node], addresses: list[str]
) -> None:
    def harm() -> None:
        time.sleep(SECONDS / 6)
        nodes[2].kill()
        time.sleep(SECONDS / 3)
        nodes[1].send(signal.SIGSTOP)
        time.sleep(1)
        nodes[1].send(signal.SIGCONT)

    statuses = _claim_during(harm, addresses)
    assert statuses["204"] > 50, statuses
    assert set(statuses) <= ANSWERS, statuses
    # Each service answers while its node is away.
    assert statuses["unanswered"] == 0, statuses
    nodes[2].start()


def test_a_node_may_lose_its_cluster_while_it_commits(
    nodes: list[Node], addresses: list[str]
) -> None:
    def harm() -> None:
        time.sleep(SECONDS / 6)
        # The rest is the majority: what the first node commits now can become neither
        # true nor false, until it gives up.
        for node in nodes[1:]:
            node.send(signal.SIGSTOP)
        until = time.monotonic() + SECONDS / 2
        while nodes[0].state():
            assert time.monotonic() < until, "the node noticed nothing"
            time.sleep(0.1)
        time.sleep(1)
        for node in nodes[1:]:
            node.send(signal.SIGCONT)
        for node in nodes:
            node.wait()

    try:
        statuses = _claim_during(harm, addresses[:1])
    finally:
        for node in nodes[1:]:
            node.send(signal.SIGCONT)
    assert statuses["503 placement.database_unavailable"] > 0, statuses
    assert statuses["204"] > 50, statuses
    assert set(statuses) <= ANSWERS, statuses
    assert statuses["unanswered"] == 0, statuses


def _claim_during(harm: Callable[[], None], addresses: list[str]) -> Counter[str]:
    """Claim while nodes are harmed; return the statuses.

    What was acknowledged is there afterwards, and no more is used than there is.
    """
    with contextlib.closing(Service(addresses[0])) as first:
        providers = [str(uuid.uuid4()) for _ in range(3)]
        for provider in providers:
            first.call(
                "POST", "/resource_providers", {"uuid": provider, "name": provider}
            )
            path = f"/resource_providers/{provider}/inventories"
            assert first.call("PUT", path, room.inventory(0, TOTAL))[0] == 200
        claimers = [Claimer(addresses, providers) for _ in range(4)]
        for claimer in claimers:
            claimer.start()
        try:
            harm()
        finally:
            for claimer in claimers:
                claimer.join()
        held: Counter[str] = Counter()
        for claimer in claimers:
            for consumer in claimer.acknowledged:
                answer = first.get(f"/allocations/{consumer}")
                assert answer["allocations"], (
                    f"{consumer} was acknowledged, and is gone"
                )
                held.update(answer["allocations"].keys())
        for provider in providers:
            usages = first.get(f"/resource_providers/{provider}/usages")["usages"]
            assert held[provider] <= usages["VCPU"] <= TOTAL
    return sum((claimer.statuses for claimer in claimers), Counter[str]())
