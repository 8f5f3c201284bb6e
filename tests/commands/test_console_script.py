"""Console scripts where the extra ``clients`` is not installed."""

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = configparser.ConfigParser()
SETUP.read(Path(__file__).parents[2] / "setup.cfg")
SCRIPTS = {
    name: function
    for line in SETUP["options.entry_points"]["console_scripts"].strip().splitlines()
    for name, _, function in [line.partition(" = ")]
    if function.startswith("placement_clients.console_script")
}
EXTRA = [
    line.partition(">=")[0]
    for line in SETUP["options.extras_require"]["clients"].strip().splitlines()
]


def run(script: str, *missing: str) -> subprocess.CompletedProcess[str]:
    module, _, function = SCRIPTS[script].partition(":")
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({missing})); "
        f"from {module} import {function}; sys.exit({function}(['--help']))"
    )
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_missing_extra_is_named_in_one_line(script: str) -> None:
    ended = run(script, *EXTRA)
    # For these, 1 means something else, such as that no host is valid.
    others = {"placement-request": 3, "placement-explain": 3, "placement-audit": 2}
    assert ended.returncode == others.get(script, 1)
    assert ended.stdout == ""
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"{script}: ")
    assert line.endswith('pip install "placement-server[clients]"')


def test_a_missing_module_of_our_own_is_a_bug() -> None:
    ended = run("placement-request", "placement_clients.client")
    assert "Traceback" in ended.stderr
    assert "placement-server[clients]" not in ended.stderr
