"""Replies on disk, for clients that take their time to read them."""

import contextlib
import tempfile
import threading
from collections.abc import Iterable, Iterator
from typing import IO

from oslo_log import log

from placement_foundation import errors

LOG = log.getLogger(__name__)

# How much of a reply is in memory: as a whole if it is no larger, and while it is sent.
CHUNK = 1 << 16
MEBIBYTE = 1 << 20
FULL = (
    "This reply does not fit on disk, beside those that other clients are still "
    "reading. Please retry later, or request less."
)


class Spool:
    """Room on disk for replies, limited for all of them together.

    :param most: how many bytes there is room for
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """How many bytes of replies there are."""
        return self._used

    def store(self, chunks: Iterable[bytes]) -> "Stored":
        """Return a reply, stored as a whole.

        :raises Busy: there is no room for it
        """
        stored = Stored(self)
        try:
            for chunk in chunks:
                stored.add(chunk)
            stored.flush()
        except BaseException:
            stored.close()
            raise
        return stored

    def take(self, size: int) -> None:
        """Take room for some bytes.

        :raises Busy: there is not enough
        """
        with self._lock:
            if self._used + size > self._most:
                raise errors.Busy(FULL)
            self._used += size

    def release(self, size: int) -> None:
        """Give back room for some bytes."""
        with self._lock:
            self._used -= size


@contextlib.contextmanager
def _on_disk() -> Iterator[None]:
    """Refuse the reply if the disk is full, or cannot be written."""
    try:
        yield
    except OSError as exc:
        LOG.warning("a reply cannot be stored in %s: %s", tempfile.gettempdir(), exc)
        raise errors.Busy(FULL) from exc


class Stored:
    """A reply that is read from disk while it is sent.

    A server calls ``close`` when everything is sent, or no longer wanted.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        # Closed when the reply is sent.
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(CHUNK)  # noqa: SIM115
        self.size = 0

    def add(self, chunk: bytes) -> None:
        """Store another part.

        :raises Busy: there is no room for it
        """
        self._spool.take(len(chunk))
        self.size += len(chunk)
        with _on_disk():
            self._file.write(chunk)

    def flush(self) -> None:
        """Make sure that everything is stored.

        :raises Busy: there is no room for it
        """
        with _on_disk():
            self._file.flush()

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        while chunk := self._file.read(CHUNK):
            yield chunk

    def close(self) -> None:
        """Remove the reply."""
        size, self.size = self.size, 0
        self._spool.release(size)
        # What is left to write no longer matters.
        with contextlib.suppress(OSError):
            self._file.close()

    def __del__(self) -> None:
        # Programs that call the application without a server may forget to close.
        self.close()
