"""Databases of the reservation service, and clouds whose capacity can be reserved."""

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from placement_foundation.database.storage import Database
from placement_reservations.db import models
from placement_reservations.db.migration import SCHEMA
from tests import backends
from tests.reservations.cloud import Cloud, make_cloud

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


# The first host of each test is number 1.
FIRST_HOST = {
    "postgresql": "ALTER SEQUENCE computehosts_id_seq RESTART",
    "mysql": "ALTER TABLE computehosts AUTO_INCREMENT = 1",
}


@pytest.fixture(scope="session")
def migrated_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the URL of a database with empty tables."""
    with backends.empty_database(tmp_path_factory.mktemp("reservations")) as url:
        database = backends.connect(url)
        SCHEMA.upgrade(database)
        if backends.KIND == "sqlite":
            with database.engine.connect() as connection:
                connection.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))
        database.engine.dispose()
        yield url


@pytest.fixture
def books_url(migrated_url: str, tmp_path: Path) -> str:
    """Give the URL of an empty database of the reservation service."""
    if backends.KIND == "sqlite":
        path = tmp_path / f"{uuid.uuid4().hex}.db"
        shutil.copyfile(str(sa.make_url(migrated_url).database), path)
        return f"sqlite:///{path}"
    engine = sa.create_engine(migrated_url)
    with engine.begin() as connection:
        for table in reversed(models.Base.metadata.sorted_tables):
            connection.execute(sa.delete(table))
        connection.execute(sa.text(FIRST_HOST[backends.KIND]))
    engine.dispose()
    return migrated_url


@pytest.fixture
def books(books_url: str) -> Iterator[Database]:
    """Give an empty database of the reservation service."""
    database = backends.connect(books_url)
    yield database
    database.engine.dispose()


@pytest.fixture(autouse=True)
def bugs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if the event loop logged an unexpected exception."""
    yield
    found = [record for record in caplog.get_records("call") if record.exc_info]
    assert not found, found[0].exc_text


@pytest.fixture
def cloud(application: "WSGIApplication", books: Database) -> Cloud:
    """Give Placement with two hosts of 8 processors, both registered."""
    cloud = make_cloud(application, books)
    for name in ("compute-1", "compute-2"):
        cloud.make_host(name)
        cloud.register(name)
    return cloud
