"""Pages that show commands and what they print, followed to the letter."""

import dataclasses
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# The address of the service on the pages.
ADDRESS = "127.0.0.1:8778"


@dataclasses.dataclass(frozen=True, slots=True)
class Told:
    """A command of a page, and the output that the page shows."""

    command: str
    output: str


def commands(page: Path) -> list[Told]:
    """Return the commands of a page: lines after ``$``.

    They are continued after ``>``, or after a backslash at the end; so is a long line
    of the output.
    """
    blocks = re.findall(r"(?:^(?: {4}.*)?\n)+", page.read_text(), flags=re.MULTILINE)
    return [
        told
        for block in blocks
        for told in _commands(line.removeprefix("    ") for line in block.splitlines())
    ]


def files(page: Path) -> dict[str, str]:
    """Return the files that a page shows, by their name, which is the caption."""
    found = re.findall(
        r"\.\. code-block:: \w+\n +:caption: (.+)\n\n((?:    .*\n|\n)+)",
        page.read_text(),
    )
    return {name: textwrap.dedent(text).strip("\n") + "\n" for name, text in found}


def _commands(lines: Iterable[str]) -> Iterator[Told]:
    command: list[str] = []
    output: list[str] = []
    for line in [*lines, "$ "]:
        if line.startswith("$ "):
            if command:
                shown = "\n".join(output).strip("\n")
                yield Told("\n".join(command), re.sub(r"\\\n *", "", shown))
            command, output = [line[2:]], []
        elif line.startswith("> "):
            command.append(line[2:])
        elif command and command[-1].endswith("\\"):
            command.append(line)
        else:
            output.append(line)


def run(told: Sequence[Told], address: str, directory: Path) -> list[str]:
    """Run commands one after the other, and return what each of them prints.

    :param address: host and port of the service, in place of those of the page
    :param directory: where they run, and where the service keeps its database
    """
    # Each command is followed by a line that no other command prints.
    script = "".join(f"{each.command}\necho ======\n" for each in told)
    done = subprocess.run(
        ["bash", "-c", script.replace(ADDRESS, address)],
        cwd=directory,
        env={**os.environ, "PATH": _path(), "XDG_DATA_HOME": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    printed = done.stdout.split("======\n")
    return [each.strip("\n") for each in printed[:-1]]


@contextmanager
def serving(home: Path, *words: str) -> Iterator[str]:
    """Run a program that serves, and give its host and port.

    :param home: where it keeps its database
    """
    program = Path(sys.executable).with_name(words[0])
    with subprocess.Popen(
        [program, *words[1:], "--port", "0", "--workers", "1"],
        env={"XDG_DATA_HOME": str(home), "HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as service:
        try:
            assert service.stdout
            greeting = service.stdout.readline()
            found = re.search(r"http://(\S+)/", greeting)
            assert found, greeting
            yield found[1]
        finally:
            service.terminate()


def _path() -> str:
    """Return where programs are found, those that belong to the tests first."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
