"""A terminal with a person at it."""

import io
import os
import pty
import subprocess
from collections.abc import Sequence
from pathlib import Path

WIDTH = 160


class Person(io.StringIO):
    """Standard input of this process, at which a person has typed something."""

    def isatty(self) -> bool:
        return True


def run(
    arguments: Sequence[str | Path],
    reply: bytes = b"",
    prompt: bytes = b"",
    /,
    **environment: str,
) -> tuple[int, str]:
    """Run a program on a terminal, and return its exit status and what it prints.

    :param reply: what the person types
    :param prompt: at the end of which output it is typed, each time; by default, it is
        typed once, at the start
    """
    settings = {"COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        arguments,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=os.environ | settings | environment,
        # Not the terminal on which the tests run, where passwords are read.
        start_new_session=True,
    )
    os.close(terminal)
    if not prompt:
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
        if prompt and printed.endswith(prompt):
            os.write(controller, reply)
    os.close(controller)
    return process.wait(), printed.decode()
