"""Whether this process is about to end: what waits for news then answers at once."""

import contextlib
from collections.abc import Iterator

_is_near = False


@contextlib.contextmanager
def announced() -> Iterator[None]:
    """Announce the end, while the context is open: its server accepts no more."""
    global _is_near
    _is_near = True
    try:
        yield
    finally:
        _is_near = False


def is_near() -> bool:
    """Return whether it is announced."""
    return _is_near
