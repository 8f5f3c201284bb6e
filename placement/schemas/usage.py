"""Usages on the wire."""

import dataclasses
from collections.abc import Mapping

from placement.model.usage import Usage
from placement.schemas.allocation import EXTERNAL_ID
from placement.schemas.record import GENERATION, Item, record
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import (
    INTEGER,
    Json,
    extend,
    keyed,
    some_of,
)
from placement_foundation.http.version import ByVersion

ALL_TYPES = "all"

LIST_V1_9 = some_of("project_id", project_id=EXTERNAL_ID, user_id=EXTERNAL_ID)
LIST_V1_38 = extend(
    LIST_V1_9,
    properties={
        "consumer_type": {**EXTERNAL_ID, "pattern": "^[A-Z0-9_]+$|^all|^unknown$"},
    },
)


@dataclasses.dataclass(frozen=True, slots=True)
class UsageQuery:
    """The owner and the type of the consumers whose usages are requested.

    ``consumer_type`` is a type, ``unknown`` for consumers without one, or ``all`` for
    the sum over every consumer. None stands for each type by itself.
    """

    project_id: str
    user_id: str | None
    consumer_type: str | None


@query_string.parser(LIST_V1_9)
def _parse_v1_9(pairs: Pairs) -> UsageQuery:
    given = dict(pairs)
    return UsageQuery(given["project_id"], given.get("user_id"), ALL_TYPES)


@query_string.parser(LIST_V1_38)
def _parse_v1_38(pairs: Pairs) -> UsageQuery:
    given = dict(pairs)
    return UsageQuery(
        given["project_id"], given.get("user_id"), given.get("consumer_type")
    )


PARSE_OWNER = ByVersion({(1, 9): _parse_v1_9, (1, 38): _parse_v1_38})


render_provider_usages = record(
    resource_provider_generation=GENERATION,
    usages=Item(keyed(INTEGER), lambda value: dict(value.parts)),
)


def _total(usages: Mapping[str, Usage]) -> Json:
    total = usages.get(ALL_TYPES)
    return dict(total.amounts) if total else {}


def _by_type(usages: Mapping[str, Usage]) -> Json:
    return {
        group: {"consumer_count": usage.consumer_count, **usage.amounts}
        for group, usage in usages.items()
    }


OF_TYPE = {**keyed(INTEGER), "required": ["consumer_count"]}
RENDER_USAGES = ByVersion(
    {
        (1, 9): record(usages=Item(keyed(INTEGER), _total)),
        (1, 38): record(usages=Item(keyed(OF_TYPE), _by_type)),
    }
)
