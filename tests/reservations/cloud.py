"""A small cloud for tests: Placement in the process, a clock that is set by hand.

All calls between the reservation service and Placement go through ``Wire``, which can
be cut, slowed down, or tapped.
"""

import dataclasses
import datetime
import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
import webob
from keystoneauth1 import exceptions as keystone

from placement_clients.access import Access
from placement_clients.client import Client
from placement_foundation.database.storage import Database
from placement_reservations import clock, state
from placement_reservations.capacity import Interval, Size
from placement_reservations.compute.placement import PlacementCompute
from placement_reservations.db import models
from placement_reservations.lifecycle import (
    activation,
    creation,
    notice,
    recovery,
    registration,
    turn,
)
from placement_reservations.store import allocation as allocations
from placement_reservations.store import claim as claims
from placement_reservations.store import flavor as flavors
from placement_reservations.store import host as hosts
from placement_reservations.store import lease as leases
from placement_reservations.store.host import Host
from placement_reservations.store.lease import Lease, Wish
from placement_reservations.world import Rules, World
from tests.client import Client as Administrator

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

POOL = "7f1f1a0e-0c55-4a36-93d3-2b8a3c9e6d11"
NOON = datetime.datetime(2030, 3, 4, 12, 0, 20)
TODAY = NOON.replace(second=0)
HOUR = datetime.timedelta(hours=1)
DAY = 24 * HOUR
SMALL = Size(1, 512, 5)
RULES = Rules()
# What the start, the end and the reservations of a lease may be in each of its states.
SETTLED: dict[state.LeaseStatus, tuple[set[str], set[str], set[str]]] = {
    state.LeaseStatus.PENDING: ({"UNDONE"}, {"UNDONE"}, {"pending"}),
    state.LeaseStatus.ACTIVE: ({"DONE"}, {"UNDONE"}, {"active"}),
    # One that never started ends, too.
    state.LeaseStatus.TERMINATED: ({"DONE", "ERROR"}, {"DONE"}, {"deleted"}),
    state.LeaseStatus.ERROR: ({"DONE", "ERROR"}, {"UNDONE", "ERROR"}, {"error"}),
}


class Clock(clock.Clock):
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> datetime.datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += datetime.timedelta(seconds=seconds)

    def advance(self, time: datetime.timedelta) -> None:
        self.time += time


class Killed(BaseException):
    """The process ends here, without any cleanup."""


@dataclasses.dataclass
class Response:
    """An application's answer, in the form that a session returns."""

    status_code: int
    headers: Any
    content: bytes
    url: str

    @property
    def text(self) -> str:
        return self.content.decode()

    @property
    def reason(self) -> str:
        return str(self.status_code)

    def json(self) -> Any:
        return json.loads(self.content)


class Answered(Exception):
    """Placement answers with a status; or a proxy, with a page or nothing at all."""

    def __init__(self, status: int, content: bytes = b"") -> None:
        super().__init__(status)
        self.status = status
        self.content = content


def refusal(status: int) -> Answered:
    """Return an answer of Placement itself."""
    error = {"status": status, "title": "Refused", "detail": "It is not possible."}
    return Answered(status, _dump({"errors": [error]}))


class Wire:
    """The way to an application. ``before`` and ``after`` see every call."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application
        self.calls: list[str] = []
        self.request_ids: set[str | None] = set()
        self.versions: set[str] = set()
        self.before: Callable[[str], None] = lambda call: None
        self.after: Callable[[str], None] = lambda call: None

    def request(
        self,
        url: str,
        method: str,
        *,
        microversion: str,
        global_request_id: str | None = None,
        json: Any = None,
        **unused: Any,
    ) -> Response:
        call = f"{method} {url}"
        headers = {"OpenStack-API-Version": f"placement {microversion}"}
        if global_request_id:
            headers["X-OpenStack-Request-ID"] = global_request_id
        try:
            return self._request(call, url, method, headers, json)
        except Answered as answered:
            return Response(answered.status, {}, answered.content, url)

    def _request(
        self, call: str, url: str, method: str, headers: Any, json: Any
    ) -> Response:
        self.before(call)
        self.calls.append(call)
        self.request_ids.add(headers.get("X-OpenStack-Request-ID"))
        self.versions.add(headers["OpenStack-API-Version"])
        request = webob.Request.blank(url, method=method)
        request.headers.update({**headers, "x-auth-token": "admin"})
        if json is not None:
            request.content_type = "application/json"
            request.body = _dump(json)
        answer = request.get_response(self._application)
        self.after(call)
        return Response(answer.status_int, answer.headers, answer.body, url)

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Let no call through."""

        def refuse(call: str) -> None:
            raise keystone.ConnectFailure(f"cannot connect for {call}")

        self.before, before = refuse, self.before
        try:
            yield
        finally:
            self.before = before


def _dump(document: Any) -> bytes:
    return json.dumps(document).encode()


@dataclasses.dataclass
class Cloud:
    """Placement with some hosts, and the reservation service on top of it."""

    world: World
    wire: Wire
    clock: Clock
    placement: Administrator
    hosts: dict[str, str] = dataclasses.field(default_factory=dict)

    # Placement

    def make_host(self, name: str, vcpus: int = 8, **other: int) -> str:
        root = new_uuid()
        self.hosts[name] = root
        body = {"uuid": root, "name": name}
        assert self.placement.call("POST", "/resource_providers", body).status == 200
        self.give(
            name,
            VCPU=vcpus,
            MEMORY_MB=other.get("memory_mb", 8192),
            DISK_GB=other.get("disk_gb", 100),
        )
        return root

    def give(self, name: str, **totals: int) -> None:
        root = self.hosts[name]
        body = {
            "resource_provider_generation": self.placement.generation(root),
            "inventories": {key: {"total": total} for key, total in totals.items()},
        }
        path = f"/resource_providers/{root}/inventories"
        assert self.placement.call("PUT", path, body).status == 200

    def change_inventory(self, name: str, resource_class: str, **members: Any) -> None:
        """Change some members of an inventory of a host."""
        path = f"/resource_providers/{self.hosts[name]}/inventories"
        known = self.placement.get(path)
        known["inventories"][resource_class].update(members)
        assert self.placement.call("PUT", path, known).status == 200

    def children(self) -> dict[str, str]:
        """Return all reservation providers: UUIDs by name."""
        found = self.placement.get("/resource_providers")["resource_providers"]
        return {
            each["name"]: each["uuid"]
            for each in found
            if each["parent_provider_uuid"] is not None
        }

    def inventories(self) -> dict[str, dict[str, int]]:
        """Return the totals of reservation classes, by class, by host."""
        found: dict[str, dict[str, int]] = {}
        for name, child in sorted(self.children().items()):
            path = f"/resource_providers/{child}/inventories"
            for key, inventory in self.placement.get(path)["inventories"].items():
                assert inventory["max_unit"] == 1, inventory
                there = found.setdefault(key, {})
                there[name.removeprefix("blazar_")] = inventory["total"]
        return found

    def inventories_of(self, host: str) -> dict[str, int]:
        """Return the totals of the reservation provider of a host, by class."""
        found = self.whole_inventories_of(host)
        return {key: inventory["total"] for key, inventory in found.items()}

    def whole_inventories_of(self, host: str) -> dict[str, dict[str, Any]]:
        """Return the inventories of the reservation provider of a host, by class."""
        path = f"/resource_providers/{self.children()[f'blazar_{host}']}/inventories"
        found: dict[str, dict[str, Any]] = self.placement.get(path)["inventories"]
        return found

    def classes(self) -> set[str]:
        names = self.placement.get("/resource_classes")["resource_classes"]
        return {
            each["name"]
            for each in names
            if each["name"].startswith("CUSTOM_RESERVATION_")
        }

    def remove_slots(self) -> None:
        """Delete by hand all reservation providers, and the classes of reservations."""
        for child in self.children().values():
            path = f"/resource_providers/{child}"
            assert self.placement.call("DELETE", path).status == 204
        for name in self.classes():
            path = f"/resource_classes/{name}"
            assert self.placement.call("DELETE", path).status == 204

    def pool(self) -> set[str]:
        found = self.placement.get(f"/resource_providers?member_of={POOL}")
        return {each["name"] for each in found["resource_providers"]}

    def boot(self, lease_id: str, size: Size = SMALL) -> str | None:
        """Claim a slot of the first reservation of a lease; None if there is none."""
        reservation = self.lease(lease_id).reservations[0]
        query = (
            f"resources=VCPU:{size.vcpus},MEMORY_MB:{size.memory_mb},"
            f"DISK_GB:{size.disk_gb},{reservation.resource_class}:1"
        )
        return self.placement.boot(query)

    # The reservation service

    def register(self, *names: str, **capabilities: str) -> None:
        for name in names:
            registration.add(self.world, name, capabilities)

    def change_capability(self, name: str, **capabilities: str) -> None:
        registration.describe(self.world, self.host_id(name), capabilities)

    def host(self, name: str) -> Host:
        return self.world.database.read(
            lambda connection: hosts.get_by_name(connection, name)
        )

    def host_id(self, name: str) -> str:
        return str(self.host(name).id)

    def order(
        self,
        amount: int = 1,
        affinity: bool | None = None,
        *,
        size: Size = SMALL,
        start: datetime.datetime = TODAY + DAY,
        hours: float = 2,
        properties: str = "",
        wishes: list[Wish] | None = None,
        name: str = "lease",
    ) -> str:
        interval = Interval(start, start + hours * HOUR)
        lease = creation.draft(
            name,
            "ann",
            "blue",
            interval,
            wishes or [Wish(*size.amounts(), amount, affinity, properties)],
        )
        before_end = notice.by_default(self.world, interval)
        creation.create(self.world, lease, before_end)
        return lease.id

    def turn(self, *, advance: datetime.timedelta = datetime.timedelta()) -> None:
        """Let the event loop take a turn in which it checks the hosts."""
        self.clock.advance(advance)
        self.world.database.write(
            lambda connection: connection.execute(
                sa.delete(models.Claim).where(models.Claim.operation == claims.WATCH)
            )
        )
        turn.Loop(self.world).turn()

    def run_due(self, *, advance: datetime.timedelta = datetime.timedelta()) -> None:
        """Let the event loop take an ordinary turn."""
        self.clock.advance(advance)
        recovery.recover(self.world)
        turn.run_due(self.world)

    def lease(self, lease_id: str) -> Lease:
        return self.world.database.read(
            lambda connection: leases.get(connection, lease_id)
        )

    def status(self, lease_id: str) -> state.LeaseStatus:
        return self.lease(lease_id).status

    def events(self, lease_id: str) -> dict[str, str]:
        return {each.event_type: each.status for each in self.lease(lease_id).events}

    def slots(self, lease_id: str) -> list[int]:
        """Return the ids of the hosts of a lease's slots, one for each slot."""
        found = self.world.database.read(
            lambda connection: allocations.list_slots(connection, lease_id=lease_id)
        )
        return [slot.host_id for slot in found]

    def flavors(self, project: str) -> list[str]:
        """Return the ids of the flavors to which a project has access."""
        found = self.world.database.read(
            lambda connection: flavors.list_flavors(connection, project)
        )
        return [flavor.id for flavor in found]

    def count_slots(self) -> int:
        return len(self.world.database.read(allocations.list_slots))

    def assert_consistent(self) -> None:
        """Check that Placement has exactly what the tables say.

        The states of the parts of each lease must also be those that belong to its own.
        """
        classes: set[str] = set()
        unknown: set[str] = set()
        inventories: dict[str, dict[str, int]] = {}
        for lease in self.world.database.read(leases.list_leases):
            assert_settled(lease)
            slots = self.slots_by_name(lease)
            for each in lease.reservations:
                if each.status == state.ReservationStatus.DELETED:
                    continue
                classes.add(each.resource_class)
                if each.status == state.ReservationStatus.ERROR:
                    # Whatever existed when it failed stays until the lease ends.
                    unknown.add(each.resource_class)
                if each.status == state.ReservationStatus.ACTIVE:
                    inventories[each.resource_class] = slots[each.id]
        assert self.classes() == classes
        found = self.inventories()
        assert {key: found[key] for key in found if key not in unknown} == inventories

    def slots_by_name(self, lease: Lease) -> dict[str, dict[str, int]]:
        def work(connection: sa.Connection) -> dict[str, dict[str, int]]:
            return {
                each.id: activation.count_by_name(connection, each.id)
                for each in lease.reservations
            }

        return self.world.database.read(work)


def assert_settled(lease: Lease) -> None:
    """Check that no operation is in progress on a lease, and none was left halfway."""
    assert lease.status in SETTLED, lease
    starts, ends, reservations = SETTLED[lease.status]
    statuses = {each.event_type: each.status for each in lease.events}
    assert statuses[state.EventType.START] in starts, lease
    assert statuses[state.EventType.END] in ends, lease
    assert {each.status for each in lease.reservations} <= reservations, lease


def new_uuid() -> str:
    return str(uuid.uuid4())


def make_cloud(
    application: "WSGIApplication", database: Database, rules: Rules = RULES
) -> Cloud:
    """Return a cloud without hosts."""
    wire = Wire(application)
    clock = Clock()
    client = Client(Access(wire), pause=lambda seconds: None)  # type: ignore[arg-type]
    compute = PlacementCompute(database, client, POOL)
    world = World(database, client, compute, clock, rules)
    return Cloud(world, wire, clock, Administrator(application))
