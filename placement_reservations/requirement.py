"""Requirements of reservations on hosts: the grammar of ``resource_properties``."""

import dataclasses
import json
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?")
DEEPEST = 20


class Malformed(ValueError):
    """The string is not a requirement that a host could meet."""


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """A property of a host compared with a value."""

    operator: str
    name: str
    value: str

    def __str__(self) -> str:
        return f"${self.name} {self.operator} {self.value}"


Requirement: TypeAlias = tuple[Comparison, ...]


def parse(text: str, known: Collection[str] | None = None) -> Requirement:
    """Return the comparisons in a string, all of which must hold.

    :param known: the properties that hosts have, if that matters
    :raises Malformed: it does not follow the grammar, or names a property that no host
        has
    """
    if not text:
        return ()
    try:
        comparisons = tuple(_comparisons(json.loads(text), DEEPEST))
    except (ValueError, RecursionError) as exc:
        raise Malformed(f"Malformed requirements {text}") from exc
    for comparison in comparisons:
        if known is not None and comparison.name not in known:
            raise Malformed(
                f"Malformed requirements {text}: no host has a property "
                f"{comparison.name!r}"
            )
    return comparisons


def _comparisons(document: Any, depth: int) -> Iterator[Comparison]:
    match document:
        case ["and", first, second, *others] if depth:
            for part in (first, second, *others):
                yield from _comparisons(part, depth - 1)
        case [str(symbol), str(name), str() | int() | float() as value] if (
            symbol in OPERATORS and name[:1] == "$" and name[1:]
        ):
            yield Comparison(symbol, name[1:], str(value))
        case _:
            raise Malformed


def holds(requirement: Requirement, properties: Mapping[str, object]) -> bool:
    """Return whether a host with these properties meets a requirement.

    A comparison with a property that the host does not have does not hold.
    """
    return all(
        comparison.name in properties
        and _compare(comparison, str(properties[comparison.name]))
        for comparison in requirement
    )


def _compare(comparison: Comparison, actual: str) -> bool:
    compare = OPERATORS[comparison.operator]
    expected = comparison.value
    if NUMBER.fullmatch(actual) and NUMBER.fullmatch(expected):
        return compare(float(actual), float(expected))
    return compare(actual, expected)
