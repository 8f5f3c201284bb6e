"""A terminal with a person at it."""

import os
import pty
import subprocess
from collections.abc import Sequence
from pathlib import Path

WIDTH = 160


def run(arguments: Sequence[str | Path], reply: bytes = b"") -> tuple[int, str]:
    """Run a program on a terminal, and return its exit status and what it prints.

    :param reply: what the person types
    """
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        arguments,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"},
    )
    os.close(terminal)
    os.write(controller, reply)
    printed = b""
    while True:
        try:
            chunk = os.read(controller, 65536)
        except OSError:
            break
        if not chunk:
            break
        printed += chunk
    os.close(controller)
    return process.wait(), printed.decode()
