"""Runs functional tests that the authors of a client have written.

They expect two fixtures of OpenStack Placement. Those here stand for them, with this
service behind a real socket.
"""

import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType

import fixtures

from placement import app
from placement_foundation.database.storage import Database
from tests import backends, settings
from tests.serving import serving

EXPECTED = "placement.tests.functional.fixtures"


class PlacementFixture(fixtures.Fixture):  # type: ignore[misc]
    """The service, on an empty database, while a test runs."""

    database: Database
    endpoint: str
    token = "admin"

    def setUp(self) -> None:
        super().setUp()
        self.database.write(backends.empty_placement)
        served = serving(app.build(settings.make_config(), self.database))
        self.endpoint = served.__enter__().url
        self.addCleanup(served.__exit__, None, None, None)


class Logging(fixtures.Fixture):  # type: ignore[misc]
    """Nothing: what is logged goes to standard error."""


def pretend(module: str, **contents: object) -> None:
    """Let a module be there, with the packages that it is in."""
    made = ModuleType(module)
    vars(made).update(contents, __path__=[])
    sys.modules[module] = made
    package, _, name = module.rpartition(".")
    if package not in sys.modules:
        pretend(package)
    setattr(sys.modules[package], name, made)


def main() -> int:
    """Run the tests in the modules of a package; return the exit code.

    The arguments are the package, and a pattern of the names of files.
    """
    package, pattern = sys.argv[1:]
    pretend(f"{EXPECTED}.placement", PlacementFixture=PlacementFixture)
    pretend(f"{EXPECTED}.capture", Logging=Logging)
    with (
        tempfile.TemporaryDirectory() as directory,
        backends.empty_database(Path(directory), "sqlite") as url,
    ):
        PlacementFixture.database = backends.connect(url)
        backends.make_placement(PlacementFixture.database)
        suite = unittest.defaultTestLoader.discover(package, pattern)
        return not unittest.TextTestRunner().run(suite).wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
