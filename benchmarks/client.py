"""Ways to reach the service: in this process, or over HTTP."""

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import webob
from oslo_config import cfg

from placement import app, conf
from placement_foundation.database.storage import Database
from placement_foundation.serving import interpreter

# Takes method, path and body; returns status and document.
Send: TypeAlias = Callable[[str, str, Any], tuple[int, bytes]]

HEADERS = {
    "x-auth-token": "admin",
    "accept": "application/json",
    "content-type": "application/json",
    "openstack-api-version": "placement 1.39",
}
SERVER = "import sys; from placement.cmd import api; sys.exit(api.main())"
SETTINGS = """
[placement_database]
connection = {url}
[api]
auth_strategy = noauth2
"""
# How long the server may take to start, in seconds.
PATIENCE = 120


def in_process(
    database: Database, *, keeps: bool = True, keep_journal_days: int = 30
) -> Send:
    """Return a function that sends requests to an application in this process.

    :param keeps: whether it keeps the forest between requests
    """
    config = configure()
    config.set_override("keep_forest", keeps, "placement")
    config.set_override("keep_journal_days", keep_journal_days, "ledger")
    application = app.build(config, database)
    interpreter.settle()

    def send(method: str, path: str, body: Any) -> tuple[int, bytes]:
        request = webob.Request.blank(path, method=method, headers=HEADERS)
        if body is not None:
            request.body = json.dumps(body).encode()
        response = request.get_response(application)
        return response.status_int, response.body

    return send


def configure() -> cfg.ConfigOpts:
    """Return the options of a service in this process that admits every caller."""
    config = cfg.ConfigOpts()
    conf.register(config)
    config.set_override("connection", "sqlite://", "placement_database")
    config.set_override("auth_strategy", "noauth2", "api")
    config([], project=conf.PROJECT, default_config_files=[], default_config_dirs=[])
    return config


@contextlib.contextmanager
def over_http(url: str) -> Iterator[Send]:
    """Yield a function that sends requests to a server over one connection."""
    with serving(url, workers=1) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        yield lambda method, path, body: ask_over(connection, method, path, body)
        connection.close()


@contextlib.contextmanager
def serving(url: str, workers: int) -> Iterator[int]:
    """Yield the port of a server on a database, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        settings = Path(directory, "placement.conf")
        settings.write_text(SETTINGS.format(url=url))
        arguments = ["--config-file", str(settings), "--workers", str(workers)]
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, *arguments, "--port", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(port)
            yield port
        finally:
            server.terminate()
            server.wait()


def wait_for(port: int) -> None:
    """Return once a server answers."""
    deadline = time.monotonic() + PATIENCE
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        with contextlib.closing(connection):
            try:
                ask_over(connection, "GET", "/", None)
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)


def ask_over(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any
) -> tuple[int, bytes]:
    """Send over a persistent connection; return status and document."""
    sent = None if body is None else json.dumps(body)
    connection.request(method, path, sent, HEADERS)
    response = connection.getresponse()
    return response.status, response.read()
