"""Writing JSON.

orjson writes it in UTF-8 and without blanks, ten times as fast as the standard library.
What it refuses is left to that: numbers beyond 64 bits and halves of characters. See
docs/decisions/json.rst.
"""

import json
from typing import Any

import orjson

from placement_foundation.schema import Json

# A document, or a part of one, that is written already.
Written = orjson.Fragment


def encode(document: Json) -> bytes:
    """Return a document as bytes. Parts of it may be ``Written`` already."""
    try:
        return orjson.dumps(document)
    except TypeError:
        # No document of a renderer contains itself, so nothing looks for that.
        text = json.dumps(document, check_circular=False, default=_parse)
        return text.encode("ascii")


def _parse(part: Any) -> Json:
    if isinstance(part, Written):
        return json.loads(part.contents)
    raise TypeError(f"{type(part)} has no form in JSON")
