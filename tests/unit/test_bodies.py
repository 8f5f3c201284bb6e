"""How bodies become documents, and the errors for those that are wrong."""

from typing import Any

import jsonschema
import pytest

from placement import errors
from placement_foundation.http import schema

SCHEMA = schema.Schema(
    {"type": "object", "properties": {"total": schema.POSITIVE_INT}},
)


def test_a_number_without_a_fraction_is_an_integer() -> None:
    document = schema.parse_json(b'{"total": 5.0}', SCHEMA)
    assert document == {"total": 5}
    assert isinstance(document["total"], int)


@pytest.mark.parametrize("number", ["0.0", "1e+20", "2147483648", "0.5"])
def test_what_is_wrong_is_shown_as_it_was_sent(number: str) -> None:
    with pytest.raises(errors.BadRequest, match="JSON does not validate: ") as refused:
        schema.parse_json(f'{{"total": {number}}}'.encode(), SCHEMA)
    assert f"JSON does not validate: {number} is " in str(refused.value)


@pytest.mark.parametrize("depth", [*range(100, 1000, 20), 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a": ', "}")])
def test_a_document_may_be_too_deep_to_be_shown(
    opening: str, closing: str, depth: int
) -> None:
    nested = f"{opening * depth}1{closing * depth}"
    with pytest.raises(errors.BadRequest, match="JSON"):
        schema.parse_json(f'{{"total": {nested}}}'.encode(), SCHEMA)


KEYED = {
    "type": "object",
    "properties": {"x": {}},
    "patternProperties": {"^[A-Z]+$": {"type": "integer"}, "^[0-9]+$": {}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "document",
    [{"a": 1}, {"b": 1, "a": 1}, {"A": 1, "x": 1, "7": 1, "a7": 1}, {"A": "text"}],
)
def test_faults_of_keys_are_those_of_the_library(
    document: dict[str, Any],
) -> None:
    [expected] = jsonschema.Draft202012Validator(KEYED).iter_errors(document)
    fault = schema.Schema(KEYED).fault(document)
    assert fault
    assert fault.message == expected.message
    assert fault.absolute_path == expected.absolute_path


def test_a_key_does_not_match_if_a_line_feed_comes_after_it() -> None:
    fault = schema.Schema(KEYED).fault({"A\n": 1})
    assert fault
    told = r"'A\n' does not match any of the regexes: '^[0-9]+$', '^[A-Z]+$'"
    assert fault.message == told


def test_a_message_shows_patterns_as_they_are_described() -> None:
    with pytest.raises(errors.BadRequest) as refused:
        schema.Schema(KEYED).check({"A": "text"}, "")
    by = "in schema['patternProperties']['^[A-Z]+$']:\n    {'type': 'integer'}"
    assert by in str(refused.value)
