"""The quick start of the README, followed to the letter."""

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.client

README = Path(__file__).parents[2] / "README.rst"
PROGRAM = Path(sys.executable).with_name("placement-api")


def told() -> Iterator[tuple[str, str]]:
    """Yield the commands of the README, and what it says that they print."""
    lines = re.findall(r"^    (.*)$", README.read_text(), flags=re.MULTILINE)
    command: list[str] = []
    output: list[str] = []
    for line in lines:
        if line.startswith("$ "):
            if command:
                yield "\n".join(command), "\n".join(output)
            command, output = [line[2:]], []
        elif line.startswith("> "):
            command.append(line[2:])
        elif command:
            output.append(line)
    yield "\n".join(command), "\n".join(output)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Give the address of a service on an embedded database of its own."""
    with subprocess.Popen(
        [PROGRAM, "--port", "0", "--workers", "1"],
        env={"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as service:
        assert service.stdout
        greeting = service.stdout.readline()
        found = re.search(r"http://(\S+)/", greeting)
        assert found, greeting
        with urllib.request.urlopen(found[0], timeout=30) as root:
            assert root.status == 200
        yield found[1]
        service.terminate()


def test_the_quick_start_goes_as_told(address: str) -> None:
    commands = [(each, output) for each, output in told() if "openstack" not in each]
    assert len(commands) > 10
    # Each command is followed by a line that nothing else prints.
    script = "".join(f"{command}\necho ======\n" for command, _ in commands)
    done = subprocess.run(
        ["bash", "-c", script.replace("127.0.0.1:8778", address)],
        capture_output=True,
        text=True,
        check=True,
    )
    printed = [part.strip("\n") for part in done.stdout.split("======\n")]
    assert printed[:-1] == [output for _, output in commands]
