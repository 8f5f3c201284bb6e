"""Instances of the service that work on one database, for tests of what is kept."""

from typing import Any

import sqlalchemy as sa

from placement import app, conf
from placement.forest import cache
from placement.operation import context_of
from placement_foundation.database.storage import Database
from tests import backends, settings
from tests.client import Client

# After how many seconds a request notices what another service has written.
NOTICED_AFTER = cache.CHECK_EVERY + cache.OVERDUE


class Clock:
    """A clock that stands still, unless it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Instance:
    """An instance of the service with its own connections, and what it keeps."""

    def __init__(self, url: str, *, keeps: bool = True) -> None:
        self.database = backends.connect(url)
        config = settings.make_config({("placement", "keep_forest"): keeps})
        self.clock = Clock()
        journal = app.make_context(config, self.database).journal
        self.context = context_of(
            conf.settings(config),
            cache.CachedForest(journal, self.clock) if keeps else None,
            journal,
        )
        self.client = Client(app.build(config, self.database, self.context))

    @property
    def keeper(self) -> cache.CachedForest:
        assert self.context.forest_cache
        return self.context.forest_cache

    def close(self) -> None:
        self.database.engine.dispose()


class Instances:
    """Instances on one database, which are closed at the end."""

    def __init__(self, database: Database) -> None:
        self.url = database.engine.url.render_as_string(hide_password=False)
        self.all: list[Instance] = []

    def start(self, *, keeps: bool = True) -> Instance:
        self.all.append(Instance(self.url, keeps=keeps))
        return self.all[-1]


class Backup:
    """The rows that some tables have now. A table refers only to those after it."""

    def __init__(self, database: Database, *tables: Any) -> None:
        self._database = database
        with database.engine.begin() as connection:
            self._rows = {
                table: connection.execute(sa.select(table)).mappings().all()
                for table in tables
            }

    def restore(self) -> None:
        with self._database.engine.begin() as connection:
            for table, rows in self._rows.items():
                connection.execute(sa.delete(table))
                if rows:
                    connection.execute(sa.insert(table), [dict(row) for row in rows])


def ask(instance: Instance, question: str) -> Any:
    """Return the document of an answer, or what an error says."""
    answer = instance.client.call("GET", question)
    assert answer.status in (200, 400, 404), answer
    return answer.document if answer.status == 200 else answer.detail
