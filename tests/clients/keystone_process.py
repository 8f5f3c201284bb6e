"""A real Keystone and other services in processes of their own, served by gunicorn."""

import grp
import os
import pwd
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keystoneauth1 import session
from keystoneauth1.identity import v3

from tests import programs

PROGRAMS = Path(sys.executable).parent
PASSWORD = "secret"
REGION = "RegionOne"
PATIENCE_SECONDS = 60
SERVER = """
bind = "127.0.0.1:{port}"
threads = 2
wsgi_app = "{application}"
control_socket_disable = True
# Longer than a client may be idle between two tests.
keepalive = 300
"""
KEYSTONE = """
[DEFAULT]
log_file = {directory}/keystone.log
[database]
connection = sqlite:///{directory}/keystone.db
[fernet_tokens]
key_repository = {directory}/fernet
[credential]
key_repository = {directory}/credential
"""


@contextmanager
def serving(
    application: str, port: int, directory: Path, **environment: str
) -> Iterator[str]:
    """Run a WSGI application, and give its URL once it answers."""
    url = f"http://127.0.0.1:{port}"
    home = directory / application.split(".")[0]
    home.mkdir()
    # Keystone parses the arguments of its process, so gunicorn gets none.
    (home / "gunicorn.conf.py").write_text(
        SERVER.format(port=port, application=application)
    )
    with (home / "output").open("w") as output:
        process = subprocess.Popen(
            [PROGRAMS / "gunicorn"],
            cwd=home,
            env={**os.environ, **environment},
            stdout=output,
            stderr=output,
        )
        try:
            wait_for(url, process)
            yield url
        finally:
            process.terminate()
            process.wait()


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS):
                return
        except urllib.error.HTTPError as answer:
            # Keystone offers its versions with status 300.
            with answer:
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"{url} does not answer")


@contextmanager
def keystone_in(directory: Path) -> Iterator[str]:
    """Run Keystone with its administrator, and give the URL of its API."""
    port = programs.free_port()
    path = directory / "keystone.conf"
    path.write_text(KEYSTONE.format(directory=directory))
    url = f"http://127.0.0.1:{port}/v3"
    urls = [f"--bootstrap-{kind}-url={url}" for kind in ("admin", "internal", "public")]
    names = [f"--bootstrap-password={PASSWORD}", f"--bootstrap-region-id={REGION}"]
    (directory / "fernet").mkdir(mode=0o700)
    owner = [
        f"--keystone-user={pwd.getpwuid(os.getuid()).pw_name}",
        f"--keystone-group={grp.getgrgid(os.getgid()).gr_name}",
    ]
    for arguments in (
        ["db_sync"],
        ["fernet_setup", *owner],
        ["bootstrap", *names, *urls],
    ):
        command = [str(PROGRAMS / "keystone-manage"), f"--config-file={path}"]
        subprocess.run([*command, *arguments], check=True, capture_output=True)
    with serving(
        "keystone.wsgi.api:application",
        port,
        directory,
        OS_KEYSTONE_CONFIG_DIR=str(directory),
    ):
        yield url


def log_in(keystone: str, user: str, **scope: Any) -> session.Session:
    """Return a session of a user, for the project ``project_name`` or another scope."""
    if "project_name" in scope:
        scope["project_domain_name"] = "Default"
    return session.Session(
        v3.Password(
            keystone,
            username=user,
            password=PASSWORD,
            user_domain_name="Default",
            **scope,
        )
    )
