"""Recorded audits on the wire: comparisons, and their findings."""

from collections.abc import Mapping
from typing import Any

from placement import errors
from placement.schemas.declaration import OWNER
from placement_foundation.http.schema import (
    TEXT,
    Json,
    Schema,
    View,
    closed_object,
    described,
    keyed,
    listed,
    some_of,
)

# The kinds of findings; those that a later release adds have other names.
KIND = {"type": "string", "pattern": "^[a-z ]+$", "maxLength": 64}
MOST = 1000
WORDS = {"type": "string", "maxLength": 4096}
ABOUT = (
    *("consumer_type", "project_id", "host", "resources"),
    *("expected_host", "expected_resources", "claimed_at", "claimed_by"),
)
COUNT = {"type": "integer", "minimum": 0}
FINDING = some_of(
    *("kind", "consumer"), kind=KIND, consumer=WORDS, **dict.fromkeys(ABOUT, WORDS)
)
AUDIT = closed_object(
    claims=COUNT,
    living=COUNT,
    not_judged=COUNT,
    counts={**keyed(COUNT), "propertyNames": KIND, "maxProperties": 100},
    findings={**listed(FINDING), "maxItems": MOST},
)
BODY = Schema(AUDIT)
NAME = Schema(OWNER)


def parse_name(name: str) -> str:
    """Return the name of an audit.

    :raises BadRequest: it is not a name
    """
    try:
        NAME.check(name, "")
    except errors.BadRequest as exc:
        raise errors.BadRequest(f"Malformed name of an audit: {name}") from exc
    return name


@described(
    closed_object(
        audits=listed(closed_object(name=TEXT, recorded_at=TEXT, **AUDIT["properties"]))
    )
)
def render_list(value: Mapping[str, Any], view: View) -> Json:
    """Render the recorded audits, by name."""
    return {"audits": [{"name": name, **audit} for name, audit in value.items()]}
