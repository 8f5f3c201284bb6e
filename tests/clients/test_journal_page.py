"""The page about the journal, followed to the letter."""

import dataclasses
from pathlib import Path

import pytest

from tests import programs, walkthrough

pytestmark = pytest.mark.client

PAGE = Path(__file__).parents[2] / "docs" / "journal.rst"
# The port of the receiver on the page.
PORT = "8900"


def test_the_page_works_as_written(tmp_path: Path) -> None:
    port = str(programs.free_port())
    for name, text in walkthrough.files(PAGE).items():
        (tmp_path / name).write_text(text.replace(PORT, port))
    commands = [
        dataclasses.replace(told, command=told.command.replace(PORT, port))
        for told in walkthrough.commands(PAGE)
    ]
    assert len(commands) > 20
    with walkthrough.serving(tmp_path, "placement-api") as address:
        printed = walkthrough.run(commands, address, tmp_path)
    assert printed == [told.output for told in commands]
