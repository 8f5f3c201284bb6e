"""Databases to migrate, and instances that share a database."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from placement.forest import cache
from placement_foundation.database.storage import Database
from tests import backends, proxy
from tests.client import Client
from tests.instances import Instances
from tests.proxy import Proxy

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

PORTS = {"postgresql": 5432, "mysql": 3306}


@pytest.fixture
def client(application: "WSGIApplication") -> Client:
    """Give an administrator's client of the service."""
    return Client(application)


@pytest.fixture
def undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the queries that are sent every few seconds, whatever the request."""
    monkeypatch.setattr(cache, "CHECK_EVERY", 1e9)


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
def alone(database: Database) -> Iterator[Database]:
    """Give the same database, with connections that no other test has used."""
    url = database.engine.url.render_as_string(hide_password=False)
    alone = backends.connect(url)
    yield alone
    alone.engine.dispose()


@pytest.fixture
def network() -> Iterator[Proxy]:
    """Give a network before the database server that can fail."""
    url = sa.make_url(backends.SERVERS[backends.KIND])
    address = url.host or "127.0.0.1", url.port or PORTS[backends.KIND]
    with proxy.before(address) as network:
        yield network


@pytest.fixture
def instances(database: Database) -> Iterator[Instances]:
    instances = Instances(database)
    yield instances
    for each in instances.all:
        each.close()
