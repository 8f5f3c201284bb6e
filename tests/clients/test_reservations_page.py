"""The example of the page about reservations, followed to the letter."""

import dataclasses
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import walkthrough

pytestmark = pytest.mark.client

PAGE = Path(__file__).parents[2] / "docs" / "placement-reservations.rst"
# Where the page says that the reservation service is.
ADDRESS = "127.0.0.1:1234"


@contextmanager
def serving(home: Path, *words: str) -> Iterator[str]:
    """Run a program that serves, and give its address."""
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
            found = re.search(r"http://(\S+)/", service.stdout.readline())
            assert found
            yield found[1]
        finally:
            service.terminate()


def test_the_example_goes_as_told(tmp_path: Path) -> None:
    configuration = tmp_path / "placement-reservations.conf"
    with serving(tmp_path, "placement-api") as placement:
        configuration.write_text(f"[placement]\nendpoint = http://{placement}\n")
        asked = ("placement-reservations", "serve", "--config-file", configuration)
        with serving(tmp_path, *map(str, asked)) as reservations:
            commands = [
                dataclasses.replace(
                    told, command=told.command.replace(ADDRESS, reservations)
                )
                for told in walkthrough.commands(PAGE)
            ]
            assert len(commands) > 20
            printed = walkthrough.run(commands, placement, tmp_path)
    assert printed == [told.output for told in commands]
