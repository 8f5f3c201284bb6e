"""Capacity on the wire."""

from typing import Any

from placement.questions.capacity import CapacityQuery
from placement.schemas import own_parameter
from placement.schemas.own_parameter import Candidates, Own
from placement.schemas.record import BOOLEAN, Item, record
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import INTEGER, TEXT

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


HOST = record(
    uuid=Item(TEXT, "tree.root.uuid"),
    name=Item(TEXT, "tree.root.name"),
    count=INTEGER,
)
# How many times a request could be claimed.
render = record(total=INTEGER, exact=BOOLEAN, complete=BOOLEAN, hosts=[HOST])
