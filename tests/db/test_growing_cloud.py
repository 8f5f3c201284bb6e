"""A server that took its tables for empty reads no more than it needs.

MariaDB goes by what it knew of a table when it was opened, however much has come since.
"""

import pytest
import sqlalchemy as sa

from placement import app
from placement.forest import loading
from placement.objects import allocation
from placement_foundation.database.storage import Database
from tests import backends, settings
from tests.client import Client, new_uuid, wants

pytestmark = pytest.mark.skipif(backends.KIND != "mysql", reason="of MariaDB")

HOSTS, EACH = 20, 20


def count_reads(connection: sa.Connection) -> int:
    """Return how many rows and entries of indexes the session has read."""
    status = connection.execute(sa.text("SHOW SESSION STATUS LIKE 'Handler_read%'"))
    return sum(int(value) for _, value in status)


def fill(empty: Database) -> list[str]:
    """Give consumers to some hosts, and return these."""
    client = Client(app.build(settings.make_config({}), empty))
    hosts = [client.make_provider(VCPU=1000) for _ in range(HOSTS)]
    for host in hosts:
        claims = {new_uuid(): wants({host: {"VCPU": 1}}, None) for _ in range(EACH)}
        assert client.call("POST", "/allocations", claims).status == 204
    return hosts


def test_the_allocations_of_a_provider_do_not_lead_to_all_others(
    empty: Database,
) -> None:
    backends.make_placement(empty)
    empty.read(lambda some: allocation.list_by_provider(some, new_uuid()))
    hosts = fill(empty)

    def read(connection: sa.Connection) -> tuple[int, int]:
        # Counting reads as well.
        first = count_reads(connection)
        second = count_reads(connection)
        _, found = allocation.list_by_provider(connection, hosts[0])
        both = count_reads(connection) - second
        return len(found.allocations), both - (second - first)

    for _ in range(2):
        found, reads = empty.read(read)
        assert found == EACH
        # Each with its class, consumer, project, user and type, and sorted.
        assert reads < 10 * EACH


def test_no_allocations_are_added_up_again_for_each_provider(empty: Database) -> None:
    backends.make_placement(empty)
    empty.read(loading.load)
    fill(empty)

    def read(connection: sa.Connection) -> tuple[int, int]:
        before = count_reads(connection)
        forest = loading.load(connection)
        return forest.size, count_reads(connection) - before

    size, reads = empty.read(read)
    assert size == HOSTS
    assert reads < 10 * HOSTS * EACH
