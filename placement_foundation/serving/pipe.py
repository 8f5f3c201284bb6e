"""Standard output may be a pipe, whose reader leaves when it has read enough."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast


class Unwritable(OSError):
    """Standard output takes nothing: its disk is full, say. The message says why."""


@contextlib.contextmanager
def dropping_the_rest(*, ends_with_reader: bool = False) -> Iterator[None]:
    """Print what the body prints, until the reader leaves: then drop the rest.

    :param ends_with_reader: whether the body ends then
    :raises Unwritable: something else is wrong with standard output
    """
    if sys.stdout is None:
        # It was closed before the program began.
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            yield
        return
    output = _Output(sys.stdout, ends_with_reader)
    # Another pipe that breaks, such as that of standard error, is not a good end.
    ends = (BrokenPipeError,) if ends_with_reader else ()
    with (
        contextlib.suppress(*ends),
        contextlib.redirect_stdout(cast("TextIO", output)),
    ):
        try:
            yield
        finally:
            output.flush()


def drop(stream: TextIO) -> None:
    """Drop all further output, and output that could not be printed before."""
    # Python would report that again when it exits.
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


class _Output:
    """A stream that is dropped when it fails."""

    def __init__(self, stream: TextIO, ends_with_reader: bool) -> None:
        self._stream = stream
        self._ends_with_reader = ends_with_reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._dropping():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._dropping():
            self._stream.flush()

    @contextlib.contextmanager
    def _dropping(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            drop(self._stream)
            if self._ends_with_reader:
                raise
        except OSError as exc:
            drop(self._stream)
            raise Unwritable(f"standard output: {exc.strerror}") from exc
