"""Encoded parts of documents."""

import json
from collections.abc import Sequence

import pytest

from placement_foundation.http import json_text
from placement_foundation.http.json_text import Written
from placement_foundation.http.schema import Json


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
    enclosed = json_text.enclose(b"[", pieces, b"]")
    assert json_text.encode({"all": enclosed}) == expected


@pytest.mark.parametrize("number", [1, 2**64, -(2**70)])
def test_encoded_parts_stand_beside_numbers_of_any_size(number: int) -> None:
    document = {"number": number, "part": Written(b"[1, {}]"), "name": "\N{SNOWMAN}"}
    expected = {"number": number, "part": [1, {}], "name": "\N{SNOWMAN}"}
    assert json.loads(json_text.encode(document)) == expected
    assert json.loads(b"".join(json_text.parts(document))) == expected


@pytest.mark.parametrize("document", [{}, {"a": [1]}, [1], None, 2**64])
def test_a_document_without_encoded_parts_is_one_part(document: Json) -> None:
    assert json_text.parts(document) == [json_text.encode(document)]


def test_encoded_members_are_not_copied() -> None:
    whole, member = Written(b"[1, 2]"), Written(b"[3]")
    assert json_text.parts(whole) == [whole.text]
    first, *_ = json_text.parts(whole)
    assert first is whole.text
    assert any(part is member.text for part in json_text.parts({"a": member, "b": 1}))


def test_what_has_no_form_in_json_is_refused() -> None:
    with pytest.raises(TypeError, match="has no form in JSON"):
        json_text.encode({"part": object()})


def test_a_part_that_is_encoded_may_be_beside_a_number_beyond_64_bits() -> None:
    document = {"traits": json_text.fragment(["a"]), "capacity": 2**70}
    assert json.loads(json_text.encode(document)) == {
        "traits": ["a"],
        "capacity": 2**70,
    }
