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


def encode(document: Json) -> bytes:
    """Return a document as bytes. Parts of it may already be encoded."""
    try:
        return orjson.dumps(document)
    except TypeError:
        # No document of a renderer contains itself, so nothing checks for that.
        text = json.dumps(document, check_circular=False, default=_parse)
        return text.encode("ascii")


def fragment(document: Json) -> Json:
    """Return a part of documents to come, encoded once for all of them."""
    # A copy: the result of the encoder keeps the whole of its buffer, some kilobytes.
    return orjson.Fragment(bytes(memoryview(encode(document))))


def enclose(opening: bytes, pieces: Iterable[bytes], closing: bytes) -> Json:
    """Return encoded items between brackets, as an encoded part of a document.

    All pieces are copied once, as there may be megabytes of them.

    :param pieces: those of one item after the other, each item after a comma
    """
    listed = [opening, *pieces]
    if len(listed) > 1:
        # The comma before the first one.
        listed[1] = listed[1][1:]
    listed.append(closing)
    return orjson.Fragment(b"".join(listed))


def _parse(part: Any) -> Json:
    if not isinstance(part, orjson.Fragment):
        raise TypeError(f"{type(part)} has no form in JSON")
    return json.loads(orjson.dumps(part))
