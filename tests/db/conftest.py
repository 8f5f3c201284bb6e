"""Databases to migrate, and instances that share a database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.forest import cache
from placement_foundation.database.storage import Database
from tests import backends
from tests.instances import Instances


@pytest.fixture
def database(
    template: backends.Template, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Database]:
    """Give an empty, migrated and synchronised database.

    Whatever a test does, it leaves a sound one, unless it is marked with ``damage``.
    """
    with template.fresh(tmp_path) as database:
        yield database
        damaged = request.node.get_closest_marker("damage") is not None
        if backends.KIND == "sqlite" and not damaged:
            with database.engine.connect() as connection:
                backends.check_is_sound(connection)


@pytest.fixture
def undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the queries that are sent every few seconds, whatever the request."""
    monkeypatch.setattr(cache, "LOOK_EVERY", 1e9)


@pytest.fixture
def empty_url(tmp_path: Path) -> Iterator[str]:
    """Give the URL of a database without any table."""
    with backends.empty_database(tmp_path) as url:
        yield url


@pytest.fixture
def empty(empty_url: str) -> Iterator[Database]:
    """Give a database without any table."""
    database = backends.connect(empty_url)
    yield database
    database.engine.dispose()


@pytest.fixture
def instances(database: Database) -> Iterator[Instances]:
    instances = Instances(database)
    yield instances
    for each in instances.all:
        each.close()
