"""Whether waiting for news must end, in a thread that answers a request.

It must if the process is about to end, if the client has hung up, or if the process
answers one request at a time.
"""

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


_process_ends: Callable[[], bool] = lambda: False  # noqa: E731


def follow(process_ends: Callable[[], bool]) -> None:
    """Set the function that returns whether the end of this process is near."""
    global _process_ends
    _process_ends = process_ends


def is_near(environment: "WSGIEnvironment") -> bool:
    """Return whether waiting on behalf of a request must end."""
    is_alone = not environment.get("wsgi.multithread", True)
    # gunicorn's name for it.
    connection = environment.get("gunicorn.socket")
    return is_alone or _process_ends() or _has_hung_up(connection)


def _has_hung_up(connection: Any) -> bool:
    """Return whether the other end of a connection has been closed."""
    if connection is None:
        return False
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
