"""``placement-reservations import``: hosts and leases from a database of Blazar."""

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from placement_foundation import option
from placement_foundation.database import storage
from placement_foundation.database.engine import require_file
from placement_foundation.serving import command, program
from placement_foundation.serving.program import Program, Unusable
from placement_foundation.serving.terminal import visible
from placement_reservations.blazar import carrying, judging, reading
from placement_reservations.blazar.carrying import Load
from placement_reservations.blazar.reading import Source
from placement_reservations.db import models
from placement_reservations.store import host as hosts


def add(commands: Any, of: Program) -> None:
    """Add the command to those of a program."""

    def take_over(asked: argparse.Namespace) -> int:
        """Show what of Blazar's would be carried here; with --write, carry it."""
        return program.run_configured(of, asked, lambda config: _run(of, config, asked))

    parser = program.add_command(commands, "import", take_over)
    parser.add_argument(
        "--from-blazar",
        required=True,
        metavar="URL",
        help="URL of Blazar's database, as in its configuration: "
        "mysql+pymysql://blazar:secret@db/blazar. It is only read.",
    )
    parser.add_argument(
        "--skip",
        action="append",
        default=[],
        metavar="WHAT",
        help="leave out the host or the lease with this id, all leases that are over "
        f"({judging.ENDED}), or the floating IPs ({judging.FLOATING_IPS}); may be "
        "repeated",
    )
    parser.add_argument(
        "--write", action="store_true", help="carry it, all of it or nothing"
    )
    command.add_config_file(parser, of.project)


def _run(of: Program, config: cfg.ConfigOpts, asked: argparse.Namespace) -> None:
    program.prepare_database(of, config)
    try:
        source = _read(asked.from_blazar)
        load = _carry(config, source, asked.skip, write=asked.write)
    except carrying.NotCarried as exc:
        for each in exc.refusals:
            print(visible(each), file=sys.stderr)
        raise Unusable(f"nothing is carried: {exc}") from exc
    except command.TROUBLE as exc:
        raise Unusable(command.describe(exc)) from exc
    for line in _describe(load):
        print(visible(line))
    if not asked.write:
        print("Nothing was written. Stop Blazar, and run this again with --write.")


def _read(url: str) -> Source:
    """Return the content of a database of Blazar.

    :raises Unusable: it cannot be read
    """
    try:
        require_file(sa.make_url(url))
        engine = sa.create_engine(url)
        try:
            # One snapshot, although it is only safe to use once Blazar is stopped.
            with engine.connect() as connection, connection.begin():
                return reading.read(connection)
        finally:
            engine.dispose()
    except (*command.TROUBLE, ImportError) as exc:
        raise Unusable(
            f"Blazar's database cannot be used: {command.describe(exc)}"
        ) from exc


def _carry(
    config: cfg.ConfigOpts, source: Source, left_out: Collection[str], *, write: bool
) -> Load:
    """Return the data to carry, after storing it if requested.

    :raises carrying.NotCarried: something cannot be carried
    """
    with_flavors = config.reservations.compute == "placement"

    def work(connection: sa.Connection) -> Load:
        if write:
            # No slot is promised meanwhile.
            hosts.lock_hosts(connection)
        load = carrying.plan_load(connection, source, left_out)
        if write:
            carrying.store(connection, load, with_flavors=with_flavors)
        return load

    database = storage.connect(option.database_settings(config.database))
    try:
        with database.patient() as patient:
            if write:
                return patient.write(work, attempts=1)
            return patient.look(work)
    finally:
        database.engine.dispose()


def _describe(load: Load) -> Iterator[str]:
    """Yield lines about the data that is carried."""
    new_hosts, new_leases = load.rows[models.ComputeHost], load.rows[models.Lease]
    for host in new_hosts:
        properties = sorted(
            f" {row['name']}={row['value']}"
            for row in load.rows[models.ExtraCapability]
            if row["computehost_id"] == host["id"]
        )
        yield (
            f"host {host['id']} {host['hypervisor_hostname']}: "
            f"{host['vcpus']} processors, {host['memory_mb']} MB, "
            f"{host['local_gb']} GB{''.join(properties)}"
        )
    holders = {row["id"]: row["lease_id"] for row in load.rows[models.Reservation]}
    slots = Counter(
        holders[row["reservation_id"]] for row in load.rows[models.Allocation]
    )
    for lease in new_leases:
        yield (
            f"lease {lease['id']} {lease['name']}: {lease['status']}, "
            f"{slots[lease['id']]} slots, {lease['start_date']:%Y-%m-%d %H:%M} to "
            f"{lease['end_date']:%Y-%m-%d %H:%M}"
        )
    for reservation, count in load.displaced.items():
        yield (
            f"{count} slots of reservation {reservation} are more than its hosts have: "
            "it will be moved, or marked as degraded"
        )
    for line in load.left_in_nova:
        yield f"Blazar's {line} stays in Nova: delete it when the reservation is over"
    states = Counter(lease["status"] for lease in new_leases)
    each = ", ".join(f"{count} {status}" for status, count in sorted(states.items()))
    yield (
        f"{len(new_hosts)} hosts, and {len(new_leases)} leases"
        f"{f' ({each})' if each else ''}; here already: {load.known} hosts, "
        f"{load.present} leases; left out: {load.left_out} leases"
    )
