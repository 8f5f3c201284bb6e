"""The example of the page about reservations, followed to the letter."""

import dataclasses
import importlib.util
import json
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import walkthrough
from tests.walkthrough import Told

pytestmark = pytest.mark.client

PAGE = Path(__file__).parents[2] / "docs" / "placement-reservations.rst"
# The address of the reservation service on the page.
ADDRESS = "127.0.0.1:1234"


@contextmanager
def running(home: Path) -> Iterator[tuple[str, str]]:
    """Give the addresses of Placement and of the reservation service."""
    configuration = home / "placement-reservations.conf"
    with walkthrough.serving(home, "placement-api") as placement:
        configuration.write_text(f"[placement]\nendpoint = http://{placement}\n")
        asked = ("placement-reservations", "serve", "--config-file", configuration)
        with walkthrough.serving(home, *map(str, asked)) as reservations:
            yield placement, reservations


def told(address: str) -> list[Told]:
    """Return the commands of the page, for the service at an address."""
    return [
        dataclasses.replace(each, command=each.command.replace(ADDRESS, address))
        for each in walkthrough.commands(PAGE)
    ]


def test_the_example_works_as_written(tmp_path: Path) -> None:
    with running(tmp_path) as (placement, reservations):
        commands = told(reservations)
        assert len(commands) > 20
        printed = walkthrough.run(commands, placement, tmp_path)
    assert printed == [each.output for each in commands]


@pytest.mark.skipif(
    importlib.util.find_spec("blazarclient") is None,
    reason="the client is installed by tox -e reservations",
)
def test_the_client_does_the_same_as_written(tmp_path: Path) -> None:
    (block,) = re.findall(
        r"(    alias reserve=(?:.*\n)(?:    .*\n)+)", PAGE.read_text()
    )
    script = f"shopt -s expand_aliases\nset -e\n{textwrap.dedent(block)}"
    with running(tmp_path) as (placement, reservations):
        commands = told(reservations)
        made = next(
            n for n, each in enumerate(commands) if "/inventories" in each.command
        )
        done = Told(script.replace(ADDRESS, reservations), "")
        left = Told("reservation GET /leases", "")
        # The host of the example is made first.
        *_, printed, nothing = walkthrough.run(
            [*commands[: made + 1], done, left], placement, tmp_path
        )
    assert "Created a new lease" in printed
    assert "Deleted lease: two" in printed
    assert json.loads(nothing) == {"leases": []}
