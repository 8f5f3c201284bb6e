"""The grammar of query strings."""

import pytest

from placement.schemas import query
from placement_foundation.http import query_string


def test_raw_utf8_bytes_mean_what_their_escapes_mean() -> None:
    assert query_string.decode("a=é".encode().decode("latin-1")) == [("a", "é")]


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("VCPU:2,MEMORY_MB:1024", {"VCPU": 2, "MEMORY_MB": 1024}),
        ("VCPU:1,VCPU:3", {"VCPU": 3}),
        ("VCPU: 1 ", {"VCPU": 1}),
        ("VCPU:+1_0", {"VCPU": 10}),
        ("VCPU:007", {"VCPU": 7}),
        (" VCPU:1", {" VCPU": 1}),
        (":1", {"": 1}),
    ],
)
def test_resources_are_amounts_by_class(text: str, amounts: dict[str, int]) -> None:
    assert query.parse_resources(text) == amounts


def test_an_amount_of_thousands_of_digits_is_a_large_amount() -> None:
    assert query.parse_resources(f"VCPU:{'9' * 5000}")["VCPU"] > 2**63
    assert query.parse_resources(f"VCPU:{'0' * 5000}1") == {"VCPU": 1}
