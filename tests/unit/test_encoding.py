"""Encoded parts of documents."""

import json

import pytest

from placement_foundation.http.schema import encode, fragment


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
