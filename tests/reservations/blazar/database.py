"""Databases of Blazar, with the rows that its API and its manager write.

The tables are those of its migrations. ``tox -e blazar``, which installs Blazar and
needs MariaDB, runs them; elsewhere, the tables are recorded in ``schema.sql``.
"""

import dataclasses
import datetime
import importlib.util
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests import backends

SCHEMA = Path(__file__).with_name("schema.sql")
MIGRATES = backends.KIND == "mysql" and importlib.util.find_spec("blazar") is not None
# What MariaDB's types are called elsewhere.
TYPES = [
    (r"tinyint\(1\)", "boolean"),
    (r"int\(11\)", "integer"),
    (r"mediumtext", "text"),
    (r"datetime", "timestamp"),
]
BOOLEANS = [("DEFAULT 0", "DEFAULT false"), ("DEFAULT 1", "DEFAULT true")]
# The tables with rows, those that refer to others first.
CONTENT = (
    "computehost_allocations",
    "computehost_extra_capabilities",
    "instance_reservations",
    "events",
    "floatingips",
    "reservations",
    "leases",
    "computehosts",
    "resource_properties",
)
# Since Python 3.12, the driver of SQLite warns of times that no type declares.
TIMES = frozenset(("created_at", "end_date", "start_date", "time", "updated_at"))
CREATED = datetime.datetime(2030, 1, 2, 3, 4, 5)
HOUR = datetime.timedelta(hours=1)


@contextmanager
def empty(directory: Path) -> Iterator["Blazar"]:
    """Give a database of Blazar that has no hosts and no leases."""
    with backends.empty_database(directory) as url:
        if MIGRATES:
            _migrate(url, directory)
        else:
            _load(url)
        engine = sa.create_engine(url)
        try:
            yield Blazar(url, engine)
        finally:
            engine.dispose()


def _migrate(url: str, directory: Path) -> None:
    path = directory / "blazar.conf"
    path.write_text(f"[database]\nconnection = {url}\n")
    script = "from blazar.db.migration.cli import main; main()"
    words = ["--config-file", str(path), "upgrade", "head"]
    subprocess.run([sys.executable, "-c", script, *words], check=True)


def _load(url: str) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        waiting = _statements()
        while waiting:
            ready = [name for name in waiting if not _needs(waiting[name], waiting)]
            for name in ready:
                connection.exec_driver_sql(waiting.pop(name))
    engine.dispose()


def _needs(statement: str, waiting: dict[str, str]) -> set[str]:
    return {*re.findall(r"REFERENCES `?(\w+)", statement)} & {*waiting}


def _statements() -> dict[str, str]:
    """Return the statements that create the tables, by table."""
    text = re.sub("^--.*\n", "", SCHEMA.read_text(), flags=re.MULTILINE)
    found = {}
    for statement in text.split(";\n"):
        if statement.strip():
            (name,) = re.findall(r"CREATE TABLE `(\w+)`", statement)
            found[name] = statement
    if backends.KIND != "mysql":
        found = {name: _translate(each) for name, each in found.items()}
    return found


def _translate(statement: str) -> str:
    lines = [line for line in statement.splitlines() if not line.startswith("  KEY ")]
    text = "\n".join(lines).replace("`", "").replace("UNIQUE KEY subnet_id", "UNIQUE")
    text = text.replace("UNIQUE KEY resource_type", "UNIQUE")
    text = re.sub(r"\) ENGINE=.*", ")", text)
    for theirs, ours in TYPES:
        text = re.sub(theirs, ours, text)
    for theirs, ours in BOOLEANS:
        text = text.replace(theirs, ours)
    return text


def table_of(name: str, *columns: str) -> sa.TableClause:
    """Return a table with some of its columns."""
    typed = (
        sa.column(each, sa.DateTime if each in TIMES else None) for each in columns
    )
    return sa.table(name, *typed)


def _are(table: sa.TableClause, values: dict[str, Any]) -> list[sa.ColumnElement[bool]]:
    return [table.c[column] == value for column, value in values.items()]


@dataclasses.dataclass
class Blazar:
    """A database of Blazar, and what writes to it."""

    url: str
    engine: sa.Engine

    def insert(self, table: str, **values: Any) -> str:
        """Insert a row with a new id, unless it has one, and return the id."""
        row = {"id": str(uuid.uuid4()), "created_at": CREATED, **values}
        statement = sa.insert(table_of(table, *row)).values(row)
        with self.engine.begin() as connection:
            connection.execute(statement)
        return str(row["id"])

    def clear(self) -> None:
        """Remove all hosts and leases."""
        with self.engine.begin() as connection:
            for table in CONTENT:
                connection.execute(sa.delete(sa.table(table)))

    def find(self, table: str, **values: Any) -> list[str]:
        """Return the ids of the rows with some values."""
        known = table_of(table, "id", *values)
        query = sa.select(known.c.id).where(*_are(known, values))
        with self.engine.connect() as connection:
            return list(connection.scalars(query))

    def delete(self, table: str, **values: Any) -> None:
        """Delete the rows with some values."""
        known = table_of(table, *values)
        with self.engine.begin() as connection:
            connection.execute(sa.delete(known).where(*_are(known, values)))

    def change(self, table: str, key: str, **values: Any) -> None:
        """Change a row."""
        known = table_of(table, "id", *values)
        statement = sa.update(known).where(known.c.id == key).values(values)
        with self.engine.begin() as connection:
            connection.execute(statement)

    def add_host(self, number: str, name: str | None, **capabilities: str) -> str:
        """Add a host, as ``POST /v1/os-hosts`` does."""
        host = self.insert(
            "computehosts",
            id=number,
            hypervisor_hostname=name,
            service_name=f"service-of-{name}",
            vcpus=8,
            memory_mb=8192,
            local_gb=100,
            cpu_info=json.dumps({"arch": "x86_64"}),
            hypervisor_type="QEMU",
            hypervisor_version=8_000_000,
            trust_id=str(uuid.uuid4()),
            availability_zone="nova",
            reservable=True,
        )
        for capability, value in capabilities.items():
            self.insert(
                "computehost_extra_capabilities",
                computehost_id=host,
                property_id=self.property_id(capability),
                capability_value=value,
            )
        return host

    def property_id(self, name: str) -> str:
        """Return the id of a property, which is made if it is new."""
        found = self.find("resource_properties", property_name=name)
        if found:
            return found[0]
        return self.insert(
            "resource_properties",
            resource_type="physical:host",
            property_name=name,
            private=False,
        )

    def add_lease(
        self,
        slots: dict[str, int],
        status: str = "PENDING",
        *,
        start: datetime.datetime,
        name: str = "lease",
        affinity: bool | None = None,
        properties: str = "",
        kind: str = "virtual:instance",
    ) -> str:
        """Add a lease of two hours with one reservation.

        :param slots: how many on each host, keyed by its id
        """
        lease = self.insert(
            "leases",
            name=name,
            user_id="ann",
            project_id="blue",
            start_date=start,
            end_date=start + 2 * HOUR,
            trust_id=str(uuid.uuid4()),
            status=status,
            degraded=False,
        )
        done = {"PENDING": 0, "ACTIVE": 2, "TERMINATED": 3, "ERROR": 0}.get(status, 0)
        times = {
            "start_lease": start,
            "before_end_lease": start + HOUR,
            "end_lease": start + 2 * HOUR,
        }
        for place, (event_type, time) in enumerate(times.items()):
            self.insert(
                "events",
                lease_id=lease,
                event_type=event_type,
                time=time,
                status="DONE" if place < done else "UNDONE",
            )
        states = {"ACTIVE": "active", "TERMINATED": "deleted", "ERROR": "error"}
        reservation = self.insert(
            "reservations",
            lease_id=lease,
            resource_type=kind,
            status=states.get(status, "pending"),
            missing_resources=False,
            resources_changed=False,
        )
        if kind == "virtual:instance":
            self.add_instances(reservation, slots, affinity, properties)
        return lease

    def add_instances(
        self,
        reservation: str,
        slots: dict[str, int],
        affinity: bool | None,
        properties: str,
    ) -> None:
        """Add what a reservation of instances reserves."""
        resource = self.insert(
            "instance_reservations",
            reservation_id=reservation,
            vcpus=1,
            memory_mb=512,
            disk_gb=5,
            amount=sum(slots.values()) or 1,
            affinity=affinity,
            resource_properties=properties,
            flavor_id=reservation,
            aggregate_id=7,
            server_group_id=None,
        )
        self.change("reservations", reservation, resource_id=resource)
        for host, count in slots.items():
            for _ in range(count):
                self.insert(
                    "computehost_allocations",
                    compute_host_id=host,
                    reservation_id=reservation,
                )

    def reservation_of(self, lease: str) -> str:
        """Return the id of the reservation of a lease."""
        (found,) = self.find("reservations", lease_id=lease)
        return found

    def resource_of(self, lease: str) -> str:
        """Return the id of what the reservation of a lease reserves."""
        reservation = self.reservation_of(lease)
        (found,) = self.find("instance_reservations", reservation_id=reservation)
        return found

    def event_of(self, lease: str, event_type: str) -> str:
        """Return the id of an event of a lease."""
        (found,) = self.find("events", lease_id=lease, event_type=event_type)
        return found
