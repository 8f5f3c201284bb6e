"""The forwarder, with a service and a receiver: nothing is missed."""

import base64
import contextlib
import hashlib
import hmac
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from placement_clients import client
from placement_clients.client import Client as Placement
from placement_clients.errors import Forbidden, PlacementError, Unauthorized
from placement_clients.feed import cli, signature, target
from placement_clients.feed.forwarding import Forwarder
from placement_clients.feed.state import State
from placement_clients.feed.target import Away, Refused
from placement_clients.output import Unusable
from tests.client import Client, new_uuid, wants
from tests.serving import Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
KILLS = 10
# How long the program may work before it is killed, whatever it does, in seconds.
LONGEST_LIFE = 1.0


class Receiver(ThreadingHTTPServer):
    """Keeps what it gets, and answers as it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Post)
        self.events: list[Any] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/changes"


class _Post(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        body = self.rfile.read(int(self.headers["content-length"]))
        status, headers = server.answers.pop(0) if server.answers else (204, {})
        if not self._is_signed(body):
            status = 401
        if status == 204:
            server.events.append(json.loads(body))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", "0")
        self.end_headers()

    def _is_signed(self, body: bytes) -> bool:
        """Verify a message as https://www.standardwebhooks.com says."""
        key = base64.b64decode(SECRET.removeprefix("whsec_"))
        said = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        signed = f"{said[0]}.{said[1]}.".encode() + body
        digest = hmac.new(key, signed, hashlib.sha256).digest()
        expected = f"v1,{base64.b64encode(digest).decode()}"
        return hmac.compare_digest(expected, self.headers["webhook-signature"])

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def provider(application: Any) -> tuple[Client, str]:
    client = Client(application)
    return client, client.make_provider(VCPU=1000)


def claim(where: tuple[Client, str]) -> str:
    client, provider = where
    consumer = new_uuid()
    body = wants({provider: {"VCPU": 1}})
    assert client.call("PUT", f"/allocations/{consumer}", body).status == 204
    return consumer


def webhook(receiver: Receiver) -> target.Webhook:
    key = signature.parse_secret(SECRET)
    return target.Webhook(receiver.url, lambda: "http://placement", key)


class Pauses(list[float]):
    """Instead of sleeping."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def forwarder(
    placement: Placement, receiver: Receiver, path: Path, **wishes: Any
) -> tuple[Forwarder, Pauses]:
    pauses = Pauses()
    made = Forwarder(
        placement, webhook(receiver), State(path), print, sleep=pauses, **wishes
    )
    return made, pauses


@pytest.fixture
def forward(
    placement: Placement, receiver: Receiver, tmp_path: Path
) -> Callable[..., Pauses]:
    """Give a function that forwards what has changed, and returns the pauses."""

    def forward(**wishes: Any) -> Pauses:
        made, pauses = forwarder(placement, receiver, tmp_path / "state", **wishes)
        made.run(once=True)
        return pauses

    forward()
    return forward


def test_what_changes_is_posted_in_order_and_signed(
    provider: tuple[Client, str], receiver: Receiver, forward: Callable[..., Pauses]
) -> None:
    assert receiver.events == []
    consumers = [claim(provider) for _ in range(3)]
    forward()
    assert [each["subject"] for each in receiver.events] == consumers
    first = receiver.events[0]
    assert first["type"] == "org.openstack.placement.allocations.changed"
    assert first["source"] == "http://placement"
    assert first["data"]["after"] == {provider[1]: {"VCPU": 1}}
    forward()
    assert len(receiver.events) == 3


def test_a_receiver_that_is_away_is_tried_again_when_it_says(
    provider: tuple[Client, str],
    receiver: Receiver,
    forward: Callable[..., Pauses],
    tmp_path: Path,
) -> None:
    consumer = claim(provider)
    receiver.answers = [(503, {"retry-after": "7"}), (429, {}), (500, {})]
    pauses = forward(metrics=tmp_path / "feed.prom")
    assert pauses[0] == 7
    assert pauses[1] < pauses[2] <= 4
    assert [each["subject"] for each in receiver.events] == [consumer]
    metrics = (tmp_path / "feed.prom").read_text()
    assert "placement_feed_retries_total 3" in metrics


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"",
        b"{}",
        b"[]",
        b'{"changes": [{}], "cursor": "1", "more": false}',
    ],
)
def test_a_page_that_is_not_from_placement_is_asked_for_again(
    application: "WSGIApplication",
    provider: tuple[Client, str],
    receiver: Receiver,
    tmp_path: Path,
    body: bytes,
) -> None:
    strange = [body] * 2

    def behind_a_proxy(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> "Iterable[bytes]":
        if not strange:
            return application(environ, start_response)
        start_response("200 OK", [])
        return [strange.pop()]

    with serving(behind_a_proxy) as served:
        placement = client.from_environment(url=served.url, token="admin")
        forward, pauses = forwarder(placement, receiver, tmp_path / "state")
        forward.run(once=True)
        assert (len(pauses), strange) == (2, [])
        consumer = claim(provider)
        strange.append(body)
        forward.run(once=True)
    assert [each["subject"] for each in receiver.events] == [consumer]


def test_a_pause_is_neither_none_nor_longer_than_a_day(
    provider: tuple[Client, str], receiver: Receiver, forward: Callable[..., Pauses]
) -> None:
    claim(provider)
    never = "Fri, 31 Dec 9999 23:59:59 GMT"
    wanted = ["0", "Thu, 01 Jan 1970 00:00:00 GMT", never, "9" * 400]
    receiver.answers = [(503, {"retry-after": each}) for each in wanted]
    pauses = forward()
    assert 0.5 <= pauses[0] <= 1 <= pauses[1] <= 2
    assert pauses[2:] == [86400, 86400]


def test_it_rests_where_the_service_has_no_place_to_wait(
    placement: Placement, receiver: Receiver, tmp_path: Path
) -> None:
    pages = [{"changes": [], "cursor": "7", "more": False}] * 3
    placement.get = lambda *_, **__: pages.pop()  # type: ignore[method-assign]
    State(tmp_path / "state").save("7")
    forward, pauses = forwarder(placement, receiver, tmp_path / "state")
    with pytest.raises(IndexError):
        forward.run()
    assert len(pauses) == 3
    assert all(1 <= each <= 2 for each in pauses)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirection_is_no_delivery(receiver: Receiver, status: int) -> None:
    receiver.answers = [(status, {"location": receiver.url})]
    with pytest.raises(Refused, match=f"answers {status}"):
        webhook(receiver).deliver(A_CHANGE)
    assert receiver.events == []


def test_a_cursor_that_is_gone_and_a_refusal_have_their_exit_statuses(
    service: Served,
    provider: tuple[Client, str],
    receiver: Receiver,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, secret = tmp_path / "state", tmp_path / "secret"
    State(path).save("000000000000.7.000000000000")
    secret.write_text(SECRET)
    arguments = [
        *("--url", service.url, "--token", "admin", "--once", "--state", str(path)),
        *("--webhook", receiver.url, "--secret-file", str(secret)),
    ]
    assert cli.main(arguments) == cli.GONE == 1
    said = capsys.readouterr().err
    assert "Read the fleet anew" in said
    assert "--resync" in said
    assert cli.main([*arguments, "--resync"]) == cli.DONE == 0
    gap = receiver.events.pop()["data"]
    assert (gap["type"], gap["generation"], gap["root"]) == ("journal.gap", None, None)
    claim(provider)
    consumer = claim(provider)
    receiver.answers = [(400, {}), (400, {})]
    assert cli.main(arguments) == cli.REFUSED == 3
    assert "answers 400" in capsys.readouterr().err
    assert cli.main([*arguments, "--skip-refused"]) == cli.DONE
    assert "is left out" in capsys.readouterr().err
    assert [each["subject"] for each in receiver.events] == [consumer]


def test_the_source_is_where_placement_is(
    service: Served,
    receiver: Receiver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OS_ENDPOINT", service.url)
    monkeypatch.setenv("OS_TOKEN", "admin")
    state, secret = tmp_path / "state", tmp_path / "secret"
    State(state).save("000000000000.7.000000000000")
    secret.write_text(SECRET)
    arguments = ["--state", str(state), "--webhook", receiver.url, "--resync", "--once"]
    assert cli.main([*arguments, "--secret-file", str(secret)]) == cli.DONE
    assert [each["source"] for each in receiver.events] == [service.url]


def test_a_filter_that_placement_refuses_is_a_wrong_option(
    service: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--url", service.url, "--token", "admin", "--once"]
    assert cli.main([*arguments, "--filter", "colour=green"]) == cli.BAD_CALL == 2
    said = capsys.readouterr().err
    assert said.startswith("placement-feed: Placement refuses this: ")
    assert "could not be reached" not in said


@pytest.mark.parametrize("given", ["since=oldest", "type=traits&wait=0", "since"])
def test_where_it_goes_on_is_no_filter(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["--url", "http://127.0.0.1:9", "--once", "--filter", given])
    assert left.value.code == cli.BAD_CALL
    assert "is no filter" in capsys.readouterr().err


def test_once_it_does_not_wait_for_a_role(
    service: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--url", service.url, "--token", "somebody", "--once"]
    assert cli.main(arguments) == cli.REFUSED == 3
    said = capsys.readouterr().err
    assert said.startswith("placement-feed: Placement refuses this: Policy does not")
    assert len(said.splitlines()) == 1


class LetIn(Exception):
    """The caller may read the feed now."""


@pytest.mark.parametrize("refusal", [Unauthorized, Forbidden])
def test_only_a_program_that_runs_on_waits_for_rights(
    receiver: Receiver,
    placement: Placement,
    tmp_path: Path,
    refusal: type[PlacementError],
) -> None:
    answers: list[Exception] = []

    def get(*_: Any, **__: Any) -> Any:
        raise answers.pop(0)

    placement.get = get  # type: ignore[method-assign]
    status = {Unauthorized: 401, Forbidden: 403}[refusal]
    for once in (True, False):
        answers[:] = [refusal("no", status=status), LetIn()]
        forward, pauses = forwarder(placement, receiver, tmp_path / "state")
        with pytest.raises(refusal if once else LetIn):
            forward.run(once=once)
        assert len(pauses) == (0 if once else 1)


@pytest.mark.lengthy
def test_killed_at_any_moment_it_misses_nothing(
    service: Served, provider: tuple[Client, str], receiver: Receiver, tmp_path: Path
) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    secret, state = tmp_path / "secret", tmp_path / "state"
    secret.write_text(SECRET)
    arguments = [
        *("--url", service.url, "--token", "admin", "--state", str(state)),
        *("--webhook", receiver.url, "--secret-file", str(secret)),
    ]
    assert cli.main([*arguments, "--once"]) == 0
    program = (
        "import sys; from placement_clients.feed.cli import main; sys.exit(main())"
    )
    consumers = []
    for number in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        seen, deadline = len(receiver.events), time.monotonic() + 60
        consumers += [claim(provider) for _ in range(8)]
        if number % 2:
            time.sleep(chance.uniform(0, LONGEST_LIFE))
        else:
            while len(receiver.events) == seen and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert cli.main([*arguments, "--once"]) == 0
    delivered = [each["subject"] for each in receiver.events]
    assert list(dict.fromkeys(delivered)) == consumers


class Killed(BaseException):
    """The process has ended."""


class Steps:
    """Counts the steps of the forwarder, and ends it at one of them."""

    def __init__(self) -> None:
        self.taken = 0
        self.last: int | None = None

    def take(self) -> None:
        self.taken += 1
        if self.last is not None and self.taken > self.last:
            # Whoever cleans up after it comes no further either.
            raise Killed

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def stepwise(*arguments: Any, **more: Any) -> Any:
            self.take()
            found = work(*arguments, **more)
            self.take()
            return found

        return stepwise


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Make a step of all that the forwarder does outside of its memory."""
    steps = Steps()
    for place, name in (
        (Placement, "get"),
        (target.Webhook, "deliver"),
        (tempfile, "mkstemp"),
        (os, "fsync"),
        (Path, "replace"),
        (Path, "unlink"),
    ):
        monkeypatch.setattr(place, name, steps.around(getattr(place, name)))
    return steps


def test_killed_at_any_step_it_misses_nothing_and_repeats_one_change_at_most(
    placement: Placement,
    provider: tuple[Client, str],
    receiver: Receiver,
    tmp_path: Path,
    steps: Steps,
) -> None:
    def forward() -> None:
        made, _ = forwarder(placement, receiver, tmp_path / "state")
        made.run(once=True)

    forward()
    for last in itertools.count():
        consumers = [claim(provider) for _ in range(3)]
        receiver.events.clear()
        steps.taken, steps.last = 0, last
        try:
            forward()
        except Killed:
            steps.last = None
            forward()
        else:
            break
        delivered = [each["subject"] for each in receiver.events]
        assert list(dict.fromkeys(delivered)) == consumers, last
        assert len(delivered) <= len(consumers) + 1, last
    # Reading, three deliveries with a file each, and so on, each before and after.
    assert last > 20


def test_a_signature_is_that_of_the_scheme() -> None:
    key = signature.parse_secret(SECRET)
    body = b'{"test": 2432232314}'
    signed = signature.sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_target_that_does_not_answer_is_away() -> None:
    nobody = target.Webhook("http://127.0.0.1:9/", lambda: "here")
    change = {"id": "1", "type": "journal.gap", "time": "", "subject": None}
    with pytest.raises(Away, match="does not answer"):
        nobody.deliver(change)


@contextlib.contextmanager
def answering(head: bytes, *drops: bytes, pause: float = 0.1) -> Iterator[str]:
    """Yield the address of a receiver that answers with a head, and then with drops.

    It goes on with the drops for as long as somebody reads.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with contextlib.suppress(OSError), listening.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(head)
                for drop in itertools.cycle(drops):
                    connection.sendall(drop)
                    time.sleep(pause)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        thread.join(10)
        assert not thread.is_alive()


A_CHANGE = {"id": "1", "type": "journal.gap", "time": "", "subject": None}
OK, HUGE = b"HTTP/1.1 200 OK\r\n", b"content-length: 1000000000000\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "drop", "pause"),
    [
        (OK + HUGE, b"x" * 65536, 0),
        (OK + b"\r\n", b"x" * 65536, 0),
        (OK + HUGE, b"x", 0.1),
        (OK + b"x-header: ", b"x", 0.1),
        (OK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n", 0.1),
    ],
)
def test_an_answer_without_end_is_a_delivery(
    head: bytes, drop: bytes, pause: float
) -> None:
    began = time.monotonic()
    with answering(head, drop, pause=pause) as url:
        target.Webhook(url, lambda: "here", seconds=0.5).deliver(A_CHANGE)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 100 OK\r\nx: "])
def test_an_answer_that_does_not_begin_in_time_is_none(head: bytes) -> None:
    with (
        answering(head, b"x", pause=0.1) as url,
        pytest.raises(Away, match="does not answer"),
    ):
        target.Webhook(url, lambda: "here", seconds=0.5).deliver(A_CHANGE)


def test_others_may_read_the_counts_but_not_the_cursor(
    forward: Callable[..., Pauses], tmp_path: Path
) -> None:
    mask = os.umask(0o027)
    try:
        forward(metrics=tmp_path / "feed.prom")
    finally:
        os.umask(mask)
    paths = (tmp_path / "state", tmp_path / "feed.prom")
    assert [path.stat().st_mode & 0o777 for path in paths] == [0o600, 0o640]


@pytest.mark.parametrize(
    "url",
    [
        "https://billing:secret@there/changes",
        "ftp://billing:secret@there/changes",
        "http://billing:secret/@there/changes",
        "http://there/all changes",
        "http://there/änderungen",
        "http:///changes",
        "http://there:0/changes",
        "there/changes",
    ],
)
def test_an_address_that_nothing_can_be_posted_to(url: str) -> None:
    with pytest.raises(Unusable, match="the address of the webhook") as caught:
        target.Webhook(url, lambda: "here")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "{}"])
def test_a_file_with_something_else_is_not_a_state(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "state"
    path.write_text(content)
    with pytest.raises(Unusable, match="is not a state of this program"):
        State(path).load()


@pytest.mark.parametrize("secret", ["not base64!", "whsec_é"])
def test_a_wrong_secret_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], secret: str
) -> None:
    path = tmp_path / "secret"
    path.write_text(secret)
    call = ["--url", "http://127.0.0.1:9", "--webhook", "http://127.0.0.1:9"]
    assert cli.main([*call, "--secret-file", str(path)]) == 2
    assert "the secret is not base64" in capsys.readouterr().err


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_what_may_pass_is_no_refusal(receiver: Receiver, status: int) -> None:
    receiver.answers = [(status, {})]
    with pytest.raises(Away):
        webhook(receiver).deliver(A_CHANGE)
    assert receiver.answers == []
