"""A process of the web server: gunicorn keeps it, waitress reads and writes in it.

A connection gets a thread when all of a request has come in, and leaves it when the
answer is made; a client that sends or reads slowly keeps no thread waiting. What takes
too long is closed.
"""

import contextlib
import logging
import os
import resource
import socket
import time
from typing import TYPE_CHECKING, Any

from gunicorn.workers import base
from waitress import adjustments, channel, parser, server, task, utilities, wasyncore

from placement_foundation import garbage

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

# How long a connection may take until all of a header has come in, and until all of a
# body has.
HEADER_SECONDS = 10
BODY_SECONDS = 60
# How long one may take no byte of an answer, or send nothing between two requests.
# Longer than the keep-alive of a proxy before it, so that the proxy hangs up first.
IDLE_SECONDS = 75
# How long a process that stops waits for a request that has begun to come in.
LAST_REQUEST_SECONDS = 2

# Many groups of resources, or many aggregates, make a long query.
LONGEST_REQUEST_LINE = 1024 * 1024
LARGEST_HEADER = 64 * 1024
# What may stand between two chunks of a body, or after the last one.
LARGEST_CHUNK_HEADER = 4 * 1024
# For applications that name no largest body themselves.
LARGEST_BODY = 32 * 1024 * 1024
END_OF_HEADER = b"\r\n\r\n"

SETTINGS = {
    "backlog": 2048,
    # The application knows which proxy is believed.
    "clear_untrusted_proxy_headers": False,
    "asyncore_use_poll": True,
    # What is not read yet goes to a file, and keeps no thread waiting.
    "outbuf_high_watermark": 1024 * 1024 * 1024,
    # Clients that hang up are not worth a line.
    "log_socket_errors": False,
    "max_request_header_size": LONGEST_REQUEST_LINE + LARGEST_HEADER,
    "ident": None,
}


class RequestLineTooLong(utilities.BadRequest):  # type: ignore[misc]
    """The first line of a request goes on and on."""

    code = 414
    reason = "URI Too Long"


class Request(parser.HTTPRequestParser):  # type: ignore[misc]
    """A request that comes in."""

    completed: bool
    error: utilities.Error | None

    def __init__(self, adj: adjustments.Adjustments) -> None:
        super().__init__(adj)
        self._header = bytearray()
        self.began = time.monotonic()

    def received(self, data: bytes) -> int:
        """Take what belongs to this request, and return how many bytes that was."""
        if self.headers_finished or self.completed:
            consumed: int = super().received(data)
            self.error = self.error or self._find_chunk_excess()
            self.completed = self.completed or bool(self.error)
        else:
            consumed = self._received_header(data)
        if self.error:
            # The client is not asked for the rest.
            self.expect_continue = False
        return consumed

    def _received_header(self, data: bytes) -> int:
        """Keep data until the header is complete, so that it is read through once."""
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
        """Tell whether the client takes too long to send it."""
        allowed = BODY_SECONDS if self.headers_finished else HEADER_SECONDS
        return now - self.began > allowed


class Answer(task.WSGITask):  # type: ignore[misc]
    """A request that a thread answers."""

    def execute(self) -> None:
        """Call the application."""
        if not self.channel.server.accepting:
            self.set_close_on_finish()
        super().execute()

    def get_environment(self) -> dict[str, Any]:
        """Return the environment of the application, with the path as it was sent."""
        environment: dict[str, Any] = super().get_environment()
        environment["PATH_INFO"] = self.request.path
        return environment


class Connection(channel.HTTPChannel):  # type: ignore[misc]
    """A connection of a client. Its requests are answered one after the other."""

    task_class = Answer
    parser_class = Request

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._opened = time.monotonic()
        self._used = False
        # Whether a request waits until the answer before it has been read.
        self._parked = False

    def is_idle(self) -> bool:
        """Tell whether nothing is to be answered, and nothing is still to be sent."""
        return not self.requests and not self.total_outbufs_len

    def is_overdue(self, now: float) -> bool:
        """Tell whether the client takes too long to send a request."""
        if not self.is_idle():
            return False
        if self.request is not None:
            return bool(self.request.is_overdue(now))
        return not self._used and now - self._opened > HEADER_SECONDS

    def is_stalled(self, now: float) -> bool:
        """Tell whether the client has read nothing of an answer for too long.

        :param now: seconds of the wall clock, which waitress notes the activity by
        """
        waiting = self._parked or not self.requests
        return waiting and now - self.last_activity > IDLE_SECONDS

    def has_begun(self, now: float) -> bool:
        """Tell whether a request has just begun to come in."""
        return (
            self.request is not None and now - self.request.began < LAST_REQUEST_SECONDS
        )

    def put_off(self) -> bool:
        """Put off the next request if the answer before it has not been read.

        :returns: whether it was put off
        """
        self._used = True
        # The event loop may go on as soon as it sees this, so it is not read again.
        unread = self.total_outbufs_len > 0
        self._parked = unread
        return bool(unread)

    def writable(self) -> bool:
        """Tell whether ``handle_write`` has anything to do."""
        return bool(self._parked or super().writable())

    def handle_write(self) -> None:
        """Send what is to be sent, then go on with what was put off."""
        super().handle_write()
        if self._parked and self.connected and not self.total_outbufs_len:
            self.server.add_task(self)


class Listening:
    """What accepts connections, and closes those that take too long."""

    channel_class = Connection
    served = 0

    def add_task(self, connection: Connection) -> None:
        """Let a thread answer the next request of a connection."""
        if not connection.put_off():
            self.served += 1
            super().add_task(connection)  # type: ignore[misc]

    def maintenance(self, now: float) -> None:
        """Close nothing: the event loop is about to look at it."""

    def hang_up(self, now: float) -> None:
        """Close connections whose clients take too long.

        Call it between two turns of the event loop only, and so ``make_room``.

        :param now: seconds of the wall clock
        """
        monotonic = time.monotonic()
        for connection in self._connections():
            if connection.is_overdue(monotonic) or connection.is_stalled(now):
                connection.handle_close()

    def make_room(self) -> None:
        """If there are as many connections as there may be, close the oldest idle ones.

        A tenth of those that ask for nothing.
        """
        here: Any = self
        if len(here._map) < here.adj.connection_limit:
            return
        idle = [one for one in self._connections() if one.is_idle()]
        idle.sort(key=lambda connection: float(connection.last_activity))
        for connection in idle[: len(idle) // 10 + 1]:
            connection.handle_close()

    def finish(self) -> bool:
        """Close what asks for nothing, and tell whether anything is left."""
        now = time.monotonic()
        for connection in self._connections():
            if connection.is_idle() and not connection.has_begun(now):
                connection.handle_close()
        return bool(self._connections())

    def stop(self) -> None:
        """Accept no more connections."""
        here: Any = self
        here.accepting = False
        wasyncore.dispatcher.close(here)

    def _connections(self) -> list[Connection]:
        here: Any = self
        return list(here.active_channels.values())


class TcpListener(Listening, server.TcpWSGIServer):  # type: ignore[misc]
    """A listening socket of the network."""


class UnixListener(Listening, server.UnixWSGIServer):  # type: ignore[misc]
    """A listening socket in the file system."""


def listen(
    application: "WSGIApplication",
    listener: socket.socket,
    threads: task.ThreadedTaskDispatcher,
    events: dict[int, Any],
    **settings: Any,
) -> TcpListener | UnixListener:
    """Let threads answer what comes in at a socket.

    :param events: what the event loop looks at, keyed by file descriptor; grows
    """
    unix = listener.family == socket.AF_UNIX
    address = listener.getsockname()
    kind = UnixListener if unix else TcpListener
    return kind(
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


class Worker(base.Worker):  # type: ignore[misc]
    """A process of gunicorn, which knows it as a worker class."""

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Refuse what waitress does not do."""
        if cfg.is_ssl:
            raise RuntimeError("TLS is for a proxy before the service")

    def load_wsgi(self) -> None:
        """Make the application, for which this process is there."""
        super().load_wsgi()
        garbage.settle()

    def run(self) -> None:
        """Serve until told to stop, then until all that has begun is answered."""
        # How many wait for a thread is no news either.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        self._map: dict[int, Any] = {}
        self._threads = task.ThreadedTaskDispatcher()
        self._threads.set_thread_count(self.cfg.threads)
        limits = {
            "connection_limit": allow_connections(self.cfg.worker_connections),
            # Refused from here on.
            "max_request_body_size": largest_body(self.wsgi) + 1,
        }
        self._listeners = [
            listen(self.wsgi, listener.sock, self._threads, self._map, **limits)
            for listener in self.sockets
        ]
        self._listeners += [
            listen(application, bound, self._threads, self._map, **limits)
            for bound, application in getattr(self.wsgi, "elsewhere", ())
        ]
        self._next_look = 0.0
        while self.alive and self._has_parent():
            self._serve_once(1)
        self._stop()

    def _serve_once(self, seconds: float) -> None:
        self.notify()
        wasyncore.loop(timeout=seconds, use_poll=True, map=self._map, count=1)
        now = time.time()
        for listener in self._listeners:
            listener.make_room()
            if now >= self._next_look:
                listener.hang_up(now)
        if now >= self._next_look:
            self._next_look = now + 1
        self.nr = sum(listener.served for listener in self._listeners)
        if self.nr >= self.max_requests:
            self.alive = False

    def _has_parent(self) -> bool:
        return bool(os.getppid() == self.ppid)

    def _stop(self) -> None:
        deadline = time.monotonic() + self.cfg.graceful_timeout
        for listener in self._listeners:
            listener.stop()
        while time.monotonic() < deadline and self._is_busy():
            self._serve_once(0.1)
        self._threads.shutdown(timeout=max(0, deadline - time.monotonic()))

    def _is_busy(self) -> bool:
        left = [listener.finish() for listener in self._listeners]
        return any(left)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop, and do not wait for the next event to notice."""
        super().handle_exit(sig, frame)
        for listener in getattr(self, "_listeners", []):
            listener.pull_trigger()


def largest_body(application: object) -> int:
    """Return how large a body an application takes, in bytes."""
    return int(getattr(application, "largest_body", LARGEST_BODY))


def allow_connections(wanted: int) -> int:
    """Return how many connections a process takes, of those that are wanted.

    Each may need a file for its request and one for its answer as well.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 3 * wanted + 200
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(1, min(wanted, (soft - 200) // 3))
    return wanted
