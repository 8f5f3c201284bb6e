"""A network between a service and its database that can fail."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator


class Proxy:
    """Passes bytes on to a server, while it is up and not silent.

    ``silent`` connections stay open and carry nothing; without ``up``, there are none,
    and no new ones are accepted. ``asked`` counts what clients have sent at once, while
    they wait for each answer.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.up = True
        self.silent = False
        self.asked = 0
        self._ended = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def fail(self) -> None:
        """Break all connections, and accept no others."""
        self.up = False
        self.hang_up()

    def hang_up(self) -> None:
        """Break all connections."""
        with self._lock:
            for pair in self._pairs:
                for end in pair:
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop it."""
        self._ended = True
        self.fail()
        # It would go on accepting, from whatever gets the number of this socket next.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self.up:
                client.close()
                continue
            server = socket.create_connection(self._server)
            with self._lock:
                self._pairs.add((client, server))
            threading.Thread(target=self._pass, args=(client, server)).start()

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        other = {client: server, server: client}
        with selectors.DefaultSelector() as selector, client, server:
            for end in other:
                selector.register(end, selectors.EVENT_READ)
            while self._pass_once(selector, other, client):
                pass
        with self._lock:
            self._pairs.discard((client, server))

    def _pass_once(
        self,
        selector: selectors.BaseSelector,
        other: dict[socket.socket, socket.socket],
        client: socket.socket,
    ) -> bool:
        for key, _ in selector.select(0.2):
            end = key.fileobj
            assert isinstance(end, socket.socket)
            try:
                data = end.recv(65536)
                if not data:
                    return False
                if end is client:
                    with self._lock:
                        self.asked += 1
                if not self.silent:
                    other[end].sendall(data)
            except OSError:
                return False
        return not self._ended


@contextlib.contextmanager
def before(server: tuple[str, int]) -> Iterator[Proxy]:
    """Give a proxy in front of a server."""
    proxy = Proxy(server)
    try:
        yield proxy
    finally:
        proxy.close()
