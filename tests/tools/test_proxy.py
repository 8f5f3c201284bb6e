"""Slow clients of the proxies in deploy/: they stop no other client.

Needs nginx and HAProxy: Debian's packages nginx-light and haproxy.
"""

import contextlib
import http.client
import json
import os
import resource
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import programs

pytestmark = pytest.mark.tool

DEPLOY = Path(__file__).parents[2] / "deploy"
SLOW = 300
# How long a client waits that does nothing slowly, at most, in seconds.
PATIENCE = 10
HEADERS = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement latest"}
LINES = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
POST = f"POST /resource_providers HTTP/1.1\r\nHost: x\r\n{LINES}"
HALF_A_BODY = f'{POST}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"'
LIST = f"GET /resource_providers HTTP/1.1\r\nHost: x\r\n{LINES}\r\n"
# Each kind of slow client: what it sends before it falls silent, and reads nothing.
KINDS = {
    "silent": "",
    "half a header": "GET / HTTP/1.1\r\nHost: x\r\n",
    "half a body": HALF_A_BODY,
    "unread answers": LIST * 3,
}
PROVIDERS = 300


def nginx(directory: Path, port: int, server: int) -> list[str]:
    """Write nginx's configuration, with the site of deploy/; return the command."""
    site = (DEPLOY / "nginx.conf").read_text()
    (directory / "site.conf").write_text(
        site.replace("8779", str(server)).replace("8778", f"127.0.0.1:{port}")
    )
    temporary = "".join(
        f"{kind}_temp_path {directory}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.getuid() == 0 else ""
    (directory / "nginx.conf").write_text(
        f"{user}daemon off;\npid {directory}/pid;\nerror_log stderr;\n"
        "events { worker_connections 4000; }\n"
        f"http {{\naccess_log off;\n{temporary}include {directory}/site.conf;\n}}\n"
    )
    return ["/usr/sbin/nginx", "-p", str(directory), "-c", f"{directory}/nginx.conf"]


def haproxy(directory: Path, port: int, server: int) -> list[str]:
    """Write HAProxy's configuration from that in deploy/; return the command."""
    text = (DEPLOY / "haproxy.cfg").read_text()
    text = text.replace("127.0.0.1:8779", f"127.0.0.1:{server}")
    text = text.replace("bind :8778", f"bind 127.0.0.1:{port}")
    (directory / "haproxy.cfg").write_text(text)
    return ["/usr/sbin/haproxy", "-db", "-f", f"{directory}/haproxy.cfg"]


@pytest.fixture(scope="module", params=[nginx, haproxy])
def port(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    """Give the port of a proxy in front of a service with two processes."""
    home, directory = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("proxy")
    write: Callable[[Path, int, int], list[str]] = request.param
    number = programs.free_port()
    with programs.serving("placement.cmd.api", "--workers=2", home=home) as url:
        server = urlsplit(url).port
        assert server
        for count in range(PROVIDERS):
            body = json.dumps({"name": f"host{count}"})
            assert get(server, "POST", "/resource_providers", body) == 200
        command = write(directory, number, server)
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as proxy:
            try:
                programs.wait_for(number)
                yield number
            finally:
                proxy.terminate()


def get(port: int, method: str, path: str, body: str | None = None) -> int:
    """Send a request, and return the status of its answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(connection):
        headers = {**HEADERS, "Content-Type": "application/json"} if body else HEADERS
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        response.read()
        return response.status


@pytest.mark.parametrize("kind", KINDS)
def test_slow_clients_stop_no_other(port: int, kind: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(4 * SLOW, hard)), hard))
    with contextlib.ExitStack() as clients:
        for _ in range(SLOW):
            client = clients.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(PATIENCE)
            client.connect(("127.0.0.1", port))
            client.sendall(KINDS[kind].encode())
        for _ in range(10):
            assert get(port, "GET", "/") == 200
            assert get(port, "GET", "/resource_providers") == 200


def test_what_is_too_large_is_refused(port: int) -> None:
    query = "x" * 2_000_000
    with contextlib.suppress(ConnectionError):
        assert get(port, "GET", f"/traits?name={query}") in (400, 414)
    with contextlib.suppress(ConnectionError):
        body = " " * 40_000_000
        assert get(port, "POST", "/resource_providers", body) == 413


def test_paths_and_long_queries_reach_the_service(port: int) -> None:
    assert get(port, "GET", "/resource_providers?name=" + "x" * 50_000) == 200
    assert get(port, "GET", "//traits") == 404
    assert get(port, "PUT", "/traits/CUSTOM%2FX") == 404
