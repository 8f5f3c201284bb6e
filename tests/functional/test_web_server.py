"""The web server as clients meet it that are slow, rude or broken."""

import contextlib
import ctypes
import errno
import functools
import http.client
import itertools
import json
import logging
import os
import platform
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

import pytest
from gunicorn.workers import base
from waitress import task

from placement_foundation import ending
from placement_foundation.serving import interpreter, worker
from placement_foundation.serving.event_loop import EventLoop
from placement_foundation.serving.load import Load, Loads
from tests import programs

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

pytestmark = pytest.mark.embedded

SLOW = 150
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
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "placement.cmd.api", "--port=0", "--workers=2"],
            env=programs.environment(home),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout
    found = re.search(r":(\d+)/", process.stdout.readline())
    assert found
    yield int(found[1])
    end(process)


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0


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


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        POST + b'Content-Length: 100\r\n\r\n{"',
        CHUNKED + b'2\r\n{"',
        (b"GET /traits HTTP/1.1\r\n" + IDENTITY + b"\r\n") * 20,
    ],
    ids=["silent", "half a header", "half a body", "half a chunk", "reads nothing"],
)
def test_slow_clients_do_not_hold_up_others(port: int, begin: bytes) -> None:
    with contextlib.ExitStack() as clients:
        for _ in range(SLOW):
            client = clients.enter_context(connect(port))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(begin)
        for _ in range(4):
            other = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            other.request("GET", "/")
            assert other.getresponse().status == 200
            other.close()


def test_a_header_cannot_pass_for_the_mount_of_the_service(port: int) -> None:
    answer = send(port, b"GET / HTTP/1.1\r\nHost: x\r\nSCRIPT_NAME: /x\r\n\r\n")
    assert status(answer) == 200


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
    assert (b"\r\nAllow: GET, POST\r\n" in answer) == (expected == 405)
    assert b"\r\nX-Openstack-Request-Id: req-" in answer


def test_an_address_may_have_characters_that_are_not_encoded(port: int) -> None:
    name = f"\N{SNOWMAN}{os.getpid()}"
    body = f'{{"name": "{name}"}}'.encode()
    length = f"Content-Length: {len(body)}\r\n\r\n".encode()
    assert status(send(port, POST + length + body)) == 200
    address = f"/resource_providers?name={name}".encode()
    with connect(port) as client:
        client.sendall(b"GET " + address + b" HTTP/1.0\r\n" + IDENTITY + b"\r\n")
        answer = b"".join(iter(functools.partial(client.recv, 65536), b""))
    assert status(answer) == 200
    body = answer.partition(b"\r\n\r\n")[2]
    [found] = json.loads(body)["resource_providers"]
    assert found["name"] == name
    nowhere = f"GET /resource_providers/{name} HTTP/1.1\r\n".encode() + IDENTITY
    assert status(send(port, nowhere + b"\r\n")) == 404


@pytest.mark.parametrize(
    "line",
    [
        "g\N{SNOWMAN}t / HTTP/1.1",
        "get",
        "/ HTTP/1.1",
        "GET http://[ HTTP/1.1",
        # Encoding it would take too long.
        "GET /" + "\N{SNOWMAN}" * worker.LONGEST_TO_ENCODE + " HTTP/1.1",
    ],
    ids=["method", "method alone", "no method", "address", "long"],
)
def test_a_line_that_is_no_request(port: int, line: str) -> None:
    answer = send(port, line.encode() + b"\r\n" + IDENTITY + b"\r\n")
    assert status(answer) == 400


def test_a_host_is_not_needed_for_a_location(port: int) -> None:
    body = b'{"name": "cow"}'
    request = re.sub(rb"Host:.*\r\n|OpenStack.*\r\n", b"", POST)
    request = request.replace(b"HTTP/1.1", b"HTTP/1.0")
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    answer = send(port, request + length + body)
    assert status(answer) == 201
    assert b"ocation: http://127.0.0.1:%d/resource_providers/" % port in answer


@pytest.mark.parametrize(
    "body",
    [
        b"zz\r\n{}\r\n0\r\n\r\n",
        b"-1\r\n{}\r\n0\r\n\r\n",
        b"0x2\r\n{}\r\n0\r\n\r\n",
        b"1\r\n{}\r\n0\r\n\r\n",
        b"2;" + b"x" * 100_000 + b"\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 20_000,
    ],
    ids=["no hex", "negative", "0x", "wrong size", "long extension", "endless trailer"],
)
def test_a_malformed_chunked_body(port: int, body: bytes) -> None:
    assert status(send(port, CHUNKED + body)) == 400


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


def test_a_connection_is_kept_after_an_answer_without_a_body(port: int) -> None:
    request = b"PUT /traits/CUSTOM_KEPT HTTP/1.1\r\n" + IDENTITY
    with connect(port) as client:
        found = []
        for header in (b"", b"", b"Connection: close\r\n"):
            client.sendall(request + header + b"\r\n")
            found.append(read_header(client))
        assert [status(each) for each in found] == [201, 204, 204]
        assert [b"Connection: close" in each for each in found] == [False, False, True]
        assert client.recv(1) == b""


def test_a_long_question_is_answered(port: int) -> None:
    query = b"name=" + b"x" * 200_000
    request = b"GET /resource_providers?" + query + b" HTTP/1.1\r\n" + IDENTITY
    assert status(send(port, request + b"\r\n")) == 200


def test_a_request_line_has_an_end(port: int) -> None:
    assert status(send(port, b"GET /?" + b"x" * worker.LONGEST_REQUEST_LINE)) == 414


def test_a_header_has_an_end(port: int) -> None:
    line = b"GET / HTTP/1.1\r\nHost: x\r\n"
    assert status(send(port, line + b"X: y\r\n" * worker.LARGEST_HEADER)) == 431


def test_a_body_that_is_too_large_is_not_read(port: int) -> None:
    length = b"Content-Length: %d\r\n" % (worker.LARGEST_BODY + 1)
    answer = send(port, POST + length + b"Expect: 100-continue\r\n\r\n")
    assert status(answer) == 413


def test_a_client_that_sends_too_much_sees_why_it_is_refused(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/json", "X-Auth-Token": "admin"}
    body = b" " * (worker.LARGEST_BODY + 20_000_000)
    connection.request("POST", "/resource_providers", body, headers)
    assert connection.getresponse().status == 413
    connection.close()


BLOCK = 1_000_000
TOO_MANY = worker.LARGEST_BODY // BLOCK + 20
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
            # It is ended, not reset.
            answer = b"".join(iter(lambda: client.recv(4096), b""))
        assert status(answer) == 413
        assert status(send(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")) in (200, 300)


class Loop:
    """A listening socket whose events are handled one by one."""

    def __init__(
        self,
        application: "WSGIApplication | None" = None,
        threads: int = 1,
        connections: int = 10,
    ) -> None:
        self.events = EventLoop()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self._threads = task.ThreadedTaskDispatcher()
        self._threads.set_thread_count(threads)
        self.listener = worker.listen(
            application or say_hello,
            self.socket,
            self._threads,
            self.events,
            connection_limit=connections,
        )

    def turn(self) -> None:
        """Handle what there is to handle."""
        for _ in range(3):
            self.events.turn(0.01)
            self._look()

    def go_on(self, ended: threading.Event) -> None:
        """Handle what happens until the end."""
        while not ended.is_set():
            # As long as a test may take: nothing is found by looking again.
            self.events.turn(2 * PATIENCE)
            self._look()

    def _look(self) -> None:
        self.listener.look_at_deferred()
        self.listener.make_room()

    def close(self) -> None:
        self._threads.shutdown()
        # With the files of answers that nobody has read.
        for connection in list(self.listener.active_channels.values()):
            connection.handle_close()
        self.events.close()


def say_hello(
    environment: "WSGIEnvironment", start_response: "StartResponse"
) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]


def say_hello_after(go_on: threading.Event) -> "WSGIApplication":
    """Return an application that waits before it answers."""

    def answer(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        go_on.wait(PATIENCE)
        return say_hello(environment, start_response)

    return answer


@pytest.fixture
def loop() -> Iterator[Loop]:
    with contextlib.closing(Loop()) as loop:
        yield loop


@contextlib.contextmanager
def turning(loop: Loop) -> Iterator[Loop]:
    """Handle what happens in a thread of its own; close everything at the end."""
    ended = threading.Event()
    thread = threading.Thread(target=loop.go_on, args=(ended,))
    with contextlib.closing(loop):
        thread.start()
        try:
            yield loop
        finally:
            ended.set()
            loop.listener.wake()
            thread.join()


def is_closed(client: socket.socket) -> bool:
    client.settimeout(0.01)
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    ("begin", "limit"),
    [
        (b"", "HEADER_SECONDS"),
        (b"GET / HTTP/1.1\r\n", "HEADER_SECONDS"),
        (b"PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\n.", "BODY_SECONDS"),
    ],
)
def test_clients_that_take_too_long_are_disconnected(
    loop: Loop, monkeypatch: pytest.MonkeyPatch, begin: bytes, limit: str
) -> None:
    with connect(loop.port) as client:
        client.sendall(begin)
        loop.turn()
        loop.listener.hang_up(time.time())
        loop.turn()
        assert not is_closed(client)
        monkeypatch.setattr(worker, limit, 0)
        loop.listener.hang_up(time.time())
        loop.turn()
        assert is_closed(client)


def test_what_a_refused_client_still_sends_is_read_for_a_while(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(loop.port) as client:
        client.sendall(b"PUT / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")
        loop.turn()
        assert b"413" in client.recv(4096)
        for _ in range(3):
            client.sendall(b"x" * 1000)
            loop.listener.hang_up(time.time())
            loop.turn()
        (connection,) = loop.listener.active_channels.values()
        assert connection._drained == 3000
        monkeypatch.setattr(worker, "DRAIN_SECONDS", 0)
        loop.listener.hang_up(time.time())
        loop.turn()
        assert not loop.listener.active_channels


def test_a_refused_client_that_is_gone_is_not_worth_a_line(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    reset = struct.pack("ii", 1, 0)
    for _ in range(20):
        with connect(loop.port) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            client.sendall(b"x\r\n\r\n")
            loop.events.turn(0.01)
        loop.turn()
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


def test_a_refused_client_cannot_send_without_end(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "DRAIN_BYTES", 1500)
    with connect(loop.port) as client:
        client.sendall(b"PUT / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")
        loop.turn()
        client.sendall(b"x" * 2000)
        loop.turn()
        assert not loop.listener.active_channels


def test_a_connection_is_kept_between_requests_for_a_while(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(loop.port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        loop.turn()
        assert b"hello" in client.recv(4096)
        monkeypatch.setattr(worker, "HEADER_SECONDS", 0)
        loop.listener.hang_up(time.time())
        loop.turn()
        assert not is_closed(client)
        loop.listener.hang_up(time.time() + worker.IDLE_SECONDS + 1)
        loop.turn()
        assert is_closed(client)


def test_silent_connections_make_room(loop: Loop) -> None:
    with contextlib.ExitStack() as clients:
        silent = [clients.enter_context(connect(loop.port)) for _ in range(30)]
        client = clients.enter_context(connect(loop.port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in silent:
            loop.turn()
        assert b"hello" in client.recv(4096)
        assert is_closed(silent[0])


def test_a_request_that_has_begun_is_answered_before_the_end(loop: Loop) -> None:
    with connect(loop.port) as begun, connect(loop.port) as idle:
        begun.sendall(b"GET / HTTP/1.1\r\n")
        loop.turn()
        loop.listener.stop()
        assert loop.listener.finish()
        begun.sendall(b"Host: x\r\n\r\n")
        loop.turn()
        assert b"Connection: close" in begun.recv(4096)
        assert not loop.listener.finish()
        assert is_closed(idle)


def test_a_request_that_nobody_has_read_yet_is_answered_before_the_end(
    loop: Loop,
) -> None:
    with connect(loop.port) as client, connect(loop.port) as half:
        loop.turn()
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        half.sendall(b"GET / HTTP/1.1\r\n")
        loop.listener.stop()
        assert loop.listener.finish()
        half.sendall(b"Host: x\r\n\r\n")
        loop.turn()
        assert b"hello" in client.recv(4096)
        assert b"hello" in half.recv(4096)
        assert not loop.listener.finish()


def test_a_request_that_does_not_come_in_is_not_waited_for_at_the_end(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(loop.port) as client:
        client.sendall(b"GET / HTTP/1.1\r\n")
        loop.turn()
        loop.listener.stop()
        assert loop.listener.finish()
        monkeypatch.setattr(worker, "LAST_REQUEST_SECONDS", 0)
        assert not loop.listener.finish()
        assert is_closed(client)


def test_what_waits_for_news_learns_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> list[bytes]:
        deadline = time.monotonic() + PATIENCE
        while not ending.is_near() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert ending.is_near()
        return say_hello(environment, start_response)

    with contextlib.closing(Loop(wait)) as loop, connect(loop.port) as client:
        stopping = worker.Worker.__new__(worker.Worker)
        stopping.cfg = types.SimpleNamespace(graceful_timeout=PATIENCE)
        stopping._listeners, stopping._threads = [loop.listener], loop._threads
        monkeypatch.setattr(stopping, "_serve_once", lambda _: loop.turn())
        client.sendall(HELLO)
        loop.turn()
        stopping._stop()
        assert b"hello" in client.recv(4096)
    assert not ending.is_near()


class FullDisk:
    """A file on a disk that has no room."""

    def __init__(self, mode: str) -> None:
        pass

    def write(self, data: bytes) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        pass


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        each.getMessage() for each in caplog.records if each.name == worker.__name__
    ]


def test_a_body_that_cannot_be_stored_is_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", FullDisk)
    body = b"x" * 900_000
    header = b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    with turning(Loop()) as loop, connect(loop.port) as client:
        client.sendall(header + body)
        answer = b"".join(iter(functools.partial(client.recv, 65536), b""))
        assert status(answer) == 503
        assert status(send(loop.port, HELLO)) == 200
    (warning,) = warnings_of(caplog)
    assert "a request cannot be stored" in warning
    assert "No space left" in warning


def test_an_answer_that_cannot_be_stored_ends_with_its_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", FullDisk)
    whole = b"".join(b"%c" % number * 500_000 for number in range(100))

    def answer(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Length", str(len(whole)))])
        # More than the system takes, and so small that memory takes several of them.
        for begin in range(0, len(whole), 500_000):
            yield whole[begin : begin + 500_000]

    with turning(Loop(answer)) as loop, connect(loop.port) as client:
        client.sendall(HELLO)
        deadline = time.monotonic() + PATIENCE
        while not warnings_of(caplog) and time.monotonic() < deadline:
            time.sleep(0.01)
        found = b"".join(iter(functools.partial(client.recv, 65536), b""))
    body = found.partition(b"\r\n\r\n")[2]
    assert 0 < len(body) < len(whole)
    assert whole.startswith(body)
    (warning,) = warnings_of(caplog)
    assert "an answer cannot be stored" in warning


@pytest.mark.parametrize("length", [b"", b"Content-Length: 0\r\n"])
def test_no_body_is_waited_for_where_there_is_none(loop: Loop, length: bytes) -> None:
    expecting = b"GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
    with connect(loop.port) as client:
        client.sendall(expecting + length + b"\r\n")
        loop.turn()
        assert status(client.recv(4096)) == 200


def test_requests_sent_at_once_are_answered_in_turn(loop: Loop) -> None:
    with connect(loop.port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
        answer = b""
        for _ in range(20):
            loop.turn()
            if answer.count(b"hello") < 3:
                answer += client.recv(4096)
    assert answer.count(b"hello") == 3


HELLO = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def test_only_connections_where_something_happens_are_asked(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[int] = Counter()
    readable = worker.Connection.readable

    def count(connection: worker.Connection) -> bool:
        asked[connection.addr[1]] += 1
        return readable(connection)

    monkeypatch.setattr(worker.Connection, "readable", count)
    with contextlib.ExitStack() as clients:
        idle = [clients.enter_context(connect(loop.port)) for _ in range(5)]
        client = clients.enter_context(connect(loop.port))
        for _ in range(5):
            loop.turn()
        asked.clear()
        for _ in range(10):
            client.sendall(HELLO)
            loop.turn()
            assert b"hello" in client.recv(4096)
        assert set(asked) == {client.getsockname()[1]}
        # Once when it has sent a request, and not for the answer.
        assert asked.total() == 10
        assert all(not is_closed(each) for each in idle)


def test_a_small_answer_is_sent_at_once_and_a_large_one_is_not_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    send = worker.Connection.send

    def record(connection: worker.Connection, data: bytes, **options: bool) -> int:
        sizes.append(len(data))
        return int(send(connection, data, **options))

    def answer(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        body = b"x" * int(environment["PATH_INFO"][1:])
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]

    monkeypatch.setattr(worker.Connection, "send", record)
    with contextlib.closing(Loop(answer)) as loop, connect(loop.port) as client:
        for size in (100, worker.SENT_AT_ONCE):
            client.sendall(b"GET /%d HTTP/1.1\r\n\r\n" % size)
            loop.turn()
            assert len(read_answer(client)) == size
    (small, header, *rest) = sizes
    assert 100 < small < 300
    assert 0 < header < 300
    assert sum(rest) >= worker.SENT_AT_ONCE


def read_answer(client: socket.socket) -> bytes:
    """Return the body of an answer, and read nothing of what follows it."""
    header = b""
    while not header.endswith(b"\r\n\r\n"):
        one = client.recv(1)
        assert one, header
        header += one
    found = re.search(rb"Content-Length: (\d+)", header)
    assert found, header
    body = bytearray()
    while len(body) < int(found[1]):
        data = client.recv(min(int(found[1]) - len(body), 100_000))
        assert data
        body += data
    return bytes(body)


def test_the_loop_rests_while_a_thread_sends(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    written: list[worker.Connection] = []
    send, handle_write = worker.Connection.send, worker.Connection.handle_write

    def wait(connection: worker.Connection, data: bytes, **options: bool) -> int:
        begun.set()
        go_on.wait(PATIENCE)
        return int(send(connection, data, **options))

    def count(connection: worker.Connection) -> None:
        written.append(connection)
        handle_write(connection)

    monkeypatch.setattr(worker.Connection, "send", wait)
    monkeypatch.setattr(worker.Connection, "handle_write", count)
    with connect(loop.port) as client:
        client.sendall(HELLO)
        loop.turn()
        assert begun.wait(PATIENCE)
        loop.turn()
        # The client says more, which is for later.
        client.sendall(HELLO)
        for _ in range(5):
            loop.turn()
        assert written == []
        go_on.set()
        for _ in range(2):
            loop.turn()
            assert read_answer(client) == b"hello"


def test_a_thread_may_close_a_connection_while_the_loop_asks_it(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing: list[threading.Thread] = []

    def close(connection: worker.Connection) -> bool:
        if not closing:
            closing.append(threading.Thread(target=connection.handle_close))
            closing[0].start()
            # It would be done by now, if nothing held it.
            closing[0].join(0.2)
        return True

    with connect(loop.port) as client:
        loop.turn()
        (connection,) = loop.listener.active_channels.values()
        monkeypatch.setattr(worker.Connection, "writable", close)
        loop.events.look_at(connection)
        loop.turn()
        closing[0].join()
        assert is_closed(client)
    assert not loop.listener.active_channels


class HighLoad(Load):
    """The load of a process when others always have fewer connections in use."""

    def __init__(self) -> None:
        pass

    def is_lowest(self) -> bool:
        return False

    def lowest(self) -> int:
        return 1


def test_a_connection_waits_for_another_process_to_accept_it(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "DEFERRED_SECONDS", PATIENCE)
    loop.listener.load = HighLoad()
    for _ in range(3):
        with connect(loop.port):
            loop.turn()
            assert loop.listener.defers()
            # Another process.
            loop.socket.accept()[0].close()
            loop.turn()
            assert not loop.listener.defers()
    assert not loop.listener.active_channels


def test_a_process_that_waited_in_vain_accepts_all_that_come(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "DEFERRED_SECONDS", PATIENCE)
    monkeypatch.setattr(worker, "ALONE_SECONDS", PATIENCE)
    loop.listener.load = HighLoad()
    with contextlib.ExitStack() as clients:
        waiting = [clients.enter_context(connect(loop.port)) for _ in range(5)]
        loop.turn()
        assert loop.listener.defers()
        assert not loop.listener.active_channels
        monkeypatch.setattr(loop.listener, "_deferred_until", 0)
        for client in waiting:
            client.sendall(HELLO)
            loop.turn()
            assert not loop.listener.defers()
        for client in waiting:
            loop.turn()
            assert b"hello" in client.recv(4096)
        # Some time later others are waited for again.
        monkeypatch.setattr(loop.listener, "_alone_until", 0)
        clients.enter_context(connect(loop.port))
        loop.turn()
        assert loop.listener.defers()


def test_one_connection_at_a_time_is_taken_from_processes_that_accept_some(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = itertools.count()
    monkeypatch.setattr(worker, "DEFERRED_SECONDS", PATIENCE)
    monkeypatch.setattr(HighLoad, "lowest", lambda load: next(loads))
    loop.listener.load = HighLoad()
    with contextlib.ExitStack() as clients:
        for _ in range(3):
            clients.enter_context(connect(loop.port))
        for accepted in range(3):
            assert len(loop.listener.active_channels) == accepted
            loop.turn()
            assert loop.listener.defers()
            monkeypatch.setattr(loop.listener, "_deferred_until", 0)
            loop.turn()
        assert not loop.listener.defers()


def test_idle_connections_are_not_in_use(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "IN_USE_SECONDS", PATIENCE)
    with contextlib.ExitStack() as clients:
        client, *idle = [clients.enter_context(connect(loop.port)) for _ in range(4)]
        for _ in idle:
            loop.turn()
        loop.listener.hang_up(time.time())
        assert loop.listener.in_use == 4
        for connection in loop.listener.active_channels.values():
            connection.last_activity -= 2 * PATIENCE
        loop.listener.hang_up(time.time())
        assert loop.listener.in_use == 0
        # What is opened and closed counts at once.
        with connect(loop.port), connect(loop.port):
            loop.turn()
            assert loop.listener.in_use == 2
        idle[0].close()
        loop.turn()
        assert loop.listener.in_use == 0
        client.sendall(HELLO)
        loop.turn()
        loop.listener.hang_up(time.time())
        assert loop.listener.in_use == 1


def test_a_connection_is_in_use_while_its_request_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "IN_USE_SECONDS", -PATIENCE)
    go_on = threading.Event()
    with (
        contextlib.closing(Loop(say_hello_after(go_on))) as loop,
        connect(loop.port) as client,
    ):
        client.sendall(HELLO)
        loop.turn()
        loop.listener.hang_up(time.time())
        assert loop.listener.in_use == 1
        go_on.set()
        assert read_answer(client) == b"hello"
        while loop.listener.in_use:
            loop.turn()
            loop.listener.hang_up(time.time())


def test_a_process_that_is_full_is_not_waited_for(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = Loads()
    full = worker.Worker.__new__(worker.Worker)
    full._listeners, full._load = [loop.listener], loads.add(full)
    other = loads.add(loop)
    other.show(1)
    full._show_load()
    assert not other.is_lowest()
    monkeypatch.setattr(loop.listener, "in_connection_overflow", True)
    full._show_load()
    assert other.is_lowest()


def test_a_client_that_has_said_all_is_answered() -> None:
    go_on = threading.Event()
    with turning(Loop(say_hello_after(go_on))) as loop, connect(loop.port) as client:
        client.sendall(HELLO)
        client.shutdown(socket.SHUT_WR)
        time.sleep(0.1)
        go_on.set()
        assert read_answer(client) == b"hello"
        assert client.recv(1) == b""


PIECE = 8_000_000


def test_each_piece_of_a_stream_arrives_before_the_next_one_is_made() -> None:
    made: list[int] = []
    go_on = threading.Semaphore(0)

    def answer(
        environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Length", str(3 * PIECE))])
        for number in range(3):
            made.append(number)
            # More than the system takes at once.
            yield b"%d" % number * PIECE
            go_on.acquire(timeout=2 * PATIENCE)

    with turning(Loop(answer)) as loop, connect(loop.port) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 262_144)
        client.sendall(HELLO)
        body = len(read_header(client).partition(b"\r\n\r\n")[2])
        for number in range(3):
            while body < PIECE * (number + 1):
                data = client.recv(1_000_000)
                assert data
                body += len(data)
            assert made == list(range(number + 1))
            go_on.release()


def _answer_what_is_asked(
    environment: "WSGIEnvironment", start_response: "StartResponse"
) -> Iterable[bytes]:
    """Answer with so many bytes in so many pieces, each after so many microseconds."""
    size, pieces, pause = map(int, environment["PATH_INFO"][1:].split("-"))
    start_response("200 OK", [("Content-Length", str(size * pieces))])
    for _ in range(pieces):
        time.sleep(pause / 1e6)
        yield b"x" * size


def _ask_rudely(port: int, chance: random.Random) -> None:
    """Ask several times on a connection: all at once, bytewise, reading late."""
    with connect(port) as client:
        for _ in range(6):
            wanted = [
                (chance.choice([1, 500, 70_000, 900_000]), chance.choice([1, 1, 3]))
                for _ in range(chance.choice([1, 1, 1, 2, 4]))
            ]
            asked = b"".join(
                b"GET /%d-%d-%d HTTP/1.1\r\nHost: x\r\n\r\n"
                % (size, pieces, chance.choice([0, 0, 200, 3000]))
                for size, pieces in wanted
            )
            while asked:
                end = chance.choice([len(asked), 7, 40, 100])
                client.sendall(asked[:end])
                asked = asked[end:]
                time.sleep(chance.choice([0, 0, 0.001]))
            time.sleep(chance.choice([0, 0, 0.02]))
            ending = chance.random()
            if ending < 0.05:
                # Hang up in the middle.
                return
            if ending < 0.1:
                client.shutdown(socket.SHUT_WR)
            for size, pieces in wanted:
                assert read_answer(client) == b"x" * size * pieces
            if ending < 0.1:
                assert client.recv(1) == b""
                return


def test_rude_clients_all_get_what_they_asked_for() -> None:
    seed = random.randrange(10**9)
    print("seed", seed)
    failed: list[BaseException] = []

    def keep(ask: "Callable[[], None]") -> None:
        try:
            ask()
        except BaseException as failure:
            failed.append(failure)

    with turning(Loop(_answer_what_is_asked, threads=4, connections=100)) as loop:
        chances = [random.Random(seed + number) for number in range(40)]
        clients = [
            threading.Thread(
                target=keep, args=(functools.partial(_ask_rudely, loop.port, chance),)
            )
            for chance in chances
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    assert not failed, (seed, failed)


def test_a_byte_at_a_time_makes_a_request(loop: Loop) -> None:
    request = worker.Request(loop.listener.adj)
    for byte in b"PUT /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}":
        assert not request.completed
        assert request.received(bytes([byte])) == 1
    assert request.completed
    assert request.path == "/a"
    assert request.get_body_stream().read() == b"{}"


def test_what_stays_is_nothing_to_collect_and_threads_take_turns() -> None:
    program = (
        "import gc, sys; from placement_foundation.serving import interpreter; "
        "interpreter.settle(); "
        "print(gc.get_freeze_count() > 1_000, gc.get_threshold()[0], "
        "sys.getswitchinterval())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "50000", "0.0005"]


LARGE_ANSWERS = """
import resource, threading
from placement_foundation.serving import interpreter
{settle}
pieces = [bytes(100)] * 40_000
def answer():
    # Each is there more than once while it is made and sent.
    whole = b"".join(pieces)
    return whole[1:], whole[2:]
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def answer_many():
    answer()
    before = faults()
    for _ in range(20):
        answer()
    print(faults() - before)
for _ in range(3):
    thread = threading.Thread(target=answer_many)
    thread.start()
    thread.join()
"""


def _page_faults(settle: str, **environment: str) -> list[int]:
    """Return how many times memory was new to the process, in each thread."""
    program = LARGE_ANSWERS.format(settle=settle)
    # Others may have chosen another allocator, or set this one.
    plain = {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith(("MALLOC_", "GLIBC_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=plain | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(each) for each in done.stdout.split()]


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="only this library can keep memory"
)
def test_large_answers_use_the_memory_of_those_before() -> None:
    usual, kept = _page_faults(""), _page_faults("interpreter.settle()")
    # How many there usually are depends on the size of pages.
    assert 10 * max(kept) < min(usual)
    for name, value in (
        ("MALLOC_TRIM_THRESHOLD_", "100000"),
        ("MALLOC_MMAP_THRESHOLD_", "100000"),
        ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=100000"),
    ):
        told = _page_faults("interpreter.settle()", **{name: value})
        assert 10 * max(kept) < min(told), name


def test_what_the_environment_sets_of_memory_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[int] = []

    class Library:
        def __init__(self, name: None) -> None:
            self.name = name

        @staticmethod
        def mallopt(option: int, value: int) -> int:
            done.append(option)
            return option != refused

    def set_by_settling(**environment: str) -> list[int]:
        done.clear()
        with monkeypatch.context() as patch:
            for name in ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES", *interpreter.THRESHOLDS):
                patch.delenv(name, raising=False)
            for name, value in environment.items():
                patch.setenv(name, value)
            interpreter._keep_memory()
        return sorted(done)

    monkeypatch.setattr(ctypes, "CDLL", Library)
    trim, mmap, arenas = -1, -3, -8
    refused = None
    assert set_by_settling() == [arenas, mmap, trim]
    assert set_by_settling(MALLOC_ARENA_MAX="2") == [mmap, trim]
    assert set_by_settling(MALLOC_TRIM_THRESHOLD_="1") == [arenas]
    tunables = "glibc.malloc.arena_max=2:glibc.malloc.mmap_threshold=1"
    assert set_by_settling(GLIBC_TUNABLES=tunables) == []
    refused = mmap
    assert set_by_settling() == [arenas, mmap]


def test_what_is_loaded_before_the_fork_is_frozen_there_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    monkeypatch.setattr(base.Worker, "__init__", lambda _: None)
    monkeypatch.setattr(interpreter, "freeze", lambda: done.append("freeze"))
    monkeypatch.setattr(worker.Worker, "_loads", None)
    for _ in range(2):
        worker.Worker()
    assert done == ["freeze"]


def test_a_process_settles_when_it_has_its_application(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    monkeypatch.setattr(base.Worker, "load_wsgi", lambda _: done.append("load"))
    monkeypatch.setattr(interpreter, "settle", lambda: done.append("settle"))
    worker.Worker.load_wsgi(worker.Worker.__new__(worker.Worker))
    assert done == ["load", "settle"]


def test_a_process_may_open_the_files_that_its_connections_need() -> None:
    assert worker.allow_connections(10) == 10
    many = worker.allow_connections(10**9)
    assert 0 < many < 10**9


def test_a_process_that_may_open_few_files_accepts_connections_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64, 64))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: None)
    assert worker.allow_connections(1000) == worker.FEWEST
    assert "a process may open 64 files only" in caplog.text
    caplog.clear()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (128, 20_000))
    assert worker.allow_connections(5) == worker.FEWEST
    assert not caplog.text
