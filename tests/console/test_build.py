"""The files that are served are those that the sources make."""

import shutil
import subprocess
from pathlib import Path

import pytest

from placement.console import page

SOURCES = Path(__file__).parents[2] / "console"


def read(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.console
def test_the_built_files_are_those_of_the_sources(tmp_path: Path) -> None:
    node = shutil.which("node")
    assert node, "Node.js builds the console"
    built = tmp_path / "built"
    subprocess.run([node, "build.mjs", "--into", built], cwd=SOURCES, check=True)
    assert read(built) == read(page.FILES)
