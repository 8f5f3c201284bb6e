"""Replies that are encoded bit by bit."""

import json

import pytest

from placement_foundation.http import stream
from placement_foundation.http.schema import encode


@pytest.mark.parametrize(
    "members",
    [{}, {"none": ()}, {"a": (1, {"b": None}), "c": "d"}, {"first": "x", "all": (1,)}],
)
def test_a_document_that_is_made_bit_by_bit_is_the_same(
    members: dict[str, object],
) -> None:
    lazy = {
        name: iter(value) if isinstance(value, tuple) else value
        for name, value in members.items()
    }
    written = b"".join(stream.document(lazy))
    assert written == encode(members)
    assert json.loads(written) == json.loads(json.dumps(members))


def test_an_empty_list_of_lines_is_empty() -> None:
    assert list(stream.lines([])) == []
    assert list(stream.lines([1, {}])) == [b"1\n{}\n"]
