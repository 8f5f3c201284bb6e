"""Traits on the wire."""

import re

from placement import errors
from placement.model.trait import LONGEST_NAME, TraitFilters
from placement.schemas.record import GENERATION, Item, record
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import (
    TEXT,
    Schema,
    closed_object,
    listed,
    some_of,
)

PUT_TRAITS = Schema(
    closed_object(
        traits={
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
        },
        resource_provider_generation={"type": "integer"},
    )
)


def check_name(name: str) -> None:
    """Check the name of a custom trait.

    :raises BadRequest: it is not a valid name
    """
    if len(name) > LONGEST_NAME or not re.fullmatch("CUSTOM_[A-Z0-9_]+", name):
        raise errors.BadRequest(
            "The trait is invalid. A valid trait must be no longer than 255 "
            'characters, start with the prefix "CUSTOM_" and use following '
            'characters: "A"-"Z", "0"-"9" and "_"'
        )


@query_string.parser(some_of(name=TEXT, associated=TEXT))
def parse_filters(pairs: Pairs) -> TraitFilters:
    """Return the filters in a query string.

    :raises BadRequest: a parameter is unknown or malformed
    """
    operator, operand = _parse_name(query_string.last(pairs, "name"))
    return TraitFilters(
        names=frozenset(operand.split(",")) if operator == "in" else None,
        prefix=operand if operator == "startswith" else None,
        associated=_parse_associated(query_string.last(pairs, "associated")),
    )


def _parse_name(value: str | None) -> tuple[str, str]:
    """Return operator and operand. An unknown operator filters nothing."""
    if value is None:
        return "", ""
    operator, colon, operand = value.partition(":")
    if not colon:
        raise errors.BadRequest(
            "Badly formatted name parameter. Expected name query string parameter in "
            f'form: ?name=[in|startswith]:[name1,name2|prefix]. Got: "{value}"'
        )
    return operator, operand


def _parse_associated(value: str | None) -> bool | None:
    if value is None:
        return None
    if value.lower() not in ("true", "false"):
        raise errors.BadRequest(
            'The query parameter "associated" only accepts "true" or "false"'
        )
    return value.lower() == "true"


def path(name: str) -> str:
    """Return the path of a trait."""
    return f"/traits/{name}"


render_traits = record(
    traits=Item(listed(TEXT), lambda traits: [each.name for each in traits])
)
render_provider_traits = record(
    traits=Item(listed(TEXT), "parts"), resource_provider_generation=GENERATION
)
