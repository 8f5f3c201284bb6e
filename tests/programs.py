"""The project's commands, run as programs."""

import contextlib
import os
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import pytest

# Tests pass options to a program through the environment only.
INHERITED = ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONWARNINGS")
PATIENCE_SECONDS = 60


def unconfigure(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Make this process see a machine without any configuration."""
    for name in list(os.environ):
        if name.startswith("OS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))


def environment(home: Path, connection: str | None = None) -> dict[str, str]:
    """Return the environment of a program on a machine without configuration files."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    settings = {"OS_PLACEMENT_DATABASE__MAX_RETRIES": "1"}
    if connection is not None:
        settings["OS_PLACEMENT_DATABASE__CONNECTION"] = connection
    return {**inherited, **settings, "HOME": str(home)}


def wait_for(port: int) -> None:
    """Wait until a program accepts connections."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port}")


class Program(subprocess.Popen[str]):
    """A program that a test that fails does not wait for."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind:
            self.terminate()
        super().__exit__(kind, value, traceback)


def start(
    module: str,
    *arguments: str,
    home: Path,
    connection: str | None = None,
    **variables: str,
) -> Program:
    """Start a program in a process of its own.

    :param variables: what its environment has besides
    """
    return Program(
        [sys.executable, "-m", module, *arguments],
        env={**environment(home, connection), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def free_port() -> int:
    """Return a port on which nothing listens."""
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """Return ports on which nothing listens.

    They are none that the system gives to a program that requests any: another one
    would get them before they are used.
    """
    found: set[int] = set()
    while len(found) < count:
        port = 10_000 + secrets.randbelow(20_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.add(port)
    return sorted(found)


@contextmanager
def without_reader() -> Iterator[int]:
    """Give a pipe without a reader."""
    end, pipe = os.pipe()
    os.close(end)
    try:
        yield pipe
    finally:
        os.close(pipe)


def read_until(lines: Iterable[str], *words: str) -> str:
    """Read lines until one has all of these words, and return that one."""
    for line in lines:
        if all(word in line for word in words):
            return line
    raise AssertionError(f"the program ended without a line with {words}")


def run(
    module: str, *arguments: str, home: Path, connection: str | None = None
) -> tuple[int, str, str]:
    """Run a program to its end; return exit code, output and errors."""
    process = start(module, *arguments, home=home, connection=connection)
    output, error_output = process.communicate(timeout=60)
    return process.returncode, output, error_output


@contextmanager
def serving(
    module: str, *arguments: str, home: Path, variables: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a service on a free port, and give its URL: see ``serving_as``."""
    with serving_as(module, *arguments, home=home, variables=variables) as (url, _):
        yield url


@contextmanager
def serving_as(
    module: str, *arguments: str, home: Path, variables: Mapping[str, str] | None = None
) -> Iterator[tuple[str, int]]:
    """Run a service on a free port, and give its URL and the id of its first process.

    Its output goes to the file ``service.log`` in ``home``: a pipe that is not read
    would fill up and block the service.

    :param variables: its environment; None means that of an unconfigured machine
    """
    log = home / "service.log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments, "--port", "0"],
            env=environment(home) if variables is None else dict(variables),
            stdout=output,
            stderr=output,
        ) as process,
    ):
        try:
            yield _announced(process, log), process.pid
        finally:
            process.terminate()


def _announced(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the URL that a service prints when it starts."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r"served at (http://[^/ ]+)/", log.read_text())
        if found:
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"the service does not start: {log.read_text()}")
