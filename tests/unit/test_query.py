"""The grammar of query strings."""

import pytest

from placement import errors
from placement.microversion import MAXIMUM
from placement.schemas import query
from placement_foundation.http import query_string
from placement_foundation.http.schema import Schema
from placement_foundation.http.version import Version

A = "aaaaaaaa-0000-4000-8000-000000000001"
B = "bbbbbbbb-0000-4000-8000-000000000002"


def grammar(minor: int = MAXIMUM.minor) -> query.Grammar:
    found = query.GRAMMAR.at(Version(1, minor))
    assert found is not None
    return found


def sets(*members: str) -> tuple[frozenset[str], ...]:
    """Return one set for each text of comma-separated names."""
    return tuple(frozenset(names.split(",")) for names in members)


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


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "Badly formed resources parameter. Expected resources query string "
             "parameter in form: ?resources=VCPU:2,MEMORY_MB:1024. Got: empty string."),
        ("  ", "MEMORY_MB:1024. Got: empty string."),
        ("VCPU", "MEMORY_MB:1024. Got: VCPU."),
        ("VCPU:1:2", "MEMORY_MB:1024. Got: VCPU:1:2."),
        ("VCPU:1,", "MEMORY_MB:1024. Got: ."),
        ("VCPU:a", "Requested resource VCPU expected positive integer amount. Got: a."),
        ("VCPU:1.5", "expected positive integer amount. Got: 1.5."),
        ("VCPU:1__0", "expected positive integer amount. Got: 1__0."),
        ("VCPU:_1", "expected positive integer amount. Got: _1."),
        ("VCPU:", "expected positive integer amount. Got: ."),
        ("VCPU:0", "Requested resource VCPU requires amount >= 1. Got: 0."),
        ("VCPU:-2", "Requested resource VCPU requires amount >= 1. Got: -2."),
    ],
)  # fmt: skip
def test_malformed_resources_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(errors.BadRequest) as failure:
        query.parse_resources(text)
    assert str(failure.value).endswith(complaint)


@pytest.mark.parametrize(
    ("minor", "texts", "required", "forbidden"),
    [
        (21, ["T1, T2 "], sets("T1", "T2"), ""),
        (21, ["!T0,,", "T1"], sets("T1"), ""),
        (22, ["T1,!T2,!!T3"], sets("T1"), "T2,T3"),
        (22, ["!in:T1"], (), "in:T1"),
        (22, ["! T1"], (), " T1"),
        (22, ["T1,T1"], sets("T1"), ""),
        (38, ["in:T0", "T1"], sets("T1"), ""),
        (39, ["in:T1, T2", "T3,!T4"], sets("T1,T2", "T3"), "T4"),
        (39, ["in:T1"], sets("T1"), ""),
        (39, [], (), ""),
    ],
)
def test_required_traits(
    minor: int, texts: list[str], required: tuple[frozenset[str], ...], forbidden: str
) -> None:
    traits = query.parse_required(texts, grammar(minor))
    assert traits.required == required
    assert traits.forbidden == frozenset(filter(None, forbidden.split(",")))


PLAIN = "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,CUSTOM_MAGIC."
SIGNED = (
    "Expected 'required' parameter value of the form: HW_CPU_X86_VMX,!CUSTOM_MAGIC."
)
ANY_OF = (
    "Expected 'required' parameter value of the form: in:HW_CPU_X86_VMX,CUSTOM_MAGIC."
)
FORMAT = "The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC'"


@pytest.mark.parametrize(
    ("minor", "text", "complaint"),
    [
        (21, "", f"{PLAIN} Got an empty trait in: "),
        (21, "T1,", f"{PLAIN} Got an empty trait in: T1,"),
        (21, "!T1", f"{PLAIN} Got: !T1"),
        (21, "in:T1", f"{FORMAT} only supported since microversion 1.39. Got: in:T1"),
        (22, " ", f"{SIGNED} Got an empty trait in:  "),
        (22, "!", f"{SIGNED} Got an empty trait in: !"),
        (38, "in:", f"{FORMAT} only supported since microversion 1.39. Got: in:"),
        (39, "T1,,T2", f"{SIGNED} Got an empty trait in: T1,,T2"),
        (39, "in:", f"{ANY_OF} Got an empty trait in: in:"),
        (39, "in:T1, ", f"{ANY_OF} Got an empty trait in: in:T1, "),
        (39, "in:T1!T2", f"{FORMAT} does not support forbidden traits. Got: in:T1!T2"),
        (39, "in:T1,!T2", f"{FORMAT} does not support forbidden traits. Got: in:T1,!T2"),  # noqa: E501
    ],
)  # fmt: skip
def test_malformed_required_traits_are_refused(
    minor: int, text: str, complaint: str
) -> None:
    with pytest.raises(errors.BadRequest) as failure:
        query.parse_required([text], grammar(minor))
    assert str(failure.value) == f"Invalid query string parameters: {complaint}"


@pytest.mark.parametrize(
    ("minor", "texts", "required", "forbidden"),
    [
        (3, [A], sets(A), ""),
        (3, [f"in:{A},{B}"], sets(f"{A},{B}"), ""),
        (24, [A, f"in:{B}"], sets(A, B), ""),
        (32, [f"!{A}", f"!in:{A},{B}", B], sets(B), f"{A},{B}"),
        (39, [A.upper()], sets(A.upper()), ""),
        (39, [A.replace("-", "")], sets(A.replace("-", "")), ""),
    ],
)
def test_member_of(
    minor: int, texts: list[str], required: tuple[frozenset[str], ...], forbidden: str
) -> None:
    aggregates = query.parse_member_of(texts, grammar(minor))
    assert aggregates.required == required
    assert aggregates.forbidden == frozenset(filter(None, forbidden.split(",")))


MULTIPLE = (
    "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword "
    "using the valid microversion. Got: "
)
NOT_A_UUID = (
    "Invalid query string parameters: Expected 'member_of' parameter to contain valid "
    "UUID(s). Got: "
)
NO_FORBIDDEN = (
    "Forbidden member_of_X parameters are not supported in the specified microversion"
)


@pytest.mark.parametrize(
    ("minor", "texts", "complaint"),
    [
        (23, [A, "bogus"], "Multiple member_of parameters are not supported"),
        (24, [A, f"{A},{B}"], f"{MULTIPLE}{A},{B}"),
        (39, [f"!{A},{B}"], f"{MULTIPLE}!{A},{B}"),
        (39, [""], NOT_A_UUID),
        (39, ["in:"], NOT_A_UUID),
        (39, ["!"], NOT_A_UUID),
        (31, ["!not a uuid"], f"{NOT_A_UUID}not a uuid"),
        (39, [f" {A}"], f"{NOT_A_UUID} {A}"),
        (39, [f"!!{A}"], f"{NOT_A_UUID}!{A}"),
        (39, [f"in:{A},!{B}"], f"{NOT_A_UUID}!{B}"),
        (31, [f"!{A}"], NO_FORBIDDEN),
        (31, [f"!in:{A}"], NO_FORBIDDEN),
    ],
)
def test_malformed_member_of_is_refused(
    minor: int, texts: list[str], complaint: str
) -> None:
    with pytest.raises(errors.BadRequest) as failure:
        query.parse_member_of(texts, grammar(minor), "member_of_X")
    assert str(failure.value) == complaint


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
