"""A service of our own to put under stress."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import programs

PATIENCE_SECONDS = 60


@contextmanager
def running(database: str, workers: int, directory: Path) -> Iterator[str]:
    """Run the service on a database, and give its address.

    What it has to say goes to a file ``service.log`` in the directory.
    """
    environment = {
        **programs.environment(directory, database),
        "OS_API__AUTH_STRATEGY": "noauth2",
        "OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP": "true",
    }
    arguments = ["--port", "0", "--workers", str(workers)]
    path = directory / "service.log"
    with (
        path.open("w") as log,
        subprocess.Popen(
            [sys.executable, "-m", "placement.cmd.api", *arguments],
            env=environment,
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            yield _address(process, path)
        finally:
            process.terminate()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the address that the service says it has."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r"served at (http://\S+)/ ", log.read_text())
        if found:
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"the service does not start: {log.read_text()}")
