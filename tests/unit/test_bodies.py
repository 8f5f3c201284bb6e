"""How bodies become documents, and the errors for those that are wrong."""

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
