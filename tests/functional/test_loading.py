"""Web servers load the service by a module, a function, or the path of the command."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import programs

ROOT = Path(__file__).parents[2]
# As mod_wsgi and uWSGI load a file: under a name of their own.
BY_PATH = "runpy.run_path({script!r}, run_name='_mod_wsgi_1')['application']"
WAYS = {
    "a module": "importlib.import_module('placement.wsgi.api').application",
    "a function": "importlib.import_module('placement.wsgi').init_application()",
    "the path of the command": BY_PATH,
}
ASK = """
import importlib, runpy, webob
application = {expression}
response = webob.Request.blank("/").get_response(application)
assert response.json["versions"][0]["id"] == "v1.0", response.text
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.embedded
def test_a_server_loads_it(way: str, tmp_path: Path) -> None:
    script = str(Path(sys.executable).with_name("placement-api"))
    program = ASK.format(expression=WAYS[way].format(script=script))
    environment = programs.environment(tmp_path, f"sqlite:///{tmp_path}/placement.db")
    environment["OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP"] = "true"
    environment["OS_API__AUTH_STRATEGY"] = "noauth2"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.embedded
def test_gunicorn_says_in_one_line_what_the_sample_lacks(tmp_path: Path) -> None:
    sample = (ROOT / "etc" / "placement.conf.sample").read_text()
    (tmp_path / "placement.conf").write_text(sample)
    settings = str(ROOT / "deploy" / "gunicorn.conf.py")
    command = [sys.executable, "-m", "gunicorn", "--config", settings]
    environment = programs.environment(tmp_path)
    environment["OS_PLACEMENT_CONFIG_DIR"] = str(tmp_path)
    done = subprocess.run(
        [*command, "--bind", "127.0.0.1:0"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "option connection in group [placement_database]" in done.stderr
