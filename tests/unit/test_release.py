"""The version is in ``setup.cfg`` only, and the newest release notes are of it."""

import configparser
from pathlib import Path

ROOT = Path(__file__).parents[2]


def as_numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_the_newest_release_notes_are_those_of_this_version() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    notes = [path.stem for path in (ROOT / "docs/release-notes").glob("[0-9]*.rst")]
    assert max(notes, key=as_numbers) == setup["metadata"]["version"]


def test_release_notes_begin_with_the_version_that_names_the_file() -> None:
    for path in (ROOT / "docs/release-notes").glob("[0-9]*.rst"):
        assert path.read_text().splitlines()[0] == path.stem
