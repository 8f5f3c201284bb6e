"""What the caller sent, as we quote it."""

from placement_foundation import errors


def test_a_long_text_is_quoted_by_its_ends() -> None:
    text = "a" * 1000 + "b" * 1000
    told = errors.quote(text)
    assert len(told) < errors.QUOTED + 10
    assert told.startswith("aaa")
    assert told.endswith("bbb")
    assert "[...]" in told


def test_a_short_text_is_quoted_whole() -> None:
    text = "a" * errors.QUOTED
    assert errors.quote(text) == text
