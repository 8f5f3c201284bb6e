"""Tools that were made for it read the description of the API: ``tox -e openapi``."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement import openapi
from placement.microversion import BY_NAME
from tests import programs

pytestmark = [
    pytest.mark.tool,
    pytest.mark.skipif(
        importlib.util.find_spec("schemathesis") is None,
        reason="the tools are installed by tox -e openapi",
    ),
]

PROGRAMS = Path(sys.executable).parent
# What callers may rely on: no internal errors, and no undocumented answers.
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
]
MICROVERSIONS = ["1.10", "1.39"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a new service."""
    home = tmp_path_factory.mktemp("home")
    options = ("--port", "0", "--workers", "1")
    service = programs.start("placement.cmd.api", *options, home=home)
    assert service.stdout
    for line in service.stdout:
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if found:
            break
    else:
        raise AssertionError("the service does not tell where it is")
    # A service that cannot write its log stands still.
    streams = [stream for stream in (service.stdout, service.stderr) if stream]
    readers = [threading.Thread(target=stream.read) for stream in streams]
    for reader in readers:
        reader.start()
    yield found[0]
    service.terminate()
    for reader in readers:
        reader.join()
    # Both are closed, and it has ended.
    with service:
        pass


def write(directory: Path, name: str) -> Path:
    path = directory / f"openapi-{name}.json"
    path.write_text(json.dumps(openapi.describe(BY_NAME[name])))
    return path


def write_without_header(directory: Path, name: str) -> Path:
    """Write a description that leaves the header of the microversion to the caller.

    A tool that leaves it out, to see what happens, asks at another microversion.
    """
    path = write(directory, name)
    document = json.loads(path.read_text())
    for item in document["paths"].values():
        for operation in item.values():
            del operation["parameters"][0]
    path.write_text(json.dumps(document))
    return path


def test_each_description_is_one_of_openapi(tmp_path: Path) -> None:
    paths = [write(tmp_path, name) for name in BY_NAME]
    done = subprocess.run(
        [PROGRAMS / "openapi-spec-validator", *paths], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": OK") == len(paths)


@pytest.mark.parametrize("microversion", MICROVERSIONS)
def test_no_request_is_answered_otherwise(
    microversion: str, url: str, tmp_path: Path
) -> None:
    examples = os.environ.get("PLACEMENT_TEST_OPENAPI_EXAMPLES", "5")
    command = [
        str(PROGRAMS / "schemathesis"),
        "run",
        str(write_without_header(tmp_path, microversion)),
        f"--url={url}",
        "--header=X-Auth-Token: admin",
        # Without it a request would be one at another microversion.
        f"--header=OpenStack-API-Version: placement {microversion}",
        f"--checks={','.join(CHECKS)}",
        "--phases=coverage,fuzzing",
        f"--max-examples={examples}",
        "--seed=1",
        "--no-color",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    tested = re.search(r"Tested: (\d+)", done.stdout)
    described = openapi.describe(BY_NAME[microversion])["paths"].values()
    assert tested, done.stdout
    assert int(tested[1]) == sum(map(len, described))
