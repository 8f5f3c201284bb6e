"""The tests that authors of clients keep with them: ``tox -e clients,nova``."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.client

# By package: how many there are at least.
OF_OSC_PLACEMENT = "osc_placement.tests.functional", "test_*.py", 160
OF_NOVA = "nova.tests.functional", "test_report_client.py", 18


@pytest.mark.parametrize(("package", "pattern", "least"), [OF_OSC_PLACEMENT, OF_NOVA])
def test_the_tests_of_a_client_pass(package: str, pattern: str, least: int) -> None:
    client = package.partition(".")[0]
    if importlib.util.find_spec(client) is None:
        pytest.skip(f"{client} is installed for another environment of tox")
    programs = str(Path(sys.executable).parent)
    done = subprocess.run(
        [sys.executable, "-m", "tests.clients.client_suite", package, pattern],
        env={
            **os.environ,
            "PATH": os.pathsep.join([programs, os.environ["PATH"]]),
            # Nova would replace the threads of the service, which is in its process.
            "OS_NOVA_DISABLE_EVENTLET_PATCHING": "1",
        },
        capture_output=True,
        text=True,
    )
    # Of each test that failed there is a report, from the first line of this kind on.
    report = done.stderr.partition("=" * 70)[2] or done.stderr
    assert done.returncode == 0, report[:10_000]
    ran = re.search(r"^Ran (\d+) tests", done.stderr, re.MULTILINE)
    assert ran
    assert int(ran[1]) >= least
