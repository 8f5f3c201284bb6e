"""The example of the page about nodes, followed to the letter."""

import dataclasses
from pathlib import Path

import pytest

from tests import walkthrough

pytestmark = pytest.mark.client

PAGE = Path(__file__).parents[2] / "docs" / "placement-nodes.rst"
# The address of the node service on the page.
ADDRESS = "127.0.0.1:6385"


def test_the_example_works_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The agent records its own providers here.
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with (
        walkthrough.serving(tmp_path, "placement-api") as placement,
        walkthrough.serving(tmp_path, "placement-nodes", "serve") as nodes,
    ):
        commands = [
            dataclasses.replace(told, command=told.command.replace(ADDRESS, nodes))
            for told in walkthrough.commands(PAGE)
            if "openstack" not in told.command and "db sync" not in told.command
            if "gunicorn" not in told.command
        ]
        assert len(commands) > 20
        printed = walkthrough.run(commands, placement, tmp_path)
    assert printed == [told.output for told in commands]
