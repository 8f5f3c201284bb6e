"""Hosts whose capacity can be reserved, and the capabilities set by operators."""

import dataclasses
import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement_foundation import errors
from placement_foundation.database import sequence
from placement_reservations.capacity import NO_LIMITS, Limits, Size, Unit
from placement_reservations.db import models
from placement_reservations.store import row

LARGEST_ID = 0x7FFFFFFF
ID = re.compile("[1-9][0-9]{0,9}")


@dataclasses.dataclass(frozen=True, slots=True)
class Details:
    """A host as the compute service describes it.

    ``available`` means that instances can be started there. ``limits`` are those of
    Placement on the part that can be promised.
    """

    name: str
    size: Size
    available: bool = True
    service_name: str = ""
    cpu_info: str = "{}"
    hypervisor_type: str = "QEMU"
    hypervisor_version: int = 1
    availability_zone: str = ""
    limits: Limits = NO_LIMITS


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A host; slots on it are promised as long as it is reservable."""

    id: int
    details: Details
    capabilities: Mapping[str, str]
    created_at: datetime.datetime
    updated_at: datetime.datetime | None

    @property
    def name(self) -> str:
        """Return its name in all other services."""
        return self.details.name

    @property
    def reservable(self) -> bool:
        """Return whether slots on it may be promised."""
        return self.details.available

    @property
    def size(self) -> Size:
        """Return its capacity."""
        return self.details.size

    @property
    def limits(self) -> Limits:
        """Return its limits on slots."""
        return self.details.limits

    @property
    def room(self) -> Size:
        """Return the part of its capacity that can be promised."""
        return (self.size - self.limits.used).largest(Size())

    def room_for(self, size: Size) -> Size:
        """Return the part that can be promised in slots of a size; it may be none."""
        return Size() if self.limits.list_refused(size) else self.room

    @property
    def columns(self) -> dict[str, object]:
        """Return the properties that requirements may name for every host."""
        return {name: read(self) for name, read in COLUMNS.items()}

    @property
    def properties(self) -> dict[str, object]:
        """Return all properties that requirements may name for this host."""
        return {**self.columns, **self.capabilities}


# The properties of every host, and where to read them.
COLUMNS: Mapping[str, Callable[[Host], object]] = {
    "id": lambda host: host.id,
    "hypervisor_hostname": lambda host: host.name,
    "service_name": lambda host: host.details.service_name,
    "vcpus": lambda host: host.size.vcpus,
    "memory_mb": lambda host: host.size.memory_mb,
    "local_gb": lambda host: host.size.disk_gb,
    "cpu_info": lambda host: host.details.cpu_info,
    "hypervisor_type": lambda host: host.details.hypervisor_type,
    "hypervisor_version": lambda host: host.details.hypervisor_version,
    "availability_zone": lambda host: host.details.availability_zone,
}
# Names that no capability may have: the other members of a host, and "name", which
# selects the host to add.
RESERVED = {
    *COLUMNS,
    "name",
    "status",
    "reservable",
    "trust_id",
    "created_at",
    "updated_at",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Property:
    """A capability that some hosts have, and its values there."""

    name: str
    private: bool
    values: Sequence[str]


def list_hosts(connection: sa.Connection) -> list[Host]:
    """Return all hosts, oldest first."""
    return _load(connection, sa.select(models.ComputeHost))


def lock_hosts(connection: sa.Connection) -> list[Host]:
    """Return all hosts, locking their slots until the transaction ends."""
    return _load(connection, sa.select(models.ComputeHost).with_for_update())


def is_id(identifier: str) -> bool:
    """Return whether a host can have an id: a decimal number without zeros first."""
    return bool(ID.fullmatch(identifier)) and int(identifier) <= LARGEST_ID


def get(connection: sa.Connection, identifier: str) -> Host:
    """Return the host with an id.

    :raises NotFound: there is no such host
    """
    if is_id(identifier):
        number = int(identifier)
        query = sa.select(models.ComputeHost).where(models.ComputeHost.id == number)
        for host in _load(connection, query):
            return host
    raise errors.NotFound(f"Object with {{'host_id': '{identifier}'}} not found")


def find_by_name(connection: sa.Connection, name: str) -> Host | None:
    """Return the host with a name, if there is one."""
    query = sa.select(models.ComputeHost)
    query = query.where(models.ComputeHost.hypervisor_hostname == name)
    return next(iter(_load(connection, query)), None)


def get_by_name(connection: sa.Connection, name: str) -> Host:
    """Return the host with a name, which is expected to exist.

    :raises NotFound: it has been removed meanwhile
    """
    host = find_by_name(connection, name)
    if host is None:
        raise errors.NotFound(f"Host '{name}' not found!")
    return host


def subject(name: str) -> str:
    """Return the subject of a claim on a host."""
    return f"host:{name}"


def names_by_id(connection: sa.Connection) -> dict[int, str]:
    """Return the names of all hosts, keyed by id."""
    query = sa.select(models.ComputeHost.id, models.ComputeHost.hypervisor_hostname)
    return {row.id: row.hypervisor_hostname for row in connection.execute(query)}


def _load_details(each: row.Row) -> Details:
    return row.load(
        Details,
        each,
        name=each["hypervisor_hostname"],
        size=Size(each["vcpus"], each["memory_mb"], each["local_gb"]),
        available=each["reservable"],
        limits=_limits(each["limits"]),
    )


def _load(connection: sa.Connection, query: sa.Select[Any]) -> list[Host]:
    rows = connection.execute(query.order_by(models.ComputeHost.id)).mappings().all()
    # Not the ids themselves: a statement takes a limited number of parameters.
    ids = query.with_only_columns(models.ComputeHost.id)
    capabilities = _capabilities(connection, ids)
    return [
        row.load(
            Host,
            each,
            details=_load_details(each),
            capabilities=capabilities.get(each["id"], {}),
        )
        for each in rows
    ]


def _capabilities(
    connection: sa.Connection, host_ids: sa.Select[int]
) -> dict[int, dict[str, str]]:
    capabilities: dict[int, dict[str, str]] = {}
    table = models.ExtraCapability
    query = sa.select(table.computehost_id, table.name, table.value)
    query = query.where(table.computehost_id.in_(host_ids)).order_by(table.name)
    for host_id, name, value in connection.execute(query):
        capabilities.setdefault(host_id, {})[name] = value
    return capabilities


def insert(
    connection: sa.Connection, details: Details, capabilities: Mapping[str, str]
) -> None:
    """Store a new host."""
    new = {"hypervisor_hostname": details.name, **_values(details)}
    row.insert(connection, models.ComputeHost, **new)
    host = get_by_name(connection, details.name)
    set_capabilities(connection, host.id, capabilities)


def number_after(connection: sa.Connection) -> None:
    """Let the ids of new hosts follow those that were stored with their ids."""
    sequence.count_on(connection, [models.Base.metadata.tables["computehosts"]])


def _values(details: Details) -> dict[str, object]:
    return row.columns(
        models.ComputeHost,
        details,
        service_name=details.service_name or details.name,
        vcpus=details.size.vcpus,
        memory_mb=details.size.memory_mb,
        local_gb=details.size.disk_gb,
        reservable=details.available,
        limits=json.dumps(dataclasses.astuple(details.limits)),
    )


def _limits(document: str | None) -> Limits:
    if document is None:
        return NO_LIMITS
    units, used = json.loads(document)
    return Limits(tuple(Unit(*unit) for unit in units), Size(*used))


def update(connection: sa.Connection, host_id: int, details: Details) -> None:
    """Store the current details of a host in the compute service."""
    _update(connection, host_id, **_values(details))


def set_reservable(connection: sa.Connection, host_id: int, reservable: bool) -> None:
    """Store whether slots on a host may be promised."""
    _update(connection, host_id, reservable=reservable)


def _update(connection: sa.Connection, host_id: int, **values: object) -> None:
    table = models.ComputeHost
    connection.execute(sa.update(table).where(table.id == host_id).values(values))


def set_capabilities(
    connection: sa.Connection, host_id: int, capabilities: Mapping[str, str | None]
) -> None:
    """Store capabilities of a host; None removes one."""
    table = models.ExtraCapability
    connection.execute(
        sa.delete(table).where(
            table.computehost_id == host_id, table.name.in_(list(capabilities))
        )
    )
    rows = [
        {"computehost_id": host_id, "name": name, "value": value}
        for name, value in sorted(capabilities.items())
        if value is not None
    ]
    if rows:
        connection.execute(sa.insert(table), rows)


def delete(connection: sa.Connection, host_id: int) -> None:
    """Delete a host that has no slots."""
    host = models.ComputeHost
    for part in (models.ExtraCapability, models.Cleaning):
        connection.execute(sa.delete(part).where(part.computehost_id == host_id))
    connection.execute(sa.delete(host).where(host.id == host_id))


def list_capability_names(connection: sa.Connection) -> set[str]:
    """Return the names of all capabilities that any host has."""
    return set(connection.scalars(sa.select(models.ExtraCapability.name).distinct()))


def list_properties(connection: sa.Connection) -> list[Property]:
    """Return all capabilities that any host has, by name."""
    capability = models.ExtraCapability
    values: dict[str, set[str]] = {}
    for name, value in connection.execute(sa.select(capability.name, capability.value)):
        values.setdefault(name, set()).add(value)
    private = set(
        connection.scalars(
            sa.select(models.HostProperty.name).where(models.HostProperty.private)
        )
    )
    return [
        Property(name, name in private, sorted(values[name])) for name in sorted(values)
    ]


def set_private(connection: sa.Connection, name: str, private: bool) -> Property:
    """Store whether only administrators can see a capability.

    :raises NotFound: no host has it
    """
    row.put(connection, models.HostProperty, {"name": name}, private=private)
    for capability in list_properties(connection):
        if capability.name == name:
            return capability
    raise errors.NotFound(f"Object with {{'resource_property': '{name}'}} not found")
