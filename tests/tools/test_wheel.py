"""The wheel in an environment that has nothing else: ``tox -e wheel``."""

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from pathlib import Path

import pytest

from tests import programs

pytestmark = [
    pytest.mark.tool,
    pytest.mark.skipif(
        importlib.util.find_spec("build") is None,
        reason="the tool is installed by tox -e wheel",
    ),
]

SOURCE = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, made as a release is: by way of the source distribution."""
    made = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", made, SOURCE],
        check=True,
        capture_output=True,
    )
    [path] = made.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment in which only the wheel was installed."""
    place = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    python = place / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True)
    return python


def test_all_packages_say_that_they_are_typed(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    packages = {name.split("/")[0] for name in names if name.endswith("__init__.py")}
    assert packages == {
        "placement",
        "placement_clients",
        "placement_foundation",
        "placement_nodes",
        "placement_reservations",
    }
    assert {f"{package}/py.typed" for package in packages} <= names


def test_what_deployments_copy_is_in_it(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ("placement.conf.sample", "placement-api.service"):
        assert any(name.endswith(f"/share/placement/{wanted}") for name in names)
    manifest = "/share/placement/kubernetes/placement.yaml"
    assert any(name.endswith(manifest) for name in names)


def test_it_serves(python: Path, tmp_path: Path) -> None:
    program = python.with_name("placement-api")
    # Elsewhere than in the source, which would be found first.
    with tempfile.TemporaryDirectory() as elsewhere:
        service = subprocess.Popen(
            [program, "--port", "0", "--workers", "1"],
            cwd=elsewhere,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert service.stdout
            found = next(
                filter(None, (re.search(r"http://\S+:\d+", x) for x in service.stdout))
            )
            with urllib.request.urlopen(f"{found[0]}/openapi.json") as answer:
                assert json.load(answer)["openapi"] == "3.1.0"
            with urllib.request.urlopen(f"{found[0]}/readyz") as answer:
                assert answer.status == 200
            with urllib.request.urlopen(f"{found[0]}/console/") as answer:
                assert b"<!doctype html>" in answer.read().lower()
        finally:
            service.terminate()
            service.communicate(timeout=60)


@pytest.mark.parametrize("command", ["placement-manage", "placement-status"])
def test_its_commands_run(command: str, python: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [python.with_name(command), "--help"],
        env=programs.environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {command}")
