"""Encoded parts of documents."""

import json
from collections.abc import Sequence

import pytest

from placement_foundation.http import json_text
from placement_foundation.http.json_text import Written


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ((), b'{"all":[]}'),
        (((b"1",),), b'{"all":[1]}'),
        (((b'"', b"a", b'"'), (b"2",)), b'{"all":["a",2]}'),
    ],
)
def test_items_in_pieces_are_enclosed_with_commas_between_them(
    items: Sequence[Sequence[bytes]], expected: bytes
) -> None:
    enclosed = json_text.enclose(b"[", items, b"]")
    assert json_text.encode({"all": enclosed}) == expected


@pytest.mark.parametrize("number", [1, 2**64, -(2**70)])
@pytest.mark.parametrize("text", ["[1, {}]", b"[1, {}]"])
def test_encoded_parts_stand_beside_numbers_of_any_size(
    number: int, text: str | bytes
) -> None:
    encoded = json_text.encode({"number": number, "part": Written(text)})
    assert json.loads(encoded) == {"number": number, "part": [1, {}]}


def test_what_has_no_form_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="has no form in JSON"):
        json_text.encode({"part": object()})
