"""Microversions: what a header asks for, and values with a history."""

import pytest

from placement.microversion import MAXIMUM, MINIMUM, VERSIONS
from placement_foundation.http.version import (
    ByVersion,
    Version,
    always,
    since,
)


def test_versions_have_no_gaps() -> None:
    assert list(VERSIONS) == [(1, minor) for minor in range(40)]
    assert Version(1, 0) == MINIMUM
    assert Version(1, 39) == MAXIMUM


def test_a_value_holds_until_the_next_one() -> None:
    history = ByVersion({(1, 2): "a", (1, 7): "b"})
    at = {minor: history.at(Version(1, minor)) for minor in (0, 1, 2, 6, 7, 39)}
    assert at == {0: None, 1: None, 2: "a", 6: "a", 7: "b", 39: "b"}


def test_a_value_may_hold_always_or_since_a_version() -> None:
    assert always("a").at(MINIMUM) == "a"
    assert since(1, 5, "a").at(Version(1, 4)) is None
    assert since(1, 5, "a").at(Version(1, 5)) == "a"


def test_a_history_is_written_oldest_first() -> None:
    with pytest.raises(ValueError, match="oldest first"):
        ByVersion({(1, 7): "b", (1, 2): "a"})
