"""Servers and migrations of Nova, through openstacksdk.

A consumer is a server or, on the host that it leaves, a migration. A server that is
being built, moved or removed may have claims or none, on one host or two.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from placement_clients.audit.life import UNKNOWN, Expected, Living, Source
from placement_clients.audit.sdk import find, listed

# Nova itself calls migrations of other states "in progress".
OVER = frozenset(
    ("cancelled", "completed", "confirmed", "done", "error", "failed", "reverted")
)
# An evacuated server claims on both hosts until the one that it has left is back.
LEFT_BEHIND = ("evacuation", "done")
SETTLED = frozenset(
    ("ACTIVE", "PAUSED", "RESCUE", "SHELVED", "SHUTOFF", "SUSPENDED", "PASSWORD")
)
GONE = "DELETED"
ISOLATED = ("hw:emulator_threads_policy", "isolate")


class Nova(Source):
    """All servers of all projects, and their migrations.

    :param compute: openstacksdk's proxy of the compute service
    """

    name = "Nova"
    can_look = True
    types = frozenset(("INSTANCE", "MIGRATION", UNKNOWN))

    def __init__(self, compute: Any) -> None:
        self._compute = compute
        self._moving: set[str] = set()

    def living(self) -> Iterator[Living]:
        """Yield migrations in progress and servers.

        :raises NotAnswered: Nova does not list them
        """
        # Before the servers, whose states show migrations that begin later.
        self._moving = set()
        for migration in listed("Nova", self._compute.migrations):
            yield from self._see(migration)
        for server in listed("Nova", self._compute.servers, all_projects=True):
            if living := self._living(server):
                yield living

    def find(self, consumer: str) -> Living | None:
        """Look again for a server, which may be one that lists leave out.

        :raises NotAnswered: Nova does not answer
        """
        server = find("Nova", self._compute.get_server, consumer)
        return None if server is None else self._living(server)

    def _see(self, migration: Any) -> Iterator[Living]:
        state = (migration.status or "").lower()
        left_behind = (migration.migration_type, state) == LEFT_BEHIND
        if state in OVER and not left_behind:
            return
        if migration.server_id:
            self._moving.add(migration.server_id)
        if migration.uuid:
            yield Living(migration.uuid)

    def _living(self, server: Any) -> Living | None:
        if server.status == GONE:
            return None
        host = server.hypervisor_hostname
        is_moving = server.id in self._moving or server.task_state
        if is_moving or server.status not in SETTLED or not host:
            return Living(server.id)
        return Living(server.id, Expected(host, resources_of(server.flavor), False))


def resources_of(flavor: Any) -> dict[str, int]:
    """Return the amounts that are certain for a flavor.

    Disks depend on volumes, and extra specs may replace any amount.
    """
    specs: Mapping[str, str] = (flavor and flavor.extra_specs) or {}
    replaced = {
        name.rpartition(":")[2] for name in specs if name.startswith("resources")
    }
    amounts = {}
    if flavor and flavor.ram and "MEMORY_MB" not in replaced:
        amounts["MEMORY_MB"] = flavor.ram
    is_sure = not replaced & {"VCPU", "PCPU"} and ISOLATED not in specs.items()
    if flavor and flavor.vcpus and is_sure:
        amounts["VCPU+PCPU"] = flavor.vcpus
    return amounts
