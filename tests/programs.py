"""The project's commands, run as programs."""

import os
import subprocess
import sys
from pathlib import Path

# Tests pass options to a program through the environment only.
INHERITED = ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONWARNINGS")


def environment(home: Path, connection: str | None = None) -> dict[str, str]:
    """Return the environment of a program on a machine without configuration files."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    settings = {"OS_PLACEMENT_DATABASE__MAX_RETRIES": "1"}
    if connection is not None:
        settings["OS_PLACEMENT_DATABASE__CONNECTION"] = connection
    return {**inherited, **settings, "HOME": str(home)}


def start(
    module: str, *arguments: str, home: Path, connection: str | None = None
) -> subprocess.Popen[str]:
    """Start a program in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env=environment(home, connection),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(
    module: str, *arguments: str, home: Path, connection: str | None = None
) -> tuple[int, str, str]:
    """Run a program to its end; return exit code, output and errors."""
    process = start(module, *arguments, home=home, connection=connection)
    output, error_output = process.communicate(timeout=60)
    return process.returncode, output, error_output
