"""Standard output may be a pipe, whose reader leaves when it has read enough."""

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def dropping_the_rest() -> Iterator[None]:
    """Print what the body prints, until the reader leaves: then the body ends."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        drop()


def drop() -> None:
    """Drop what is printed from now on, and what could not be printed before."""
    # Python would report that again when it exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
