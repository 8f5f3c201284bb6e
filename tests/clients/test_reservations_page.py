"""The example of the page about reservations, followed to the letter."""

import dataclasses
from pathlib import Path

import pytest

from tests import walkthrough

pytestmark = pytest.mark.client

PAGE = Path(__file__).parents[2] / "docs" / "placement-reservations.rst"
# The address of the reservation service on the page.
ADDRESS = "127.0.0.1:1234"


def test_the_example_works_as_written(tmp_path: Path) -> None:
    configuration = tmp_path / "placement-reservations.conf"
    with walkthrough.serving(tmp_path, "placement-api") as placement:
        configuration.write_text(f"[placement]\nendpoint = http://{placement}\n")
        asked = ("placement-reservations", "serve", "--config-file", configuration)
        with walkthrough.serving(tmp_path, *map(str, asked)) as reservations:
            commands = [
                dataclasses.replace(
                    told, command=told.command.replace(ADDRESS, reservations)
                )
                for told in walkthrough.commands(PAGE)
            ]
            assert len(commands) > 20
            printed = walkthrough.run(commands, placement, tmp_path)
    assert printed == [told.output for told in commands]
