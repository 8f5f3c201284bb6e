"""Replies that are stored until they are read, and how they are encoded."""

import gc
import json
from collections.abc import Iterator

import pytest

from placement_foundation import errors
from placement_foundation.http import json_text, spool, stream


def test_a_reply_is_what_was_stored() -> None:
    room = spool.Spool(most=1_000_000)
    chunks = [bytes([number]) * 70_000 for number in range(5)]
    stored = room.store(chunks)
    assert stored.size == room.used == 350_000
    parts = list(stored)
    assert b"".join(parts) == b"".join(chunks)
    assert max(map(len, parts)) <= spool.CHUNK
    stored.close()
    stored.close()
    assert room.used == 0


def test_all_replies_share_the_room() -> None:
    room = spool.Spool(most=100)
    first = room.store([b"x" * 60])
    with pytest.raises(errors.Busy):
        room.store([b"x" * 30, b"x" * 30])
    assert room.used == 60
    second = room.store([b"x" * 40])
    first.close()
    assert room.used == 40
    assert list(second) == [b"x" * 40]


def test_a_reply_that_fails_or_is_forgotten_leaves_its_room() -> None:
    room = spool.Spool(most=100)

    def chunks() -> Iterator[bytes]:
        yield b"x" * 60
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        room.store(chunks())
    room.store([b"x" * 90])
    gc.collect()
    assert room.used == 0


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
    written = b"".join(stream.document(lazy, json_text.encode))
    assert written == json_text.encode(members)
    assert json.loads(written) == json.loads(json.dumps(members))


def test_an_empty_list_of_lines_is_empty() -> None:
    assert list(stream.lines([], json_text.encode)) == []
    assert list(stream.lines([1, {}], json_text.encode)) == [b"1\n{}\n"]
