"""Commands whose reader leaves, whose disk is full, or whose terminal is old."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests import programs

PROGRAM = """
import sys
from placement_clients import output

def work():
    for _ in range(9):
        print("x" * 5000, flush=True)
    output.complain("program", ["done"])
    return 7

sys.exit(output.run("program", work, ends_with_reader=sys.argv[1:] == ["feed"]))
"""
FULL = Path("/dev/full")
NO_ANSWER = 3


def run(
    *arguments: str, output: int | IO[str], errors: int = subprocess.PIPE
) -> tuple[int, str]:
    """Return the exit status and the errors of a program."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=output,
        stderr=errors,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr or ""


def test_work_goes_on_without_a_reader() -> None:
    with programs.without_reader() as pipe:
        assert run(output=pipe) == (7, "program: done\n")


def test_work_goes_on_without_a_reader_of_errors() -> None:
    with programs.without_reader() as pipe:
        assert run(output=pipe, errors=subprocess.STDOUT) == (7, "")


def test_a_question_that_nobody_can_read_is_not_a_good_end() -> None:
    words = """
import sys
from placement_clients import output
from placement_foundation.serving import terminal
sys.exit(output.run("program", lambda: 7 if terminal.agrees("All?") else 8))
"""
    with programs.without_reader() as pipe:
        done = subprocess.run(
            [sys.executable, "-c", words],
            stdin=subprocess.DEVNULL,
            stderr=pipe,
            check=False,
        )
    assert done.returncode not in (0, 7)


def test_a_feed_ends_with_its_reader() -> None:
    with programs.without_reader() as pipe:
        assert run("feed", output=pipe) == (0, "")


def test_work_goes_on_if_standard_output_was_closed_before(tmp_path: Path) -> None:
    closed = f"exec {shlex.quote(sys.executable)} -c {shlex.quote(PROGRAM)} >&-"
    done = subprocess.run(
        ["/bin/sh", "-c", closed], stderr=subprocess.PIPE, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (7, "program: done\n")


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a disk that is full")
def test_a_full_disk_is_one_line() -> None:
    with FULL.open("w") as full:
        assert run(output=full) == (
            NO_ANSWER,
            "program: standard output: No space left on device\n",
        )
        assert run(output=full, errors=subprocess.STDOUT) == (NO_ANSWER, "")


def test_a_terminal_without_a_character_gets_its_number() -> None:
    words = """
import sys
from placement_clients import output

def work():
    print("Größe ☃")
    output.show_table(["NAME"], [["Größe ☃"]])
    output.complain("program", ["Größe ☃"])
    return 7

sys.exit(output.run("program", work))
"""
    done = subprocess.run(
        [sys.executable, "-c", words],
        env=os.environ | {"PYTHONIOENCODING": "ascii:strict"},
        capture_output=True,
        check=False,
        text=True,
    )
    shown = r"Gr\xf6\xdfe \u2603"
    assert (done.returncode, done.stdout, done.stderr) == (
        7,
        f"{shown}\nNAME\n{shown}\n",
        f"program: {shown}\n",
    )
