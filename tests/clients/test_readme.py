"""The examples of README and documentation, followed to the letter."""

import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import walkthrough

pytestmark = pytest.mark.client

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).with_name("placement-api")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Give the address of a service with its own embedded database."""
    with walkthrough.serving(tmp_path, "placement-api") as address:
        with urllib.request.urlopen(f"http://{address}/", timeout=30) as root:
            assert root.status == 200
        yield address


# Commands of other programs are not run here.
@pytest.mark.parametrize(
    ("page", "programs"),
    [
        ("README.rst", "openstack"),
        ("docs/placement-request.rst", None),
        ("docs/why-nothing-fits.rst", None),
        ("docs/apply.rst", None),
        ("docs/audit.rst", None),
        ("docs/placements.rst", None),
    ],
)
def test_a_page_works_as_written(
    page: str, programs: str | None, address: str, tmp_path: Path
) -> None:
    commands = [
        told
        for told in walkthrough.commands(ROOT / page)
        if not programs or programs not in told.command
    ]
    assert len(commands) >= 10
    printed = walkthrough.run(commands, address, tmp_path)
    assert printed == [told.output for told in commands]
