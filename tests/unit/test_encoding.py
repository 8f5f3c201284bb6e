"""Encoded parts of documents."""

import json
from collections.abc import Sequence

import pytest

from placement_foundation.http.schema import enclose, encode, fragment


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((), b'{"all":[]}'),
        ((b",1",), b'{"all":[1]}'),
        ((b',"', b"a", b'"', b",2"), b'{"all":["a",2]}'),
    ],
)
def test_items_in_pieces_are_enclosed_with_commas_only_between_them(
    pieces: Sequence[bytes], expected: bytes
) -> None:
    enclosed = enclose(b"[", pieces, b"]")
    assert encode({"all": enclosed}) == expected


@pytest.mark.parametrize("number", [1, 2**64, -(2**70)])
def test_encoded_parts_stand_beside_numbers_of_any_size(number: int) -> None:
    document = {
        "number": number,
        "part": fragment([1, {}]),
        "name": "\N{SNOWMAN}",
    }
    expected = {"number": number, "part": [1, {}], "name": "\N{SNOWMAN}"}
    assert json.loads(encode(document)) == expected


def test_what_has_no_form_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="has no form in JSON"):
        encode({"part": object()})
