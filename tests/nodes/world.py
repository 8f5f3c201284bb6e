"""A node service and Placement behind sockets, and the agent between them."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from placement_clients import access
from placement_clients.client import Client
from placement_clients.record import INVENTORIES, TRAITS, Inventory
from placement_nodes.sync import memory
from placement_nodes.sync.agent import Agent, Caution, Tally
from placement_nodes.sync.bare_metal import BareMetal
from tests.nodes.caller import Caller
from tests.serving import Served

GOLD = "CUSTOM_BAREMETAL_GOLD"


@dataclasses.dataclass(slots=True)
class World:
    """A node service and Placement, and the agent between them."""

    nodes: Caller
    nodes_service: Served
    service: Served
    placement: Client
    state: Path
    said: list[str] = dataclasses.field(default_factory=list)

    def bare_metal(self) -> BareMetal:
        return BareMetal(access.from_environment({}, url=self.nodes_service.url))

    @contextmanager
    def agent(
        self, nodes: type[BareMetal] = BareMetal, url: str | None = None, **how: Any
    ) -> Iterator[Agent]:
        """Give an agent, as one of several processes that follow each other.

        :param nodes: the class of its client of the node service
        :param url: another way to Placement
        """

        def reach(place: str) -> access.Access:
            return access.from_environment({}, url=place, token="admin")

        reader = nodes(reach(self.nodes_service.url))
        way = reach(url or self.service.url)
        placement = Client(way, pause=lambda seconds: None)
        with memory.opened(self.state) as remembered:
            options = {"say": self.said.append, **how}
            yield Agent(reader, placement, remembered, **options)

    def run(
        self,
        node: str | None = None,
        *,
        dry: bool = False,
        url: str | None = None,
        parallel: int = 1,
    ) -> Tally:
        """Make a pass.

        An operator expects that nodes are missing, and the list says so twice.
        """
        self.service.calls.clear()
        self.said.clear()
        caution = Caution(few=100, expected=True)
        with self.agent(url=url, parallel=parallel, dry=dry, caution=caution) as agent:
            if node:
                return agent.synchronise_one(node)
            tally = agent.synchronise_all()
            return agent.synchronise_all() if tally.held and not dry else tally

    def enrol(self, name: str, *traits: str, **about: Any) -> str:
        """Enrol a node that can be allocated."""
        uuid = self.nodes.enrol(
            name, *traits, **{"resource_class": "baremetal.gold", **about}
        )
        self.nodes.provision(name, "manage", "provide")
        return uuid

    def generation(self, uuid: str) -> int:
        return self.placement.get_provider(uuid).generation

    def traits(self, uuid: str) -> set[str]:
        return set(self.placement.get_part(uuid, TRAITS).value)

    def inventories(self, uuid: str) -> dict[str, Inventory]:
        return self.placement.get_part(uuid, INVENTORIES).value

    def writes(self) -> list[str]:
        return [line for line in self.service.lines if not line.startswith("GET")]

    def candidates(self, query: str) -> set[str]:
        found = self.placement.list_candidates(query).found
        return {uuid for each in found for uuid in each.allocations}

    def claim(self, uuid: str, consumer: str) -> None:
        """Allocate the node of a provider to a consumer."""
        found = self.placement.list_candidates(f"resources={GOLD}:1").found
        [candidate] = [each for each in found if uuid in each.allocations]
        body = {"allocations": candidate.allocations, "consumer_generation": None}
        body |= {"project_id": "p", "user_id": "u"}
        self.placement.put(f"/allocations/{consumer}", body, version="1.36")


def gold(reserved: int = 0) -> dict[str, Inventory]:
    return {GOLD: Inventory(total=1, reserved=reserved, max_unit=1)}
