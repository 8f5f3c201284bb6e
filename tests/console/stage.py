"""A service with data in it, and a browser to look at it."""

import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from placement import app
from placement.db import migration
from placement.objects import standard_name
from placement.objects.ledger import Ledger
from placement_foundation import option
from placement_foundation.database import storage
from placement_foundation.database.storage import Database
from placement_foundation.serving import side
from tests.client import Client
from tests.settings import make_config

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

CHROMIUM = "/usr/bin/chromium"
# The browser must send requests to the service only.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PREFIX = "/placement"
NO_OPTIONS: Mapping[tuple[str, str], Any] = MappingProxyType({})


@contextlib.contextmanager
def filled(directory: Path, fill: Callable[[Database], Any]) -> Iterator[Database]:
    """Give a database with something in it."""
    url = f"sqlite:///{directory}/placement.db"
    database = storage.connect(option.DatabaseSettings(url))
    migration.SCHEMA.upgrade(database)
    standard_name.synchronise(Ledger(database))
    fill(database)
    yield database
    database.engine.dispose()


def build(
    database: Database, options: Mapping[tuple[str, str], Any] = NO_OPTIONS
) -> "WSGIApplication":
    """Return the service with its console, without authentication."""
    usual = {("console", "enabled"): True, ("metrics", "enabled"): True}
    return app.build(make_config({**usual, **options}), database)


def beneath(application: "WSGIApplication") -> "WSGIApplication":
    """Mount an application below a prefix, with nothing else around it."""

    def mounted(environment: "WSGIEnvironment", start_response: "StartResponse") -> Any:
        path = environment["PATH_INFO"]
        if not path.startswith(f"{PREFIX}/"):
            start_response("404 Not Found", [])
            return []
        environment["SCRIPT_NAME"] = PREFIX
        environment["PATH_INFO"] = path.removeprefix(PREFIX)
        return application(environment, start_response)

    return mounted


@contextlib.contextmanager
def serving(application: "WSGIApplication") -> Iterator[str]:
    """Serve an application on a free port; give its URL."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = side.serve(bound, application)
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@contextlib.contextmanager
def fresh(directory: Path) -> Iterator[tuple[str, Client]]:
    """Serve an empty ledger; give the URL, and a client to fill it."""
    with filled(directory, lambda database: None) as database:
        application = build(database)
        with serving(application) as url:
            yield url, Client(application)


@contextlib.contextmanager
def browsing() -> Iterator[Any]:
    """Give a browser."""
    # Installed only where the console is tested.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def run(page: Any, expression: str) -> Any:
    """Return the value of an expression in a page; no text in it can become code."""
    inspector = page.context.new_cdp_session(page)
    try:
        answer = inspector.send(
            "Runtime.evaluate",
            {"expression": expression, "awaitPromise": True, "returnByValue": True},
        )
    finally:
        inspector.detach()
    assert "exceptionDetails" not in answer, answer
    return answer["result"].get("value")


def settled(page: Any) -> None:
    """Wait until a view shows its data."""
    page.wait_for_selector("main h1, main .state", state="attached")
    reading = "p.state[role=status]", "[aria-busy=true]", "button:text('reading')"
    for moving in reading:
        page.wait_for_selector(moving, state="detached", timeout=60_000)
