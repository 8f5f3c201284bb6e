"""The served files are those that the sources produce."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from placement.console import page

SOURCES = Path(__file__).parents[2] / "console"


# The hash in a name also depends on the directory of the sources.
HASH = re.compile(rb"-[A-Z0-9]{8}(?=\.(css|js|svg))")


def read(directory: Path) -> dict[bytes, bytes]:
    """Return the files by name, without the hashes in names."""
    return {
        HASH.sub(b"", path.name.encode()): HASH.sub(b"", path.read_bytes())
        for path in directory.iterdir()
    }


@pytest.mark.console
def test_the_built_files_are_those_of_the_sources(tmp_path: Path) -> None:
    node = shutil.which("node")
    assert node, "Node.js builds the console"
    built = tmp_path / "built"
    subprocess.run([node, "build.mjs", "--into", built], cwd=SOURCES, check=True)
    assert read(built) == read(page.FILES)
