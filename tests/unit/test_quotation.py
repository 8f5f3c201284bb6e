"""What the caller sent, as we quote it."""

from placement_foundation.http import quotation


def test_a_long_text_is_quoted_by_its_ends() -> None:
    text = "a" * 1000 + "b" * 1000
    told = quotation.cut(text)
    assert len(told) < quotation.QUOTED + 10
    assert told.startswith("aaa")
    assert told.endswith("bbb")
    assert "[...]" in told


def test_a_short_text_is_quoted_whole() -> None:
    text = "a" * quotation.QUOTED
    assert quotation.cut(text) == text
