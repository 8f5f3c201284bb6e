"""The map of the code mentions only what exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = (ROOT / "docs/contributing.rst").read_text()
LITERALS = sorted(set(re.findall(r"``(.+?)``", MAP, re.DOTALL)))
PATHS = [text for text in LITERALS if "/" in text]
NAMES = [text for text in LITERALS if re.fullmatch(r"[A-Za-z_]{3,}", text)]
COMMANDS = re.findall(r"``tox -e (\w+)", MAP)
# Where the paths begin: those of the other services in each of them.
PLACES = [ROOT, ROOT / "placement_nodes"]
SOURCES = [
    path
    for package in (
        *("placement", "placement_clients", "placement_foundation"),
        "placement_nodes",
    )
    for path in (ROOT / package).rglob("*.py")
]

DOCUMENTS = [
    *ROOT.glob("*.rst"),
    *(ROOT / "docs").glob("*.rst"),
    *(ROOT / "docs/decisions").glob("*.rst"),
    *(ROOT / "docs/release-notes").glob("*.rst"),
]
LONGEST_LINE = 100


@pytest.mark.parametrize("path", PATHS)
def test_a_path_exists(path: str) -> None:
    assert any((place / path).exists() for place in PLACES)


@pytest.mark.parametrize("path", [path for path in PATHS if path.endswith(".py")])
def test_a_module_has_what_is_named_before_it(path: str) -> None:
    text = next((each / path).read_text() for each in PLACES if (each / path).exists())
    for name in re.findall(rf"``(\w+)`` in\s+``{re.escape(path)}``", MAP):
        assert re.search(rf"\b{name}\b", text), f"{name} is not in {path}"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_of_the_code(name: str) -> None:
    assert any(re.search(rf"\b{name}", path.read_text()) for path in SOURCES)


@pytest.mark.parametrize("environment", COMMANDS)
def test_an_environment_of_tox_exists(environment: str) -> None:
    assert f"[testenv:{environment}]" in (ROOT / "tox.ini").read_text()


def test_no_line_of_a_document_is_long() -> None:
    long = [
        f"{path.name}:{number}"
        for path in DOCUMENTS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
    assert long == []
