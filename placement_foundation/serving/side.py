"""Pages for monitoring a process that has no web server of its own."""

import socket
import socketserver
import threading
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING
from wsgiref import simple_server

from placement_foundation.http import monitoring
from placement_foundation.http.middleware import Surrounded
from placement_foundation.option import Place

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

# A client that is silent for so many seconds is disconnected.
PATIENCE = 10


class SideServer(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    """A small web server: one thread for each request."""

    daemon_threads = True


class Handler(simple_server.WSGIRequestHandler):
    """A connection to a ``SideServer``."""

    timeout = PATIENCE

    def log_message(self, *unused: object) -> None:
        """Write nothing: probes come every few seconds."""


def serve(bound: socket.socket, application: "WSGIApplication") -> SideServer:
    """Serve an application at a socket, in a thread that ends with the process."""
    address = bound.getsockname()
    server = SideServer(address, Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = bound
    server.server_address = address
    # Without a look-up of the name of this machine.
    server.server_name, server.server_port = address[:2]
    server.setup_environ()
    server.server_activate()
    server.set_app(application)
    threading.Thread(target=server.serve_forever, daemon=True, name="pages").start()
    return server


def serve_pages(place: Place, pages: Mapping[str, "WSGIApplication"]) -> SideServer:
    """Serve pages by path at an address, in a thread that ends with the process.

    :raises OSError: the address is taken, or does not belong to this machine
    """
    nothing = monitoring.Page(lambda: monitoring.Text("", HTTPStatus.NOT_FOUND))
    return serve(monitoring.bind(place), Surrounded(nothing, pages))
