"""Short requests that are being answered, for those that give way to them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from placement_foundation.precedence import Precedence

PATIENCE = 60


@contextmanager
def being_answered(rules: Precedence) -> Iterator[None]:
    """Serve a short request in another thread for as long as the block takes."""
    begun, over = threading.Event(), threading.Event()

    def serve() -> None:
        with rules.request():
            begun.set()
            over.wait(PATIENCE)

    thread = threading.Thread(target=serve)
    thread.start()
    assert begun.wait(PATIENCE)
    try:
        yield
    finally:
        over.set()
        thread.join()
