"""Requirements on hosts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement_reservations import requirement

KNOWN = {"vcpus", "gpu", "rack", "hypervisor_hostname"}
HOST = {"vcpus": 8, "gpu": "True", "rack": "b10", "hypervisor_hostname": "one"}


def holds(text: str) -> bool:
    return requirement.holds(requirement.parse(text, KNOWN), HOST)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '["==", "$gpu", "True"]',
        '["=", "$gpu", "True"]',
        '["==", "$gpu", true]',
        '["!=", "$rack", "b11"]',
        '[">=", "$vcpus", "8"]',
        '["<=", "$vcpus", 8]',
        '[">", "$vcpus", "7.5"]',
        # As numbers, not as texts.
        '["<", "$vcpus", "10"]',
        '["and", [">", "$vcpus", "1"], ["==", "$gpu", "True"]]',
        '["and", ["and", [">", "$vcpus", "1"], ["<", "$vcpus", "9"]], '
        '["==", "$hypervisor_hostname", "one"]]',
    ],
)
def test_it_holds(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        '["==", "$gpu", "true"]',
        '[">", "$vcpus", "8"]',
        '["<", "$vcpus", "8"]',
        '["!=", "$vcpus", "8"]',
        '["and", [">", "$vcpus", "1"], ["==", "$gpu", "False"]]',
    ],
)
def test_it_does_not_hold(text: str) -> None:
    assert not holds(text)


def test_no_comparison_with_a_missing_property_holds() -> None:
    for symbol in ("==", "!=", "<"):
        wanted = requirement.parse(f'["{symbol}", "$gpu", "x"]', KNOWN)
        assert not requirement.holds(wanted, {"vcpus": 1})


@pytest.mark.parametrize(
    "text",
    [
        "gpu",
        "[]",
        "{}",
        "null",
        '"=="',
        '["=="]',
        '["==", "$gpu"]',
        '["==", "gpu", "True"]',
        '["==", "$", "True"]',
        '["==", "$gpu", null]',
        '["==", "$gpu", ["True"]]',
        '["~", "$gpu", "True"]',
        '["or", ["==", "$gpu", "1"], ["==", "$gpu", "2"]]',
        '["and"]',
        '["and", ["==", "$gpu", "True"]]',
        '["and", "x", "y"]',
        '["==", "$colour", "red"]',
        '["and", ' * 300 + "]" * 300,
        "[" * 100_000,
    ],
)
def test_it_is_malformed(text: str) -> None:
    with pytest.raises(requirement.Malformed, match="Malformed requirements"):
        requirement.parse(text, KNOWN)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.text()
    | st.sampled_from(["and", "=="]),
    lambda inner: st.lists(inner, max_size=4),
)


@given(JUNK.map(json.dumps) | st.text())
def test_any_text_is_a_requirement_or_malformed(text: str) -> None:
    try:
        wanted = requirement.parse(text)
    except requirement.Malformed:
        return
    assert requirement.holds(wanted, HOST) in (True, False)
