"""The web server as clients meet it that are rude or broken, behind no proxy."""

import http.client
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import programs

pytestmark = pytest.mark.embedded

# The default of ``[api] max_request_body_size``.
LARGEST_BODY = 32 * 1024 * 1024
# How long a client waits that has done nothing wrong, at most.
PATIENCE = 10
IDENTITY = (
    b"Host: placement\r\nX-Auth-Token: admin\r\n"
    b"OpenStack-API-Version: placement latest\r\n"
)
POST = (
    b"POST /resource_providers HTTP/1.1\r\n"
    + IDENTITY
    + b"Content-Type: application/json\r\n"
)
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Give the port of a service with two processes and the embedded database."""
    home = tmp_path_factory.mktemp("home")
    with programs.serving("placement.cmd.api", "--workers=2", home=home) as url:
        port = urlsplit(url).port
        assert port
        yield port


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def send(port: int, *parts: bytes) -> bytes:
    """Send a request in parts, and return the answer up to the end of its header."""
    with connect(port) as client:
        for part in parts:
            client.sendall(part)
        return read_header(client)


def read_header(client: socket.socket) -> bytes:
    answer = b""
    while b"\r\n\r\n" not in answer:
        data = client.recv(4096)
        if not data:
            break
        answer += data
    return answer


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_a_path_is_taken_as_it_is(port: int) -> None:
    answer = send(port, b"GET //traits HTTP/1.1\r\n" + IDENTITY + b"\r\n")
    assert status(answer) == 404


@pytest.mark.parametrize(
    ("path", "expected"), [(b"/resource_providers", 405), (b"/nowhere", 404)]
)
@pytest.mark.parametrize("method", [b"get", b"Get", b"pOST"])
def test_a_method_in_lower_case_is_another_one(
    port: int, method: bytes, path: bytes, expected: int
) -> None:
    answer = send(port, method + b" " + path + b" HTTP/1.1\r\n" + IDENTITY + b"\r\n")
    assert status(answer) == expected
    header = answer.lower()
    assert (b"\r\nallow: get, post\r\n" in header) == (expected == 405)
    assert b"\r\nx-openstack-request-id: req-" in header


def test_a_host_is_not_needed_for_a_location(port: int) -> None:
    body = b'{"name": "cow"}'
    request = re.sub(rb"Host:.*\r\n|OpenStack.*\r\n", b"", POST)
    request = request.replace(b"HTTP/1.1", b"HTTP/1.0")
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    answer = send(port, request + length + body)
    assert status(answer) == 201
    assert b"ocation: http://127.0.0.1:%d/resource_providers/" % port in answer


def test_a_good_chunked_body(port: int) -> None:
    body = b'{"name": "\xc3\xa4"}'
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    assert status(send(port, CHUNKED, chunks)) == 200


def test_a_chunked_body_without_a_type(port: int) -> None:
    chunks = b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    ignored = b"PUT /traits/CUSTOM_CHUNKS HTTP/1.1\r\n" + IDENTITY
    assert status(send(port, ignored + chunks)) == 201
    needed = b"POST /resource_providers HTTP/1.1\r\n" + IDENTITY
    assert status(send(port, needed + chunks)) == 415


def test_a_long_question_is_answered(port: int) -> None:
    query = b"name=" + b"x" * 200_000
    request = b"GET /resource_providers?" + query + b" HTTP/1.1\r\n" + IDENTITY
    assert status(send(port, request + b"\r\n")) == 200


BLOCK = 1_000_000
TOO_MANY = LARGEST_BODY // BLOCK + 20
LENGTH = b"Content-Length: %d\r\n\r\n" % (TOO_MANY * BLOCK)
# The headers, what comes before a block, what after it, and what after the last one.
TOO_LARGE = {
    "of known length": (LENGTH, b"", b"", b""),
    "in chunks": (
        b"Transfer-Encoding: chunked\r\n\r\n",
        b"%x\r\n" % BLOCK,
        b"\r\n",
        b"0\r\n\r\n",
    ),
}


@pytest.mark.parametrize("body", TOO_LARGE)
@pytest.mark.parametrize(
    ("module", "path"),
    [
        ("placement_nodes.cmd.nodes", b"/v1/nodes"),
        ("placement_reservations.cmd.reservations", b"/v1/leases"),
    ],
)
def test_the_other_services_say_that_a_body_is_too_large(
    tmp_path: Path, module: str, path: bytes, body: str
) -> None:
    length, before, after, last = TOO_LARGE[body]
    header = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with programs.serving(module, "serve", "--workers=1", home=tmp_path) as url:
        port = urlsplit(url).port
        assert port
        with connect(port) as client:
            client.sendall(header % path + length)
            for _ in range(TOO_MANY):
                client.sendall(before + b" " * BLOCK + after)
            client.sendall(last)
            assert status(read_answer(client)) == 413
        assert status(send(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")) in (200, 300)


def test_an_unread_body_does_not_hold_up_the_next_request(port: int) -> None:
    """A body beyond what the server buffers, refused before it is read."""
    body = b"Content-Length: 20000\r\n\r\n" + b"x" * 20_000
    refused = b"PUT /nowhere HTTP/1.1\r\n" + IDENTITY + b"Content-Type: text/plain\r\n"
    with connect(port) as client:
        for _ in range(3):
            client.sendall(refused + body)
            assert b" 404 " in read_answer(client)
            client.sendall(b"GET / HTTP/1.1\r\n" + IDENTITY + b"\r\n")
            assert b" 200 " in read_answer(client)


def read_answer(client: socket.socket) -> bytes:
    """Read one answer with its body, and nothing of the next."""
    header = b""
    while not header.endswith(b"\r\n\r\n"):
        data = client.recv(1)
        assert data
        header += data
    length = re.search(rb"content-length: *(\d+)", header, re.IGNORECASE)
    left = int(length[1]) if length else 0
    while left:
        data = client.recv(min(left, 65_536))
        assert data
        left -= len(data)
    return header


def test_a_request_in_progress_is_answered_before_the_end(tmp_path: Path) -> None:
    """And what waits for news is answered at once."""
    module = "placement.cmd.api"
    with programs.serving_as(module, "--workers=1", home=tmp_path) as (url, process):
        port = urlsplit(url).port
        assert port
        assert status_of_root(url) == 200
        changes = b"GET /ledger/v1/changes?%s HTTP/1.1\r\n" + IDENTITY + b"\r\n"
        with connect(port) as waiting, connect(port) as half:
            half.sendall(POST + b'Content-Length: 14\r\n\r\n{"name"')
            waiting.sendall(changes % b"since=now&wait=30")
            time.sleep(1)
            began = time.monotonic()
            os.kill(process, signal.SIGTERM)
            assert status(read_answer(waiting)) == 200
            assert time.monotonic() - began < 5
            half.sendall(b':"now"}')
            assert status(read_answer(half)) == 200


@pytest.mark.lengthy
def test_readers_that_have_hung_up_leave_their_places(tmp_path: Path) -> None:
    module = "placement.cmd.api"
    changes = b"GET /ledger/v1/changes?since=now&wait=30 HTTP/1.1\r\n" + IDENTITY
    with programs.serving_as(module, "--workers=1", home=tmp_path) as (url, _):
        port = urlsplit(url).port
        assert port
        assert status_of_root(url) == 200
        # As many as may wait.
        readers = [connect(port) for _ in range(4)]
        for reader in readers:
            reader.sendall(changes + b"\r\n")
        time.sleep(1)
        for reader in readers:
            reader.close()
        time.sleep(2)
        began = time.monotonic()
        answer = send(port, changes.replace(b"wait=30", b"wait=3") + b"\r\n")
        assert status(answer) == 200
        assert time.monotonic() - began > 2


def status_of_root(url: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    finally:
        connection.close()
