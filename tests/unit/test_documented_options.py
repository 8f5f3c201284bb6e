"""The configurations in the documents of services name options that exist."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from placement_nodes import conf as nodes_conf
from placement_reservations import conf as reservations_conf

DOCS = Path(__file__).parents[2] / "docs"
PAGES: dict[str, ModuleType] = {
    "placement-nodes": nodes_conf,
    "placement-reservations": reservations_conf,
}
# Groups of other programs.
FOREIGN = {"filter_scheduler"}
BLOCK = re.compile(r"\.\. code-block:: ini\n\n((?:    .*\n|\n)+)")


def options(page: str) -> Iterator[tuple[str, str]]:
    """Yield the group and the name of each option that a page sets."""
    for block in BLOCK.findall((DOCS / f"{page}.rst").read_text()):
        group = ""
        for line in block.splitlines():
            if found := re.fullmatch(r" +\[(\w+)\]", line):
                group = found[1]
            elif found := re.match(r" +(\w+) = ", line):
                yield group, found[1]


@pytest.mark.parametrize("page", PAGES)
def test_each_option_exists(page: str) -> None:
    known = {
        (group, option.dest)
        for group, known in PAGES[page].list_options()
        for option in known
    }
    shown = [each for each in options(page) if each[0] not in FOREIGN]
    assert len(shown) > 5
    assert set(shown) <= known
