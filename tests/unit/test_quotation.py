"""What the caller sent, as we quote it."""

import hypothesis
import webob.exc
from hypothesis import strategies

from placement_foundation.http import quotation

# Made of what makes tags, so that there are some.
MARKUP = strategies.lists(
    strategies.sampled_from(["<", ">", "br", "BR", "!--", "--", "a", "\n", "\r", " /"])
).map("".join)


@hypothesis.given(MARKUP)
@hypothesis.example("!--<!-->")
def test_tags_go_as_those_of_the_library_do(text: str) -> None:
    assert quotation.strip_tags(text) == webob.exc.strip_tags(text)


def test_a_million_tags_that_do_not_end_are_soon_read() -> None:
    # The library would take a day.
    for part in ("<", "<br", "<!"):
        text = part * 1_000_000
        assert quotation.strip_tags(text) == text


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
