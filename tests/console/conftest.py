"""Services, clouds and pages for the tests of the console."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cloud
from placement.demonstration import planting
from placement.objects.ledger import Ledger
from placement_foundation.database.storage import Database
from tests.client import Client
from tests.console import stage

HERE = Path(__file__).parent
Site = Callable[[str], str]
Visit = Callable[..., Any]
# The URL of a service that a test may change, a client of it, and UUIDs of hosts.
Cloud = tuple[str, Client, list[str]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.console)


def _demonstrate(database: Database) -> None:
    Ledger(database).write(lambda tx: planting.plant(tx, 120))


def _plant(kind: str) -> Callable[[Database], Any]:
    return lambda database: cloud.plant(database, cloud.KINDS[kind](50))


CLOUDS: dict[str, Callable[[Database], Any]] = {
    "empty": lambda database: None,
    "demo": _demonstrate,
    **{kind: _plant(kind) for kind in cloud.KINDS},
}


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with stage.browsing() as browser:
        yield browser


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Give the URL of a service with one of the clouds, which tests do not change."""
    urls: dict[str, str] = {}
    with contextlib.ExitStack() as stack:

        def serve(kind: str) -> str:
            if kind not in urls:
                directory = tmp_path_factory.mktemp(kind)
                filled = stage.filled(directory, CLOUDS[kind])
                database = stack.enter_context(filled)
                serving = stage.serving(stage.build(database))
                urls[kind] = stack.enter_context(serving)
            return urls[kind]

        yield serve


class Witness:
    """Records anything that a page of the console must not do."""

    def __init__(self, page: Any) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        # The browser also reports the failures that a test causes on purpose.
        self.expects_failures = False
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def _note(self, message: Any) -> None:
        failed = "Failed to load" in message.text
        # A busy service is asked again.
        expected = failed and (self.expects_failures or "of 503" in message.text)
        if message.type in ("error", "warning") and not expected:
            self.errors.append(message.text)


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    """Give a way to open a page; the page must cause no errors or foreign requests."""
    with contextlib.ExitStack() as stack:
        witnesses: list[tuple[str, Witness]] = []

        def visit(url: str, fragment: str = "", **options: Any) -> Any:
            context = browser.new_context(
                **{"viewport": {"width": 1400, "height": 900}, **options}
            )
            context.set_default_timeout(15_000)
            stack.callback(context.close)
            page = context.new_page()
            page.witness = Witness(page)
            witnesses.append((url, page.witness))
            page.goto(f"{url}/console/{fragment}")
            return page

        yield visit
        for url, witness in witnesses:
            assert witness.errors == []
            assert all(each.startswith(f"{url}/") for each in witness.requests)
