"""Encoded parts of documents."""

from collections.abc import Sequence

import pytest

from placement_foundation.http import json_text


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
