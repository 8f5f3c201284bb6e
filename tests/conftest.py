"""Databases and applications for all tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from placement import app
from placement_clients import client
from placement_foundation.database.storage import Database
from tests import backends, settings
from tests.serving import Served, serving

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[backends.Template]:
    directory = tmp_path_factory.mktemp("template")
    with backends.empty_database(directory) as url:
        template = backends.Template(url)
        yield template
        template.dispose()


@pytest.fixture
def database(template: backends.Template, tmp_path: Path) -> Iterator[Database]:
    """Give an empty, migrated and synchronised database."""
    with template.fresh(tmp_path) as database:
        yield database


@pytest.fixture
def application(database: Database) -> "WSGIApplication":
    """Give the whole service on an empty database, without authentication."""
    return app.build(settings.make_config(), database)


@pytest.fixture
def service(application: "WSGIApplication") -> Iterator[Served]:
    """Serve Placement on an empty database."""
    with serving(application) as served:
        yield served


@pytest.fixture
def placement(service: Served) -> client.Client:
    """Give an administrator's client."""
    return client.from_environment(url=service.url, token="admin")
