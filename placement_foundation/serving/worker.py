"""A process of the web server: gunicorn manages it, waitress reads and writes in it.

A connection gets a thread when all of a request has come in, and releases it when the
answer is ready; a client that sends or reads slowly keeps no thread waiting.
Connections that take too long are closed.
"""

import contextlib
import logging
import os
import resource
import select
import socket
import tempfile
import time
from typing import TYPE_CHECKING, Any

from gunicorn.workers import base
from waitress import adjustments, channel, parser, server, task, utilities, wasyncore

from placement_foundation import ending
from placement_foundation.http import thread_limit
from placement_foundation.serving import interpreter
from placement_foundation.serving.event_loop import EventLoop
from placement_foundation.serving.load import Load, Loads

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LOG = logging.getLogger(__name__)

# How long a client may take to send a whole header, and a whole body.
HEADER_SECONDS = 10
BODY_SECONDS = 60
# How long a client may read no byte of an answer, or send nothing between two requests.
# Longer than the keep-alive of a proxy in front, so that the proxy hangs up first.
IDLE_SECONDS = 75
# How long a stopping process waits for a request that has begun to come in.
LAST_REQUEST_SECONDS = 2
# How long a new connection waits for processes that have fewer in use, and how often to
# look whether one has accepted it. If they accept nothing meanwhile, they are busy, or
# hang, and are not waited for again for a while.
DEFERRED_SECONDS = 0.005
DEFERRED_LOOK_SECONDS = 0.001
ALONE_SECONDS = 0.1
# A connection is in use for so long after it was opened, or something was sent on it.
IN_USE_SECONDS = 2
# How long, and how much, the rest of a refused request is read and thrown away. If the
# connection were closed at once, a client that is still sending would not see why.
DRAIN_SECONDS = 10
DRAIN_BYTES = 256 * 1024 * 1024
DRAINED_AT_ONCE = 256 * 1024

# Many groups of resources, or many aggregates, make a long query.
LONGEST_REQUEST_LINE = 1024 * 1024
LARGEST_HEADER = 64 * 1024
# The most bytes between two chunks of a body, or after the last one.
LARGEST_CHUNK_HEADER = 4 * 1024
# For applications that do not set their own limit.
LARGEST_BODY = 32 * 1024 * 1024
END_OF_HEADER = b"\r\n\r\n"
# A header and what follows it are sent at once if they are not larger.
SENT_AT_ONCE = 64 * 1024

SETTINGS = {
    "backlog": 2048,
    # The application knows which proxy to trust.
    "clear_untrusted_proxy_headers": False,
    # What the client has not read yet goes to a file, and keeps no thread waiting.
    "outbuf_high_watermark": 1024 * 1024 * 1024,
    # Clients that hang up are not worth a line in the log.
    "log_socket_errors": False,
    "max_request_header_size": LONGEST_REQUEST_LINE + LARGEST_HEADER,
    "ident": None,
}


# What an address may have instead of each byte, and up to which length: it takes the
# time of all connections.
ENCODED = [b"%c" % byte if byte < 0x80 else b"%%%02X" % byte for byte in range(256)]
LONGEST_TO_ENCODE = 65_536


class RequestLineTooLong(utilities.BadRequest):  # type: ignore[misc]
    """The first line of a request is too long."""

    code = 414
    reason = "URI Too Long"


class BodyNotStored(utilities.Error):  # type: ignore[misc]
    """There is no room for the body of a request."""

    code = 503
    reason = "Service Unavailable"


def _warn_of_disk(what: str, exc: OSError) -> None:
    LOG.warning("%s cannot be stored in %s: %s", what, tempfile.gettempdir(), exc)


class Request(parser.HTTPRequestParser):  # type: ignore[misc]
    """A request that is coming in."""

    completed: bool
    error: utilities.Error | None
    # waitress writes it into its log, and sets it only if the header can be parsed.
    path = ""

    def __init__(self, adj: adjustments.Adjustments) -> None:
        super().__init__(adj)
        self._header = bytearray()
        self.began = time.monotonic()

    def received(self, data: bytes) -> int:
        """Take what belongs to this request, and return how many bytes that was."""
        if self.headers_finished or self.completed:
            try:
                consumed: int = super().received(data)
            except OSError as exc:
                # A large body goes to a file.
                _warn_of_disk("a request", exc)
                self.error = BodyNotStored("the body cannot be stored")
                consumed = len(data)
            self.error = self.error or self._find_chunk_excess()
            self.completed = self.completed or bool(self.error)
        else:
            consumed = self._received_header(data)
        if self.completed:
            # Do not ask the client for the rest: there is none, or it is not wanted.
            self.expect_continue = False
        return consumed

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the header; leave it to the application what a method is.

        Characters of an address that ought to be encoded are.
        """
        method, space, rest = header_plus.partition(b" ")
        capitals = method.upper()
        if method != capitals or not rest.isascii():
            address, line_end, rest = rest.partition(b"\r\n")
            if not address.isascii() and len(address) <= LONGEST_TO_ENCODE:
                address = b"".join(map(ENCODED.__getitem__, address))
            header_plus = capitals + space + address + line_end + rest
        try:
            super().parse_header(header_plus)
        except ValueError as exc:
            # Of the library that splits addresses.
            raise parser.ParsingError("Bad URI") from exc
        self.command = method.decode("latin-1")

    def _received_header(self, data: bytes) -> int:
        """Keep data until the header is complete, so that it is parsed only once."""
        before = len(self._header)
        self._header += data
        end = self._header.find(END_OF_HEADER, max(0, before - len(END_OF_HEADER)))
        self.error = self._find_excess(len(self._header) if end < 0 else end)
        if self.error:
            self.parse_header(b"GET / HTTP/1.0\r\n")
            self.completed = True
            return len(data)
        if end < 0:
            return len(data)
        consumed: int = super().received(bytes(self._header))
        self._header.clear()
        return consumed - before

    def _find_excess(self, size: int) -> utilities.Error | None:
        line = self._header.find(b"\n")
        if line > LONGEST_REQUEST_LINE or (line < 0 and size > LONGEST_REQUEST_LINE):
            return RequestLineTooLong(f"more than {LONGEST_REQUEST_LINE} bytes")
        if line >= 0 and size - line > LARGEST_HEADER:
            return utilities.RequestHeaderFieldsTooLarge(
                f"more than {LARGEST_HEADER} bytes"
            )
        return None

    def _find_chunk_excess(self) -> utilities.Error | None:
        if not self.chunked or self.completed:
            return None
        kept = len(self.body_rcv.control_line) + len(self.body_rcv.trailer)
        if kept <= LARGEST_CHUNK_HEADER:
            return None
        return utilities.BadRequest(f"more than {LARGEST_CHUNK_HEADER} bytes")

    def is_overdue(self, now: float) -> bool:
        """Return whether the client takes too long to send it."""
        allowed = BODY_SECONDS if self.headers_finished else HEADER_SECONDS
        return now - self.began > allowed


class Task(task.WSGITask):  # type: ignore[misc]
    """A request that a thread answers."""

    def execute(self) -> None:
        """Call the application."""
        if not self.channel.server.accepting:
            self.set_close_on_finish()
        super().execute()

    def write(self, data: bytes) -> None:
        """Write a piece of the answer, the first together with the header."""
        if self.wrote_header:
            super().write(data)
            return
        self.channel.hold()
        try:
            super().write(data)
        finally:
            self.channel.release()

    def set_close_on_finish(self) -> None:
        """Close the connection after the answer, unless the answer just has no body.

        waitress takes that for an answer of unknown length.
        """
        stays = (
            self.version == "1.1"
            and not self.has_body
            and self.channel.server.accepting
            and self.request.headers.get("CONNECTION", "").lower() != "close"
        )
        if not stays:
            super().set_close_on_finish()

    def get_environment(self) -> dict[str, Any]:
        """Return the environment for the application: method, path, length as sent."""
        environment: dict[str, Any] = super().get_environment()
        environment["REQUEST_METHOD"] = self.request.command
        environment["PATH_INFO"] = self.request.path
        if self.request.chunked:
            # The client did not say how long the body is; waitress has added it up.
            environment.pop("CONTENT_LENGTH", None)
        return environment


class Connection(channel.HTTPChannel):  # type: ignore[misc]
    """A connection from a client. Its requests are answered one after the other."""

    task_class = Task
    parser_class = Request

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Whether it was opened, or something was sent on it, lately.
        self.in_use = True
        self.server.in_use += 1
        self._opened = time.monotonic()
        self._used = False
        # Whether a request waits until the answer before it has been read.
        self._parked = False
        # What is held until more comes, which is to be sent with it.
        self._held: list[bytes] | None = None
        # Whether a thread has left some of its answer to the event loop.
        self._left = False
        # Whether something came, or the end, while a thread was answering.
        self._heard = False
        # Whether the last request was refused before all of it had been read.
        self._refused = False
        # Since when the rest of it is thrown away, and how much that was so far.
        self._drains_since: float | None = None
        self._drained = 0

    def del_channel(self, connections: dict[int, Any] | None = None) -> None:
        """Forget it, since it is closed."""
        self.server.in_use -= self.in_use
        self.in_use = False
        super().del_channel(connections)

    def is_idle(self) -> bool:
        """Return whether there is nothing to answer and nothing left to send."""
        return not self.requests and not self.total_outbufs_len

    def is_overdue(self, now: float) -> bool:
        """Return whether the client takes too long to send a request."""
        if not self.is_idle():
            return False
        if self._drains_since is not None:
            return now - self._drains_since > DRAIN_SECONDS
        if self.request is not None:
            return bool(self.request.is_overdue(now))
        return not self._used and now - self._opened > HEADER_SECONDS

    def is_stalled(self, now: float) -> bool:
        """Return whether the client has read nothing of an answer for too long.

        :param now: seconds of the wall clock, by which waitress records activity
        """
        waiting = self._parked or not self.requests
        return waiting and now - self.last_activity > IDLE_SECONDS

    def has_begun(self, now: float) -> bool:
        """Return whether a request has just begun to come in."""
        return (
            self.request is not None and now - self.request.began < LAST_REQUEST_SECONDS
        )

    def close_unless_heard(self) -> None:
        """Close it, unless a request has come that has not been read yet."""
        if self._drains_since is None:
            # This closes it already if there is nothing to read.
            self.handle_read()
        begun = self.has_begun(time.monotonic())
        if self.connected and self.is_idle() and not begun:
            self.handle_close()

    def put_off(self) -> bool:
        """Put off the next request if the answer before it has not been read.

        :returns: whether it was put off
        """
        self._used = True
        # The event loop may act on this at once, so the buffer is not read again.
        unread = self.total_outbufs_len > 0
        self._parked = unread
        return bool(unread)

    def readable(self) -> bool:
        """Return whether to wait for what the client sends.

        While a thread answers, that is noticed, and read afterwards. So if nothing
        comes, as is usual, the end of an answer changes nothing for the event loop.
        """
        return not self._heard if self.requests else bool(super().readable())

    def writable(self) -> bool:
        """Return whether ``handle_write`` has anything to do.

        A thread that answers sends by itself as long as the client reads.
        """
        if self._parked or self.will_close or self.close_when_flushed:
            return True
        return self.total_outbufs_len > 0 and (self._left or not self.requests)

    def hold(self) -> None:
        """Hold what is written until ``release``."""
        self._held = []

    def release(self) -> None:
        """Send what was held, at once if it is not large."""
        held, self._held = self._held or [], None
        if sum(map(len, held)) <= SENT_AT_ONCE:
            held = [b"".join(held)]
        for each in held:
            self.write_soon(each)

    def write_soon(self, data: bytes) -> int:
        """Send it; leave to the event loop what the client does not read at once."""
        if self._held is not None:
            self._held.append(data)
            return len(data)
        # The event loop must not send what a full disk has left of an answer.
        with self.outbuf_lock:
            try:
                size: int = super().write_soon(data)
            except OSError as exc:
                # Not of the socket: waitress notes such errors, and raises none.
                _warn_of_disk("an answer", exc)
                self.will_close = True
                raise
        if self.total_outbufs_len and not self._left:
            self._left = True
            self.server.look_at(self)
        return size

    def handle_write(self) -> None:
        """Send what there is to send, then continue with a request that was put off."""
        if self.will_close:
            # Without sending more: it is broken, or what is left of its answer is.
            self.handle_close()
            return
        if self._refused and self.close_when_flushed:
            self._begin_to_drain()
            return
        # A thread may leave more in the meantime, and then says so.
        self._left = False
        super().handle_write()
        self._left = self._left or self.total_outbufs_len > 0
        if self._parked and self.connected and not self.total_outbufs_len:
            self.server.add_task(self)

    def service(self) -> None:
        """Answer a request, and note whether the server refuses it by itself."""
        self._refused = bool(self.requests[0].error)
        super().service()
        if self._heard or self.writable() or self.total_outbufs_len:
            self.server.look_at(self)

    def _begin_to_drain(self) -> None:
        """Send the rest of a refusal; then say that there is no more, but read on."""
        self._flush_exception(self._flush_some)
        if self.will_close:
            self.handle_close()
        elif self.connected and not self.total_outbufs_len:
            self.close_when_flushed = False
            self._drains_since = time.monotonic()
            try:
                self.socket.shutdown(socket.SHUT_WR)
            except OSError:
                self.handle_close()

    def handle_read(self) -> None:
        """Take what the client sends, or throw it away after a refusal."""
        self._heard = bool(self.requests)
        if self._heard:
            return
        if self._drains_since is None:
            super().handle_read()
            return
        try:
            data = self.recv(DRAINED_AT_ONCE)
        except OSError:
            data = b""
        self._drained += len(data)
        if self.connected and (not data or self._drained > DRAIN_BYTES):
            self.handle_close()


class Listening:
    """Accepts connections, and closes those that take too long."""

    channel_class = Connection
    served = 0
    # Shared with other processes that accept connections here, if there are any.
    load: Load | None = None
    # How many connections are in use: about, since threads may close some.
    in_use = 0
    # Until when a connection waits for one of them, and the lowest load at first.
    _deferred_until: float | None = None
    _lowest = 0
    # Until when they are not waited for.
    _alone_until = 0.0

    def readable(self) -> bool:
        """Return whether to wait for new connections."""
        return not self.defers() and bool(super().readable())  # type: ignore[misc]

    def handle_accept(self) -> None:
        """Accept a connection, or let it wait for a process with fewer in use."""
        now = time.monotonic()
        if self.load is None or now < self._alone_until or self.load.is_lowest():
            super().handle_accept()  # type: ignore[misc]
        else:
            self._deferred_until = now + DEFERRED_SECONDS
            self._lowest = self.load.lowest()

    def defers(self) -> bool:
        """Return whether a connection waits for other processes."""
        return self._deferred_until is not None

    def look_at_deferred(self) -> None:
        """End that wait if the connection is gone, or accept it if it is time to."""
        if self.load is None or self._deferred_until is None:
            return
        now, is_lowest = time.monotonic(), self.load.is_lowest()
        has_client = self._has_client()
        if has_client and now < self._deferred_until and not is_lowest:
            return
        self._deferred_until = None
        if has_client and not is_lowest and self.load.lowest() == self._lowest:
            self._alone_until = now + ALONE_SECONDS
        if has_client and self.readable():
            super().handle_accept()  # type: ignore[misc]

    def _has_client(self) -> bool:
        here: Any = self
        waiting = select.poll()
        waiting.register(here.socket, select.POLLIN)
        return bool(waiting.poll(0))

    def is_full(self) -> bool:
        """Return whether there are as many connections as there may be."""
        here: Any = self
        return bool(here.in_connection_overflow)

    def look_at(self, connection: Connection) -> None:
        """Have the event loop ask a connection again what it waits for."""
        here: Any = self
        here._map.look_at(connection)
        self.wake()

    def wake(self) -> None:
        """Have the event loop end its wait."""
        super().pull_trigger()  # type: ignore[misc]

    def pull_trigger(self) -> None:
        """Do nothing: waitress wakes the event loop after every answer.

        Connections call ``look_at`` when there is anything to do.
        """

    def add_task(self, connection: Connection) -> None:
        """Let a thread answer the next request of a connection."""
        if not connection.put_off():
            self.served += 1
            super().add_task(connection)  # type: ignore[misc]

    def maintenance(self, now: float) -> None:
        """Close nothing: the event loop is still using the connections."""

    def hang_up(self, now: float) -> None:
        """Close connections whose clients take too long, and count those in use.

        Call this, and ``make_room``, only between two turns of the event loop.

        :param now: seconds of the wall clock
        """
        monotonic = time.monotonic()
        for connection in self._connections():
            if connection.is_overdue(monotonic) or connection.is_stalled(now):
                connection.handle_close()
        since, left = now - IN_USE_SECONDS, self._connections()
        for connection in left:
            active = connection.last_activity >= since
            connection.in_use = active or bool(connection.requests)
        self.in_use = sum(connection.in_use for connection in left)

    def make_room(self) -> None:
        """Close the oldest idle connections if there are as many as there may be.

        This closes a tenth of those that are idle.
        """
        here: Any = self
        # Whether it accepts more depends on how many there are.
        here._map.look_at(self)
        if len(here._map) < here.adj.connection_limit:
            return
        idle = [one for one in self._connections() if one.is_idle()]
        idle.sort(key=lambda connection: float(connection.last_activity))
        for connection in idle[: len(idle) // 10 + 1]:
            connection.handle_close()

    def finish(self) -> bool:
        """Close idle connections, and return whether any connection is left."""
        now = time.monotonic()
        for connection in self._connections():
            if connection.is_idle() and not connection.has_begun(now):
                connection.close_unless_heard()
        return bool(self._connections())

    def stop(self) -> None:
        """Accept no more connections."""
        here: Any = self
        here.accepting = False
        self._deferred_until = None
        wasyncore.dispatcher.close(here)

    def _connections(self) -> list[Connection]:
        here: Any = self
        return list(here.active_channels.values())


class TcpListener(Listening, server.TcpWSGIServer):  # type: ignore[misc]
    """A listening socket on the network."""


class UnixListener(Listening, server.UnixWSGIServer):  # type: ignore[misc]
    """A listening socket in the file system."""


def listen(
    application: "WSGIApplication",
    listener: socket.socket,
    threads: task.ThreadedTaskDispatcher,
    events: EventLoop,
    load: Load | None = None,
    **settings: Any,
) -> TcpListener | UnixListener:
    """Let threads answer requests that come in at a socket.

    :param events: what watches the socket, and those of its clients
    :param load: what this process shows to others that accept connections at the socket
    """
    unix = listener.family == socket.AF_UNIX
    address = listener.getsockname()
    kind = UnixListener if unix else TcpListener
    made = kind(
        application,
        events,
        True,
        listener,
        dispatcher=threads,
        adj=adjustments.Adjustments(
            **SETTINGS,
            **settings,
            sockets=[listener],
            server_name="localhost" if unix else address[0],
        ),
        bind_socket=False,
        sockinfo=(listener.family, listener.type, listener.proto, address),
    )
    made.load = load
    return made


class Worker(base.Worker):  # type: ignore[misc]
    """A process of gunicorn; the worker class for its settings."""

    _loads: Loads | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # gunicorn makes it before it forks.
        if Worker._loads is None:
            Worker._loads = Loads()
            interpreter.freeze()
        self._load = Worker._loads.add(self)

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Refuse settings that waitress does not support."""
        if cfg.is_ssl:
            raise RuntimeError("TLS is for a proxy before the service")

    def load_wsgi(self) -> None:
        """Make the application, and tune this process for it."""
        super().load_wsgi()
        interpreter.settle()

    def run(self) -> None:
        """Serve until it is stopped, then until all that has begun is answered."""
        # The number of requests that wait for a thread is not worth a line, either.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        self._events = EventLoop()
        self._threads = task.ThreadedTaskDispatcher()
        self._threads.set_thread_count(self.cfg.threads)
        thread_limit.announce_threads(self.cfg.threads)
        limits = {
            "connection_limit": allow_connections(self.cfg.worker_connections),
            # Bodies of this size are refused.
            "max_request_body_size": largest_body(self.wsgi) + 1,
        }
        # Where each process has a socket of its own, only it can accept there.
        load = None if self.cfg.reuse_port else self._load
        self._listeners = [
            listen(
                self.wsgi, listener.sock, self._threads, self._events, load, **limits
            )
            for listener in self.sockets
        ]
        self._listeners += [
            listen(application, bound, self._threads, self._events, None, **limits)
            for bound, application in getattr(self.wsgi, "elsewhere", ())
        ]
        self._next_look = 0.0
        self._load.give_sign(time.monotonic())
        try:
            while self.alive:
                self._show_load()
                self._serve_once(1)
        finally:
            self._load.withdraw()
        self._stop()

    def _show_load(self) -> None:
        if any(listener.is_full() for listener in self._listeners):
            self._load.withdraw()
        else:
            in_use = sum(listener.in_use for listener in self._listeners)
            self._load.show(max(0, in_use))

    def _serve_once(self, seconds: float) -> None:
        defers = any(listener.defers() for listener in self._listeners)
        self._events.turn(DEFERRED_LOOK_SECONDS if defers else seconds)
        for listener in self._listeners:
            listener.look_at_deferred()
            listener.make_room()
        self.nr = sum(listener.served for listener in self._listeners)
        if self.nr >= self.max_requests:
            self.alive = False
        # The clock of the arbiter, which nobody sets.
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + 1
            self._look()

    def _look(self) -> None:
        """Do what is to be done once a second, however many events there are."""
        self.notify()
        if os.getppid() != self.ppid:
            self.alive = False
        now = time.time()
        for listener in self._listeners:
            listener.hang_up(now)
        self._load.give_sign(time.monotonic())

    def _stop(self) -> None:
        deadline = time.monotonic() + self.cfg.graceful_timeout
        for listener in self._listeners:
            listener.stop()
        with ending.announced():
            while time.monotonic() < deadline and self._is_busy():
                self._serve_once(0.1)
            self._threads.shutdown(timeout=max(0, deadline - time.monotonic()))

    def _is_busy(self) -> bool:
        left = [listener.finish() for listener in self._listeners]
        return any(left)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop at once, without waiting for the next event."""
        super().handle_exit(sig, frame)
        for listener in getattr(self, "_listeners", []):
            listener.wake()


def largest_body(application: object) -> int:
    """Return the size of the largest body that an application accepts, in bytes."""
    return int(getattr(application, "largest_body", LARGEST_BODY))


# With fewer, waitress accepts none: it also counts its own sockets.
FEWEST = 10


def allow_connections(wanted: int) -> int:
    """Return how many of the wanted connections a process can take.

    Each may also need a file for its request and one for its answer.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 3 * wanted + 200
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        possible = (soft - 200) // 3
        if possible < min(wanted, FEWEST):
            LOG.warning(
                "a process may open %s files only, which is too few for connections "
                "and the database: raise the limit (LimitNOFILE, ulimit -n)",
                soft,
            )
        wanted = min(wanted, possible)
    return max(FEWEST, wanted)
