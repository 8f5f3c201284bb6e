"""Databases and applications for all tests."""

import datetime
import gc
import logging
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from placement import app
from placement.objects.journal.keeping import Keeper
from placement.objects.ledger import Ledger
from placement.operation import Context
from placement_clients import client
from placement_foundation.database.storage import Database
from placement_foundation.observing import metrics
from tests import backends, settings, witness
from tests.serving import Served, serving

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


# prometheus_client looks for its directory when it is imported, which any test may do
# first. Each process of the tests has its own.
os.environ.pop(metrics.DIRECTORY, None)
metrics.directory()

# How long an example takes depends on what else the machine does; examples may share a
# service, and requests are large.
hypothesis.settings.register_profile(
    "untimed",
    deadline=None,
    suppress_health_check=set(hypothesis.HealthCheck)
    - {hypothesis.HealthCheck.filter_too_much},
)
hypothesis.settings.load_profile("untimed")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Use one process more than there are processors: tests wait now and then."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    # Not every system says which of its processors a process may use.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) + 1
    return (os.cpu_count() or 1) + 1


def _refuse(value: datetime.date) -> str:
    raise TypeError(f"SQLite gets {value!r} for a column whose type it does not know")


# Its driver warns of such values from Python 3.12 on, and stores them before.
for kind in (datetime.date, datetime.datetime):
    sqlite3.register_adapter(kind, _refuse)


@pytest.fixture(autouse=True, scope="session")
def watched() -> Iterator[witness.Witness]:
    """Watch all databases for changes that the journal does not know."""
    with witness.watching() as watched:
        yield watched


@pytest.fixture(autouse=True)
def journal_is_complete(watched: witness.Witness) -> Iterator[None]:
    """Check that what a test has our code change is in the journal."""
    watched.missing.clear()
    yield
    assert not watched.missing, "\n".join(watched.missing)


@pytest.fixture(autouse=True)
def process_stays() -> Iterator[None]:
    """Put back what a program sets in its process: where it logs, what it collects."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[backends.Template]:
    directory = tmp_path_factory.mktemp("template")
    with backends.empty_database(directory) as url:
        template = backends.Template(url)
        yield template
        template.dispose()


@pytest.fixture
def database(
    template: backends.Template, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Database]:
    """Give an empty, migrated and synchronised database.

    Whatever a test does, it leaves a sound one, unless it is marked with ``damage``.
    """
    damaged = request.node.get_closest_marker("damage") is not None
    with template.fresh(tmp_path, damaged=damaged) as database:
        yield database


@pytest.fixture
def context(database: Database) -> Context:
    """Give what the handlers of the service get."""
    return app.make_context(settings.make_config(), database)


@pytest.fixture
def journal(context: Context) -> Keeper:
    """Give the journal of the service."""
    assert context.journal
    return context.journal


@pytest.fixture
def ledger(database: Database, journal: Keeper) -> Ledger:
    """Give what the service writes to."""
    return Ledger(database, journal)


@pytest.fixture
def application(database: Database, context: Context) -> "WSGIApplication":
    """Give the whole service on an empty database, without authentication."""
    return app.build(settings.make_config(), database, context)


@pytest.fixture
def service(application: "WSGIApplication") -> Iterator[Served]:
    """Serve Placement on an empty database."""
    with serving(application) as served:
        yield served


@pytest.fixture
def placement(service: Served) -> client.Client:
    """Give an administrator's client."""
    return client.from_environment(url=service.url, token="admin")
