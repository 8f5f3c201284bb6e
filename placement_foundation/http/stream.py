"""Replies that are sent while they are read."""

import zlib
from collections.abc import Callable, Generator, Iterable, Iterator

# How many bytes are sent at once, more or less.
CHUNK = 1 << 16
# A higher level hardly makes the description of a cloud any smaller.
LEVEL = 3
# Tells zlib to write the gzip format.
GZIP = 31


class Body:
    """Chunks of bytes, made when they are asked for, with clean-up after the last one.

    A server calls ``close`` when everything is sent, or no longer wanted. The first
    chunk is made at once: if it fails, an error can still be sent.
    """

    def __init__(
        self, chunks: Generator[bytes, None, None], finish: Callable[[], None]
    ) -> None:
        self._chunks = chunks
        self._finish = finish
        self._first = next(chunks, b"")

    def __iter__(self) -> Iterator[bytes]:
        yield self._first
        yield from self._chunks

    def close(self) -> None:
        """Stop making chunks."""
        self._chunks.close()
        self._finish()


def lines(
    documents: Iterable[object], encode: Callable[[object], bytes]
) -> Generator[bytes, None, None]:
    """Yield documents, one per line, several lines at a time."""
    waiting: list[bytes] = []
    size = 0
    for document in documents:
        waiting.append(encode(document))
        size += len(waiting[-1])
        if size >= CHUNK:
            yield b"\n".join(waiting) + b"\n"
            waiting, size = [], 0
    if waiting:
        yield b"\n".join(waiting) + b"\n"


def compress(chunks: Iterable[bytes]) -> Generator[bytes, None, None]:
    """Yield chunks compressed for ``Content-Encoding: gzip``."""
    packer = zlib.compressobj(LEVEL, wbits=GZIP)
    for chunk in chunks:
        packed = packer.compress(chunk)
        if packed:
            yield packed
    yield packer.flush()
