"""Query strings: decoded, checked, and looked up."""

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar, cast
from urllib import parse

import jsonschema

from placement_foundation import errors
from placement_foundation.http.schema import Json, Schema

# The parameters of a query string, decoded, in the order they were given.
Pairs: TypeAlias = list[tuple[str, str]]

T = TypeVar("T")

# The longest query string there is, in characters; an address may be no longer.
LONGEST = 1024 * 1024
COMPLAINT = "Invalid query string parameters: "
# How many query strings are remembered, and how many characters these have at most.
# A parsed query takes up to a hundred bytes for each of its characters.
MOST_REMEMBERED, LONGEST_REMEMBERED = 256, 500


def is_hyphenated_uuid(value: object) -> bool:
    """Return whether a string is a UUID for a query: with hyphens in their places."""
    if not isinstance(value, str):
        return True
    return bool(
        re.fullmatch(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", value)
    )


# The formats in query strings. Pass them to each ``Schema`` of a query.
FORMATS = jsonschema.FormatChecker(formats=())
FORMATS.checks("uuid")(is_hyphenated_uuid)


# Compared by identity, so that it can be part of a key of the cache.
@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Parser(Generic[T]):
    """A parser of query strings, and the schema that it checks them against.

    ``parse`` depends on nothing else, and its result is never changed.
    """

    parse: Callable[[Pairs], T]
    schema: Schema

    def __call__(self, pairs: Pairs) -> T:
        """Return the value of the parameters.

        :raises BadRequest: they break the schema, or a rule that it cannot express
        """
        return self.parse(pairs)


def read(raw: str, parse: Callable[[Pairs], T]) -> T:
    """Return the parsed value of a query string. Values from a ``Parser`` are cached.

    Callers repeat their queries: a scheduler sends the same ones for each flavor.

    :param raw: the string from WSGI, one character for each byte
    :raises BadRequest: it is not a valid query
    """
    if isinstance(parse, Parser) and len(raw) <= LONGEST_REMEMBERED:
        return cast(T, _remembered(raw, parse))
    return parse(decode(raw))


def read_text(text: str, parse: Callable[[Pairs], T]) -> T:
    """Return the parsed value of a query string in a body; see ``read``."""
    return read(text.encode("utf-8").decode("latin-1"), parse)


@functools.lru_cache(maxsize=MOST_REMEMBERED)
def _remembered(raw: str, parse: Parser[Any]) -> Any:
    return parse(decode(raw))


def decode(raw: str, invalid: str = "strict") -> Pairs:
    """Split and decode a query string. Both ``&`` and ``;`` end a parameter.

    :param raw: the string from WSGI, one character for each byte
    :param invalid: how to handle invalid UTF-8, as in ``bytes.decode``
    :raises BadRequest: a name or value is not valid UTF-8
    """
    ascii_only = re.sub(r"[\x80-\xff]", lambda byte: f"%{ord(byte[0]):02X}", raw)
    try:
        return parse.parse_qsl(
            ascii_only.replace(";", "&"),
            keep_blank_values=True,
            encoding="utf-8",
            errors=invalid,
        )
    except ValueError as exc:
        raise errors.BadRequest(f"{COMPLAINT}{exc}") from exc


def check(pairs: Pairs, schema: Schema) -> None:
    """Check the names of all parameters, and the last value of each.

    :raises BadRequest: a name is unknown or missing, or a value malformed
    """
    # In the pattern of a name, ``$`` would let a line feed pass at the end.
    schema.check({name.replace("\n", "\\n"): value for name, value in pairs}, COMPLAINT)


def parser(
    document: Mapping[str, Json],
) -> Callable[[Callable[[Pairs], T]], Parser[T]]:
    """Decorate a parser with the schema that parameters must meet before."""
    schema = Schema(document, FORMATS)

    def decorate(parse: Callable[[Pairs], T]) -> Parser[T]:
        def checked(pairs: Pairs) -> T:
            check(pairs, schema)
            return parse(pairs)

        return Parser(checked, schema)

    return decorate


NOTHING = Schema({"type": "object", "additionalProperties": False})


def refuse_all(pairs: Pairs) -> None:
    """Check that there are no parameters, for operations without any.

    :raises BadRequest: there are some
    """
    check(pairs, NOTHING)


def values(pairs: Pairs, name: str) -> list[str]:
    """Return every value of a parameter, in the order in which they were given."""
    return [value for key, value in pairs if key == name]


def last(pairs: Pairs, name: str) -> str | None:
    """Return the last value of a parameter, which counts if only one is expected."""
    return dict(pairs).get(name)
