"""The grammar of query strings: fields=, limit=, marker=, traits= ..."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from oslo_utils import strutils, uuidutils

from placement_foundation.http.query_string import Pairs
from placement_foundation.http.version import ByVersion
from placement_nodes import errors, version
from placement_nodes.objects import trait
from placement_nodes.objects.node import canonical_uuid
from placement_nodes.objects.node_filter import SORT_KEYS, Filters, Page
from placement_nodes.schemas import field

# The most nodes of a page.
MOST = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """Which nodes to list, how many, and with which fields; parsed and as given."""

    filters: Filters
    page: Page
    fields: Sequence[str] | None
    given: Mapping[str, str]

    def after(self, marker: str) -> dict[str, str]:
        """Return the query for the nodes after a given one."""
        return {**self.given, "limit": str(self.page.limit), "marker": marker}


@dataclasses.dataclass(frozen=True, slots=True)
class Grammar:
    """The grammar of the query of a list.

    ``fields`` are those that may be requested, ``filters`` the parsers of the values of
    each filter.
    """

    fields: frozenset[str]
    filters: Mapping[str, Callable[[str, str], Any]]


def _text(name: str, value: str) -> str:
    return value


def _boolean(name: str, value: str) -> bool:
    try:
        return bool(strutils.bool_from_string(value, strict=True))
    except ValueError as exc:
        raise errors.BadRequest(f"Invalid value for {name}: {exc}") from exc


def _uuid(name: str, value: str) -> str:
    if not uuidutils.is_uuid_like(value):
        raise errors.BadRequest(f"Invalid value for {name}: {value!r} is not a UUID")
    return canonical_uuid(value)


def _traits(name: str, value: str) -> frozenset[str]:
    names = frozenset(value.split(","))
    trait.check_names(sorted(names), name)
    return names


V1_1 = Grammar(
    frozenset(field.ALL_FIELDS) - frozenset(field.SINCE),
    {
        "instance_uuid": _uuid,
        "associated": _boolean,
        "maintenance": _boolean,
        "provision_state": _text,
        "driver": _text,
    },
)
V1_21 = Grammar(
    V1_1.fields | {"resource_class"}, {**V1_1.filters, "resource_class": _text}
)
V1_37 = Grammar(
    V1_21.fields | {"traits"},
    {
        **V1_21.filters,
        **dict.fromkeys(
            ("traits", "traits-any", "not-traits", "not-traits-any"), _traits
        ),
    },
)
GRAMMAR = {
    version.MINIMUM: V1_1,
    version.RESOURCE_CLASS: V1_21,
    version.TRAITS: V1_37,
}
PAGING = ("limit", "marker", "sort_key", "sort_dir")


def parse_list(pairs: Pairs, grammar: Grammar) -> Listing:
    """Return which nodes to list.

    :raises BadRequest: a parameter is unknown or malformed
    :raises NotAcceptable: a field does not exist at this microversion
    """
    given = _once(pairs, {"fields", *PAGING, *grammar.filters})
    return _listing(given, grammar)


def parse_whole_list(pairs: Pairs, grammar: Grammar) -> Listing:
    """Return which nodes to list in full: there is no ``fields``.

    :raises BadRequest: a parameter is unknown or malformed
    """
    return _listing(_once(pairs, {*PAGING, *grammar.filters}), grammar)


def parse_fields(pairs: Pairs, grammar: Grammar) -> Sequence[str] | None:
    """Return which fields of a node to show; None means all.

    :raises BadRequest: a parameter or a field is unknown
    :raises NotAcceptable: a field does not exist at this microversion
    """
    return _fields(_once(pairs, {"fields"}), grammar)


def by_version(
    parse: Callable[..., Any],
) -> ByVersion[Callable[[Pairs], Any]]:
    """Return a parser for each microversion, with the grammar of that version."""
    return ByVersion(
        {since: partial(parse, grammar=grammar) for since, grammar in GRAMMAR.items()}
    )


def _once(pairs: Pairs, known: Collection[str]) -> dict[str, str]:
    """Return the value of each parameter, which must not be repeated.

    :raises BadRequest: a parameter is unknown, or repeated
    """
    unknown = sorted({name for name, _ in pairs} - set(known))
    if unknown:
        raise errors.BadRequest(f"Unexpected arguments: {', '.join(unknown)}")
    given = dict(pairs)
    if len(given) < len(pairs):
        twice = sorted(name for name in given if [n for n, _ in pairs].count(name) > 1)
        raise errors.BadRequest(f"Given more than once: {', '.join(twice)}")
    return given


def _listing(given: dict[str, str], grammar: Grammar) -> Listing:
    filters = {
        name.replace("-", "_"): parse(name, given[name])
        for name, parse in grammar.filters.items()
        if name in given
    }
    return Listing(Filters(**filters), _page(given), _fields(given, grammar), given)


def _fields(given: Mapping[str, str], grammar: Grammar) -> Sequence[str] | None:
    if "fields" not in given:
        return None
    names = list(dict.fromkeys(given["fields"].split(",")))
    unknown = [name for name in names if name not in field.ALL_FIELDS]
    if unknown:
        raise errors.BadRequest(f'Field(s) "{", ".join(unknown)}" are not valid')
    if not grammar.fields >= set(names):
        raise errors.NotAcceptable("")
    return names if "links" in names else [*names, "links"]


def _page(given: Mapping[str, str]) -> Page:
    sort_key = given.get("sort_key", "id")
    if sort_key not in SORT_KEYS:
        raise errors.BadRequest(
            f'The sort_key value "{sort_key}" is an invalid field for sorting'
        )
    direction = given.get("sort_dir", "asc")
    if direction not in ("asc", "desc"):
        raise errors.BadRequest(
            f"Invalid sort direction: {direction}. Acceptable values are 'asc' or "
            "'desc'"
        )
    marker = given.get("marker")
    return Page(
        _limit(given.get("limit", str(MOST))),
        marker and _uuid("marker", marker),
        sort_key,
        direction == "desc",
    )


def _limit(value: str) -> int:
    digits = value.lstrip("0")
    if not (digits.isascii() and digits.isdigit()):
        raise errors.BadRequest("Limit must be positive")
    # Python refuses to read thousands of digits.
    return min(int(digits[: len(str(MOST)) + 1]), MOST)
