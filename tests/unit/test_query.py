"""The grammar of query strings."""

import pytest

from placement import errors
from placement.microversion import MAXIMUM
from placement.schemas import query
from placement_foundation.http import query_string
from placement_foundation.http.schema import Schema
from placement_foundation.http.version import Version

A = "aaaaaaaa-0000-4000-8000-000000000001"


def grammar(minor: int = MAXIMUM.minor) -> query.Grammar:
    found = query.GRAMMAR.at(Version(1, minor))
    assert found is not None
    return found


def test_parameters_end_at_ampersands_and_semicolons() -> None:
    assert query_string.decode("a=1&b=2;c;;a=%C3%A9+x") == [
        ("a", "1"),
        ("b", "2"),
        ("c", ""),
        ("a", "é x"),
    ]


@pytest.mark.parametrize("raw", ["a=%ff", "%ff=a", "a=\xff"])
def test_bytes_that_are_not_utf8_are_refused(raw: str) -> None:
    with pytest.raises(errors.BadRequest, match=r"^Invalid query string parameters: "):
        query_string.decode(raw)


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


def test_in_tree_is_trimmed_and_otherwise_taken_as_spelled() -> None:
    assert query.parse_in_tree(f" {A.upper()} ") == A.upper()
    with pytest.raises(errors.BadRequest, match=r"to be a format of uuid. Got: cow$"):
        query.parse_in_tree("cow")


SCHEMA = Schema(
    {
        "type": "object",
        "properties": {"uuid": {"type": "string", "format": "uuid"}},
        "patternProperties": {"^resources[1-9]?$": {"type": "string"}},
        "additionalProperties": False,
    },
    formats=query_string.FORMATS,
)


def test_the_last_value_of_a_parameter_is_checked() -> None:
    query_string.check([("uuid", "cow"), ("uuid", A), ("resources1", "")], SCHEMA)


@pytest.mark.parametrize(
    ("pair", "complaint"),
    [
        (("uuid", "cow"), "'cow' is not a 'uuid'"),
        (("uuid", A.replace("-", "")), "is not a 'uuid'"),
        (("uuid", ""), "'' is not a 'uuid'"),
        (("cow", ""), r"'cow' does not match any of the regexes: '\^resources"),
        (("resources1\n", ""), "does not match any of the regexes"),
    ],
)
def test_a_query_that_breaks_its_schema_is_refused(
    pair: tuple[str, str], complaint: str
) -> None:
    with pytest.raises(errors.BadRequest, match=complaint) as failure:
        query_string.check([pair], SCHEMA)
    assert str(failure.value).startswith("Invalid query string parameters: '")
