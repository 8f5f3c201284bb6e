"""Capacity on the wire."""

from typing import Any

from placement.questions.capacity import Capacity, CapacityQuery
from placement.schemas import own_parameter
from placement.schemas.own_parameter import Candidates, Own
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    Json,
    View,
    closed_object,
    described,
    listed,
)

OWN = Own(
    numbers={"most": 999_999_999, "most_hosts": 999_999_999, "seconds": 30},
)


def parse(pairs: Pairs, candidates: Candidates) -> CapacityQuery:
    """Return the parsed query.

    :raises BadRequest: the query for candidates is wrong, or one of our own parameters
    """
    candidate_pairs, own = OWN.divide(pairs)
    numbers: dict[str, Any] = OWN.parse_numbers(own)
    return CapacityQuery(candidates(candidate_pairs).request, **numbers)


QUERY = own_parameter.by_version(parse, OWN)


@described(
    closed_object(
        total=INTEGER,
        exact={"type": "boolean"},
        complete={"type": "boolean"},
        hosts=listed(closed_object(uuid=TEXT, name=TEXT, count=INTEGER)),
    )
)
def render(value: Capacity, view: View) -> Json:
    """Render how many times a request could be claimed."""
    return {
        "total": value.total,
        "exact": value.exact,
        "complete": value.complete,
        "hosts": [
            {
                "uuid": each.tree.root.uuid,
                "name": each.tree.root.name,
                "count": each.count,
            }
            for each in value.hosts
        ],
    }
