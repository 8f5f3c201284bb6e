"""The node service on an empty database."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from placement_clients.client import Client
from placement_foundation.database.storage import Database
from placement_nodes import app
from placement_nodes.db import migration, models
from tests import backends
from tests.nodes import options
from tests.nodes.caller import Caller
from tests.nodes.world import World
from tests.serving import Served, serving

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def empty(connection: sa.Connection) -> None:
    for table in reversed(models.Base.metadata.sorted_tables):
        connection.execute(sa.delete(table))


@pytest.fixture(scope="session")
def nodes_template(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[backends.Template]:
    directory = tmp_path_factory.mktemp("nodes-template")
    with backends.empty_database(directory) as url:
        template = backends.Template(
            url, migration.SCHEMA.upgrade, empty, check=lambda connection: None
        )
        yield template
        template.dispose()


@pytest.fixture
def nodes_database(
    nodes_template: backends.Template, tmp_path: Path
) -> Iterator[Database]:
    """Give an empty database with the tables of the node service."""
    with nodes_template.fresh(tmp_path) as database:
        yield database


@pytest.fixture
def nodes_application(nodes_database: Database) -> "WSGIApplication":
    """Give the node service on an empty database."""
    return app.build(options.make_config(), nodes_database)


@pytest.fixture
def nodes(nodes_application: "WSGIApplication") -> Caller:
    """Give a client of the service."""
    return Caller(nodes_application)


@pytest.fixture
def world(
    nodes_application: "WSGIApplication",
    service: Served,
    placement: Client,
    tmp_path: Path,
) -> Iterator[World]:
    """Give a node service and Placement, both behind sockets."""
    caller, state = Caller(nodes_application), tmp_path / "state"
    with serving(nodes_application) as served:
        yield World(caller, served, service, placement, state)
