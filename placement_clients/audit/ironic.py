"""Nodes of Ironic, through openstacksdk.

A node that is used names its instance, which claims the provider with the UUID of the
node.
"""

from collections.abc import Iterator
from typing import Any

from placement_clients.audit.life import Claim, Expected, Living, Source
from placement_clients.audit.sdk import listed

FIELDS = ("uuid", "instance_uuid", "provision_state")
ACTIVE = "active"


class Ironic(Source):
    """The instances of all nodes; it does not judge claims on other hosts.

    :param baremetal: openstacksdk's proxy of the bare metal service
    """

    name = "Ironic"
    can_look = True

    def __init__(self, baremetal: Any) -> None:
        self._baremetal = baremetal
        self._nodes: set[str] = set()

    def living(self) -> Iterator[Living]:
        """Yield the instances of nodes.

        :raises NotAnswered: Ironic does not list them
        """
        for node in listed("Ironic", self._baremetal.nodes, fields=FIELDS):
            self._nodes.add(node.id)
            if node.instance_id:
                yield _living(node)

    def knows(self, claim: Claim) -> bool:
        """Return whether a claim is on a node."""
        return super().knows(claim) and any(
            not self._nodes.isdisjoint(part.place) for part in claim.parts.values()
        )

    def find(self, consumer: str) -> Living | None:
        """Look again for an instance.

        :raises NotAnswered: Ironic does not answer
        """
        nodes = self._baremetal.nodes
        for node in listed("Ironic", nodes, fields=FIELDS, instance_id=consumer):
            return _living(node)
        return None


def _living(node: Any) -> Living:
    settled = node.provision_state == ACTIVE
    return Living(node.instance_id, Expected(node.id) if settled else None)
