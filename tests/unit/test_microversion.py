"""Microversions: what a header asks for, and values with a history."""

import pytest

from placement.microversion import MAXIMUM, MINIMUM, VERSIONS, negotiate
from placement_foundation import errors
from placement_foundation.http.version import (
    ByVersion,
    Version,
    always,
    since,
)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, (1, 0)),
        ("", (1, 0)),
        ("placement 1.5", (1, 5)),
        ("PLACEMENT 1.5", (1, 5)),
        ("placement\t1.5", (1, 5)),
        ("compute 2.1, placement 1.5", (1, 5)),
        ("placement 1.5, compute 2.99", (1, 5)),
        ("placement 1.2, placement 1.5", (1, 5)),
        ("placement 1.5, placement", (1, 5)),
        ("placement bogus, placement 1.4", (1, 4)),
        ("placement", (1, 0)),
        ("1.5", (1, 0)),
        ("compute 2.5", (1, 0)),
        ("placement=1.5", (1, 0)),
        ("placement latest", (1, 39)),
        ("placement 1.10", (1, 10)),
    ],
)
def test_a_header_asks_for_a_version(
    header: str | None, expected: tuple[int, int]
) -> None:
    headers = {} if header is None else {"openstack-api-version": header}
    assert negotiate(headers) == expected


@pytest.mark.parametrize(
    "text", ["LATEST", "pony.horse", "1.2.3", "1", "1.", "1.5 extra"]
)
def test_some_texts_are_not_versions(text: str) -> None:
    with pytest.raises(
        errors.MalformedVersion, match=f"invalid version string: {text}; "
    ):
        negotiate({"openstack-api-version": f"placement {text}"})


@pytest.mark.parametrize("text", ["0.5", "0.9", "1.40", "2.0", "-1.5"])
def test_some_versions_are_not_to_be_had(text: str) -> None:
    with pytest.raises(
        errors.UnavailableVersion, match=f"Unacceptable version header: {text}$"
    ):
        negotiate({"openstack-api-version": f"placement {text}"})


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
