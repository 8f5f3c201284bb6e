"""The grammar of query strings: fields=, limit=, marker=, traits= ..."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from oslo_utils import strutils, uuidutils

from placement_foundation import errors
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.version import ByVersion, Version
from placement_nodes import version
from placement_nodes.objects import trait
from placement_nodes.objects.node import canonical_uuid
from placement_nodes.objects.node_filter import SORT_KEYS, Page
from placement_nodes.schemas import field

# The most nodes of a page.
MOST = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """Which nodes to list, how many, and with which fields; parsed and as given."""

    filters: Mapping[str, Any]
    page: Page
    fields: Sequence[str] | None
    given: Mapping[str, str]

    def after(self, marker: str) -> dict[str, str]:
        """Return the query for the nodes after a given one."""
        return {**self.given, "limit": str(self.page.limit), "marker": marker}


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


TRAIT_FILTERS = ("traits", "traits-any", "not-traits", "not-traits-any")
# The parser of the values of each filter.
FILTERS: Mapping[str, Callable[[str, str], Any]] = {
    "instance_uuid": _uuid,
    "associated": _boolean,
    "maintenance": _boolean,
    "provision_state": _text,
    "driver": _text,
    "resource_class": _text,
    **dict.fromkeys(TRAIT_FILTERS, _traits),
}
# The filters that came with a later microversion.
SINCE = {
    "resource_class": version.RESOURCE_CLASS,
    **dict.fromkeys(TRAIT_FILTERS, version.TRAITS),
}
PAGING = ("limit", "marker", "sort_key", "sort_dir")


def parse_whole_list(pairs: Pairs, at: Version, *more: str) -> Listing:
    """Return which nodes to list.

    :param more: further parameters
    :raises BadRequest: a parameter is unknown or malformed
    :raises NotAcceptable: a field does not exist at this microversion
    """
    known = [name for name in FILTERS if at >= SINCE.get(name, version.MINIMUM)]
    given = _once(pairs, {*more, *PAGING, *known})
    filters = {
        name: FILTERS[name](name, given[name]) for name in known if name in given
    }
    return Listing(filters, _page(given), _fields(given, at), given)


def parse_list(pairs: Pairs, at: Version) -> Listing:
    """Return which nodes to list, and which of their fields; errors as above."""
    return parse_whole_list(pairs, at, "fields")


def parse_fields(pairs: Pairs, at: Version) -> Sequence[str] | None:
    """Return which fields of a node to show; None means all.

    :raises BadRequest: a parameter or a field is unknown
    :raises NotAcceptable: a field does not exist at this microversion
    """
    return _fields(_once(pairs, {"fields"}), at)


def by_version(
    parse: Callable[..., Any],
) -> ByVersion[Callable[[Pairs], Any]]:
    """Return a parser for each microversion that changed the grammar."""
    changes = (version.MINIMUM, version.RESOURCE_CLASS, version.TRAITS)
    return ByVersion({since: partial(parse, at=Version(*since)) for since in changes})


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


def _fields(given: Mapping[str, str], at: Version) -> Sequence[str] | None:
    if "fields" not in given:
        return None
    names = list(dict.fromkeys(given["fields"].split(",")))
    unknown = [name for name in names if name not in field.ALL_FIELDS]
    if unknown:
        raise errors.BadRequest(f'Field(s) "{", ".join(unknown)}" are not valid')
    if not all(field.is_known(name, at) for name in names):
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
