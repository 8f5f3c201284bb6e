"""Databases of the reservation service, and clouds whose capacity can be reserved."""

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


def empty(connection: sa.Connection) -> None:
    for table in reversed(models.Base.metadata.sorted_tables):
        connection.execute(sa.delete(table))
    if backends.KIND in FIRST_HOST:
        connection.execute(sa.text(FIRST_HOST[backends.KIND]))


@pytest.fixture(scope="session")
def books_template(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[backends.Template]:
    with backends.empty_database(tmp_path_factory.mktemp("reservations")) as url:
        template = backends.Template(
            url, SCHEMA.upgrade, empty, check=lambda connection: None
        )
        yield template
        template.dispose()


@pytest.fixture
def books(books_template: backends.Template, tmp_path: Path) -> Iterator[Database]:
    """Give an empty database of the reservation service."""
    with books_template.fresh(tmp_path) as database:
        yield database


@pytest.fixture
def books_url(books: Database) -> str:
    """Give the URL of this database."""
    return books.engine.url.render_as_string(hide_password=False)


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
