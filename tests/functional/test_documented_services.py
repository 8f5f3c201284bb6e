"""The lines of the documents that run services for more than a trial, as written."""

import dataclasses
import http.client
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import programs

pytestmark = pytest.mark.embedded

DOCS = Path(__file__).parents[2] / "docs"
CONFIGURATION = """
[database]
connection = sqlite:///{directory}/the.db
[api]
auth_strategy = noauth2
[placement]
auth_type = none
endpoint_override = http://127.0.0.1:9
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Service:
    """A service: its name, the address to listen on, and a path and its status."""

    name: str
    address: str
    path: str
    status: int

    @property
    def page(self) -> str:
        """Return the document about it."""
        return (DOCS / f"{self.name}.rst").read_text()

    def environment(self, home: Path) -> dict[str, str]:
        """Return the environment in which its configuration is looked for."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        variable = f"OS_{self.name.upper().replace('-', '_')}_CONFIG_DIR"
        return {**programs.environment(home), "PATH": path, variable: str(home)}

    def serve(self, home: Path) -> programs.Program:
        """Start the service as its page says, but on a free port of this machine."""
        (line,) = re.findall(r"gunicorn --bind (?:.*\\\n)*.*", self.page)
        assert self.address in line
        line = line.replace(self.address, "127.0.0.1:0")
        line = line.replace("gunicorn", f"exec {sys.executable} -m gunicorn", 1)
        return programs.Program(
            ["bash", "-c", line],
            cwd=home,
            env=self.environment(home),
            stderr=subprocess.PIPE,
            text=True,
        )


SERVICES = [
    Service("placement-nodes", "0.0.0.0:6385", "/v1", 200),
    Service("placement-reservations", "0.0.0.0:1234", "/versions", 300),
]


@pytest.mark.parametrize("service", SERVICES, ids=lambda each: each.name)
@pytest.mark.lengthy
def test_gunicorn_serves_what_a_file_configures(
    tmp_path: Path, service: Service
) -> None:
    file = tmp_path / f"{service.name}.conf"
    file.write_text(CONFIGURATION.format(directory=tmp_path))
    (sync,) = set(re.findall(rf"{service.name} db sync", service.page))
    environment = service.environment(tmp_path)
    subprocess.run(["bash", "-c", sync], env=environment, cwd=tmp_path, check=True)
    with service.serve(tmp_path) as process:
        assert process.stderr
        line = programs.read_until(process.stderr, "Listening at")
        (port,) = re.findall(r"http://127.0.0.1:(\d+)", line)
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        connection.request("GET", service.path)
        assert connection.getresponse().status == service.status
        connection.close()
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0
