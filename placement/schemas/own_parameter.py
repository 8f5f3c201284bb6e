"""Queries for candidates in the ledger API: with more parameters, or in a body."""

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from placement.microversion import made_from
from placement.questions.candidates import CandidateQuery
from placement.schemas import query
from placement.schemas.query import unexpected
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs, Parser
from placement_foundation.http.schema import Json, Schema, extend
from placement_foundation.http.version import ByVersion, Version

P = TypeVar("P")
Q = TypeVar("Q")

# Parses a query for candidates, as a microversion has it.
Candidates: TypeAlias = Callable[[Pairs], CandidateQuery]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """The parameters of an operation that are not part of a query for candidates.

    ``numbers`` are integers from 0 up, with the largest value of each; ``others`` come
    with their schemas.
    """

    numbers: Mapping[str, int]
    others: Mapping[str, Json] = dataclasses.field(default_factory=dict)

    def divide(self, pairs: Pairs) -> tuple[Pairs, Pairs]:
        """Return the parameters of the query for candidates, and then our own."""
        own = {*self.numbers, *self.others}
        return (
            [pair for pair in pairs if pair[0] not in own],
            [pair for pair in pairs if pair[0] in own],
        )

    def beside(self, candidates: Schema) -> Schema:
        """Return the schema of a query for candidates with these parameters added."""
        numbers = {
            name: {"type": "integer", "minimum": 0, "maximum": most}
            for name, most in self.numbers.items()
        }
        own = {**numbers, **self.others}
        return Schema(extend(candidates.document, properties=own), query_string.FORMATS)

    def parse_numbers(self, pairs: Pairs) -> dict[str, int]:
        """Return the numbers that are given.

        :raises BadRequest: a value is not a number, or is too large
        """
        given = {name: value for name, value in pairs if name in self.numbers}
        for name, value in given.items():
            most = self.numbers[name]
            if not re.fullmatch("[0-9]{1,9}", value) or int(value) > most:
                raise unexpected(name, f"an integer from 0 to {most}", value)
        return {name: int(value) for name, value in given.items()}


def by_version(parse: Callable[..., Q], own: Own) -> ByVersion[Parser[Q]]:
    """Return a parser that follows the grammar of queries for candidates.

    :param parse: takes a query, and ``candidates``, which parses one for candidates
    :param own: the parameters that may be given in addition
    """

    def parser_at(version: Version) -> Parser[Q]:
        candidates = query.parser_at(version)
        return Parser(
            functools.partial(parse, candidates=candidates),
            own.beside(candidates.schema),
        )

    return made_from(query.FIRST, parser_at)


def in_body(at: Callable[[Version], P]) -> ByVersion[Parser[P]]:
    """Return the parser of an address that takes no query: it is in the body.

    :param at: returns what parses it at a microversion, which is what this parser gives
    """

    def parser_at(version: Version) -> Parser[P]:
        def parse(pairs: Pairs) -> P:
            query_string.refuse_all(pairs)
            return at(version)

        return Parser(parse, query_string.NOTHING)

    return made_from(query.FIRST, parser_at)
