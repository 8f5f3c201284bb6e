"""The web server: gunicorn with its stock worker for threads, and how it is configured.

Slow clients are the business of the proxy in front. See docs/decisions/web-server.rst.
"""

import sys
from types import TracebackType
from typing import Any

from gunicorn.app import base

from placement_foundation import ending
from placement_foundation.http import thread_limit
from placement_foundation.observing import metrics
from placement_foundation.serving import command, interpreter, side


def explain_failure(
    kind: type[BaseException], exc: BaseException, traceback: TracebackType | None
) -> None:
    """Print why gunicorn does not start, in one line if an operator can mend it."""
    if isinstance(exc, command.TROUBLE):
        command.complain("gunicorn", exc)
    else:
        sys.__excepthook__(kind, exc, traceback)


def when_ready(server: Any) -> None:
    """Keep the memory that is loaded before the fork from being copied."""
    interpreter.freeze()


def post_worker_init(worker: Any) -> None:
    """Prepare a process that is about to serve."""
    interpreter.settle()
    thread_limit.announce_threads(worker.cfg.threads)
    ending.follow(lambda: not worker.alive)
    for bound, application in getattr(worker.wsgi, "elsewhere", ()):
        side.serve(bound, application)


def child_exit(server: Any, worker: Any) -> None:
    """Remove a process that has ended from the metrics."""
    metrics.forget(worker.pid)


# deploy/gunicorn.conf.py has the same settings.
SETTINGS = {
    # A process that replaces another one starts without the database.
    "preload_app": True,
    "worker_class": "gthread",
    # Enough to keep a process busy while some threads wait for the database.
    "threads": 8,
    "worker_connections": 1000,
    # In seconds; longer than a proxy in front, so that the proxy hangs up first.
    "keepalive": 75,
    "timeout": 60,
    # Many groups of resources make a long query; the application refuses too long ones.
    "limit_request_line": 0,
    "limit_request_field_size": 65_536,
    # Clients must not set where the service is mounted, and ``get`` is a method: 405.
    "forwarder_headers": "",
    "permit_unconventional_http_method": True,
    "control_socket_disable": True,
    "when_ready": when_ready,
    "post_worker_init": post_worker_init,
    "child_exit": child_exit,
}


class Server(base.BaseApplication):  # type: ignore[misc]
    """The server of a command, which has made its application's settings already.

    :param load: makes the application, before the processes are forked
    :param settings: those besides ``SETTINGS``
    """

    def __init__(self, load: Any, settings: dict[str, Any]) -> None:
        self._settings = {**SETTINGS, **settings}
        # gunicorn calls it.
        self.load = load
        super().__init__()

    def load_config(self) -> None:
        """Pass the settings to gunicorn."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)
