"""Users of the command, with and without the ledger API."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from placement_foundation.database.storage import Database
from tests.commands.audit.desk import Desk
from tests.serving import serving, without_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed.wsgi import WSGIApplication


@pytest.fixture(params=["ledger", "ordinary"])
def desk(
    request: pytest.FixtureRequest,
    application: "WSGIApplication",
    database: Database,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> "Iterator[Desk]":
    """Give a user of a Placement with ``/ledger/v1``, and of one without."""
    is_old = request.param == "ordinary"
    with serving(without_ledger(application) if is_old else application) as served:
        yield Desk(served.url, application, database, tmp_path, capsys)


@pytest.fixture
def own_desk(
    application: "WSGIApplication",
    database: Database,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> "Iterator[Desk]":
    """Give a user of a Placement with ``/ledger/v1``."""
    with serving(application) as served:
        yield Desk(served.url, application, database, tmp_path, capsys)
