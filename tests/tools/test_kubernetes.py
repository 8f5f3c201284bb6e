"""Kubernetes takes the manifests: ``tox -e kubernetes``."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.tool,
    pytest.mark.skipif(
        importlib.util.find_spec("kubernetes_validate") is None,
        reason="the tool is installed by tox -e kubernetes",
    ),
]

TOOL = Path(sys.executable).with_name("kubernetes-validate")
MANIFESTS = sorted((Path(__file__).parents[2] / "deploy" / "kubernetes").glob("*.yaml"))
OLDEST = "1.27"


def validate(path: Path, version: str) -> subprocess.CompletedProcess[str]:
    command = [str(TOOL), "--strict", "-k", version, str(path)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
@pytest.mark.parametrize("version", [OLDEST, "1.33"])
def test_a_manifest_is_valid(path: Path, version: str) -> None:
    done = validate(path, version)
    assert done.returncode == 0, done.stdout + done.stderr
