"""A database in memory: one connection that all threads take in turn."""

from functools import partial

from placement import app
from placement.db import migration
from placement.objects import standard_name
from placement.objects.ledger import Ledger
from placement_foundation import option
from placement_foundation.database import storage
from tests import settings
from tests.client import Client
from tests.threads import at_once


def test_threads_take_turns() -> None:
    database = storage.connect(option.DatabaseSettings("sqlite://"))
    migration.SCHEMA.upgrade(database)
    standard_name.synchronise(Ledger(database))
    client = Client(app.build(settings.make_config(), database))

    def make_some(thread: int) -> set[int]:
        return {
            client.call(
                "POST", "/resource_providers", {"name": f"{thread}-{each}"}
            ).status
            for each in range(20)
        } | {client.call("GET", "/resource_providers").status for _ in range(20)}

    seen = at_once([partial(make_some, thread) for thread in range(4)])
    assert seen == [{200}] * 4
    assert len(client.get("/resource_providers")["resource_providers"]) == 80
    database.engine.dispose()


def test_it_is_kept_when_the_process_rests() -> None:
    database = storage.connect(option.DatabaseSettings("sqlite://"))
    migration.SCHEMA.upgrade(database)
    database.rest()
    assert migration.SCHEMA.version(database) == migration.SCHEMA.head
    database.engine.dispose()
