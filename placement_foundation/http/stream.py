"""Replies that are encoded bit by bit, as there may be many megabytes of them."""

import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping

from placement_foundation.http.schema import encode

# How many bytes are made at once, more or less.
CHUNK = 1 << 16
# A higher level hardly makes the description of a cloud any smaller.
LEVEL = 3
# Makes zlib write the gzip format.
GZIP = 31


def lines(documents: Iterable[object]) -> Iterator[bytes]:
    """Yield documents, one per line, several lines at a time."""
    return _gather(encode(document) + b"\n" for document in documents)


def document(members: Mapping[str, object]) -> Iterator[bytes]:
    """Yield a document; the values of members that are iterators become arrays."""
    return _gather(_pieces(members))


def _pieces(members: Mapping[str, object]) -> Iterator[bytes]:
    before = b"{"
    for name, value in members.items():
        yield before + encode(name) + b":"
        if isinstance(value, Iterator):
            yield from _array(value)
        else:
            yield encode(value)
        before = b","
    yield b"}" if members else b"{}"


def _array(items: Iterator[object]) -> Iterator[bytes]:
    before = b"["
    for item in items:
        yield before + encode(item)
        before = b","
    yield b"[]" if before == b"[" else b"]"


def _gather(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield several pieces at a time."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def compress(chunks: Iterable[bytes]) -> Generator[bytes, None, None]:
    """Yield chunks compressed for ``Content-Encoding: gzip``."""
    packer = zlib.compressobj(LEVEL, wbits=GZIP)
    for chunk in chunks:
        packed = packer.compress(chunk)
        if packed:
            yield packed
    yield packer.flush()
