"""Writing JSON.

orjson writes UTF-8 without spaces, ten times as fast as the standard library. The
standard library takes over where orjson refuses: numbers beyond 64 bits and lone
surrogates. See docs/decisions/libraries.rst.
"""

import json
from collections.abc import Iterable
from typing import Any

import orjson

from placement_foundation.http.schema import Json


# orjson would encode a dataclass itself.
class Written:
    """A document, or a part of one, that is already encoded."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text


def encode(document: Json) -> bytes:
    """Return a document as bytes. Parts of it may already be ``Written``."""
    try:
        return orjson.dumps(document, default=_copy)
    except TypeError:
        # No document of a renderer contains itself, so nothing checks for that.
        text = json.dumps(document, check_circular=False, default=_parse)
        return text.encode("ascii")


def fragment(document: Json) -> Json:
    """Return a part of documents to come, encoded once for all of them."""
    # A copy: what the encoder returns keeps the whole of its buffer, some kilobytes.
    return orjson.Fragment(bytes(memoryview(encode(document))))


def parts(document: Json) -> list[bytes]:
    """Return a document as bytes in parts, without copying members that are written.

    They may have megabytes.
    """
    if isinstance(document, Written):
        return [document.text]
    if not isinstance(document, dict) or not any(
        isinstance(value, Written) for value in document.values()
    ):
        return [encode(document)]
    pieces, before = [], b"{"
    for name, value in document.items():
        pieces.append(before + encode(name) + b":")
        pieces.append(value.text if isinstance(value, Written) else encode(value))
        before = b","
    pieces.append(b"}")
    return pieces


def enclose(opening: bytes, pieces: Iterable[bytes], closing: bytes) -> Written:
    """Return encoded items between brackets.

    All pieces are copied once, as there may be megabytes of them.

    :param pieces: those of one item after the other, each item after a comma
    """
    listed = [opening, *pieces]
    if len(listed) > 1:
        # The comma before the first one.
        listed[1] = listed[1][1:]
    listed.append(closing)
    return Written(b"".join(listed))


def _copy(part: Any) -> orjson.Fragment:
    return orjson.Fragment(_text_of(part))


def _parse(part: Any) -> Json:
    is_fragment = isinstance(part, orjson.Fragment)
    return json.loads(orjson.dumps(part) if is_fragment else _text_of(part))


def _text_of(part: Any) -> bytes:
    if isinstance(part, Written):
        return part.text
    raise TypeError(f"{type(part)} has no form in JSON")
