"""The standard traits and resource classes, from their libraries."""

import contextlib
from collections.abc import Iterator

import os_resource_classes
import os_traits
import sqlalchemy as sa
from oslo_log import log

from placement.db import models
from placement.model.entry import Entry, EntryType
from placement.objects.ledger import Ledger
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

LOG = log.getLogger(__name__)


# How many names a message has at most.
MOST_NAMED = 10


class Incomplete(Exception):
    """The database lacks standard names. The message says which."""


def synchronise(ledger: Ledger) -> list[str]:
    """Add the standard traits and classes that a database lacks, and return them.

    Nothing is ever removed or renamed. A database that lacks nothing is only read.
    """
    return [*synchronise_traits(ledger), *synchronise_resource_classes(ledger)]


def synchronise_traits(ledger: Ledger) -> list[str]:
    """Add the traits of os-traits that a database lacks, and return them."""
    missing = ledger.read(list_missing_traits)
    return ledger.write(add_missing_traits) if missing else []


def synchronise_resource_classes(ledger: Ledger) -> list[str]:
    """Add the classes of os-resource-classes that a database lacks, and return them."""
    missing = ledger.read(list_missing_resource_classes)
    return ledger.write(add_missing_resource_classes) if missing else []


def list_missing_traits(connection: sa.Connection) -> list[str]:
    """Return the standard traits that the database lacks, by name."""
    names = set(connection.scalars(sa.select(models.Trait.name)))
    return sorted(set(os_traits.get_traits()) - names)


def list_missing_resource_classes(connection: sa.Connection) -> list[str]:
    """Return the standard resource classes that the database lacks, by id."""
    names = set(connection.scalars(sa.select(models.ResourceClass.name)))
    return [name for name in os_resource_classes.STANDARDS if name not in names]


def check_complete(connection: sa.Connection) -> None:
    """Check that the database has all standard traits and resource classes.

    :raises Incomplete: the database lacks some of them
    """
    missing = [
        *list_missing_traits(connection),
        *list_missing_resource_classes(connection),
    ]
    if missing:
        some = ", ".join(missing[:MOST_NAMED])
        more = ", ..." if len(missing) > MOST_NAMED else ""
        raise Incomplete(f"{len(missing)} standard names are missing: {some}{more}")


def add_missing_traits(tx: Transaction) -> list[str]:
    """Insert the standard traits that the database lacks, and return them."""
    missing = list_missing_traits(tx.connection)
    storage.insert_missing(
        tx.connection, models.Trait, [{"name": name} for name in missing]
    )
    tx.record_names([Entry(EntryType.TRAIT_CREATED, name) for name in missing])
    return missing


def add_missing_resource_classes(tx: Transaction) -> list[str]:
    """Insert the standard resource classes that the database lacks.

    The id of a standard class is its place in the library.
    """
    missing = list_missing_resource_classes(tx.connection)
    rows = [
        {"id": os_resource_classes.STANDARDS.index(name), "name": name}
        for name in missing
    ]
    with zero_as_an_id(tx.connection):
        storage.insert_missing(tx.connection, models.ResourceClass, rows)
    refused = list_missing_resource_classes(tx.connection)
    if refused:
        LOG.warning("other resource classes have the ids of %s", ", ".join(refused))
    added = [name for name in missing if name not in refused]
    tx.record_names([Entry(EntryType.CLASS_CREATED, name) for name in added])
    return added


@contextlib.contextmanager
def zero_as_an_id(connection: sa.Connection) -> Iterator[None]:
    """Let MySQL accept 0 as an id, where it would otherwise generate one."""
    if connection.dialect.name not in ("mysql", "mariadb"):
        yield
        return
    mode = connection.scalar(sa.text("SELECT @@SESSION.sql_mode"))
    set_mode = sa.text("SET SESSION sql_mode = :mode")
    connection.execute(set_mode, {"mode": f"{mode},NO_AUTO_VALUE_ON_ZERO".lstrip(",")})
    try:
        yield
    finally:
        connection.execute(set_mode, {"mode": mode})
