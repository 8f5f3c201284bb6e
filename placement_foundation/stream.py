"""Replies that are sent while they are read."""

import zlib
from collections.abc import Callable, Generator, Iterable, Iterator

# So many bytes are sent at once, more or less.
CHUNK = 1 << 16
# What a document of a cloud is compressed to hardly depends on more effort.
LEVEL = 3
# Says to zlib that the format is that of gzip.
GZIP = 31


class Body:
    """Chunks of bytes, made when they are asked for, and what ends with the last one.

    A server calls ``close`` when all is sent, or is not wanted any more. The first
    chunk is made at once: what goes wrong with it can still be answered by an error.
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
        """Stop making it."""
        self._chunks.close()
        self._finish()


def lines(
    documents: Iterable[object], encode: Callable[[object], bytes]
) -> Generator[bytes, None, None]:
    """Yield documents, each in a line of its own, some lines at a time."""
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
    """Yield chunks as ``Content-Encoding: gzip`` has them."""
    packer = zlib.compressobj(LEVEL, wbits=GZIP)
    for chunk in chunks:
        packed = packer.compress(chunk)
        if packed:
            yield packed
    yield packer.flush()
