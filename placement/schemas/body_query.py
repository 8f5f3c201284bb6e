"""Queries in the body of a request, which takes none in its address."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from placement.schemas import allocation_candidate
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs, Parser
from placement_foundation.http.version import ByVersion, Version

P = TypeVar("P")
Q = TypeVar("Q")


def by_version(at: Callable[[Version], P]) -> ByVersion[Parser[P]]:
    """Return the parser of the address: it gives the parser of queries in the body.

    :param at: returns that parser at a microversion
    """
    return ByVersion(
        {
            (since.major, since.minor): Parser(
                functools.partial(_choose, parser=at(since)), query_string.NOTHING
            )
            for since in allocation_candidate.QUERY.versions()
        }
    )


def _choose(pairs: Pairs, parser: Any) -> Any:
    query_string.check(pairs, query_string.NOTHING)
    return parser


def parse(parser: Callable[[Pairs], Q], query: str) -> Q:
    """Return the parsed value of a query in a body.

    :raises BadRequest: the query is wrong
    """
    # In the form of a WSGI query string: a character for each byte.
    return parser(query_string.decode(query.encode("utf-8").decode("latin-1")))
