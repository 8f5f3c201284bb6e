"""A process of the service that ends while the database is away."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from placement_foundation.database.storage import Database
from tests import backends, programs
from tests.proxy import Proxy

pytestmark = pytest.mark.skipif(backends.KIND == "sqlite", reason="of servers")

PATIENCE = 60


@pytest.fixture
def service(
    database: Database, network: Proxy, tmp_path: Path
) -> Iterator[subprocess.Popen[str]]:
    url = database.engine.url.set(host="127.0.0.1", port=network.port)
    connection = url.render_as_string(hide_password=False)
    environment = programs.environment(tmp_path, connection)
    environment["OS_API__AUTH_STRATEGY"] = "noauth2"
    command = ["-m", "placement.cmd.api", "--port=0", "--workers=2"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    yield process
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)


def children(process: subprocess.Popen[str]) -> set[int]:
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return {int(child) for child in path.read_text().split()}


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def status_of(address: str) -> int | None:
    request = urllib.request.Request(address, headers={"X-Auth-Token": "admin"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code
    except OSError:
        return None


def test_it_is_replaced_and_finds_the_database_again(
    service: subprocess.Popen[str], network: Proxy
) -> None:
    assert service.stdout
    found = re.search(r"http://\S+/", service.stdout.readline())
    assert found
    wait_until(lambda: status_of(found[0]) == 200)
    # The second one may be made after the first has answered.
    wait_until(lambda: len(children(service)) == 2)
    network.fail()
    before = children(service)
    for child in before:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    wait_until(lambda: len(children(service) - before) == 2)
    wait_until(lambda: status_of(found[0]) == 200)
    assert status_of(found[0] + "resource_providers") == 503
    assert service.poll() is None
    network.up = True
    assert status_of(found[0] + "resource_providers") == 200
