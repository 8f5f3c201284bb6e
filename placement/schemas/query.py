"""The grammar of query strings: resources=, required=, member_of=, in_tree= ..."""

from typing import TypeAlias
from urllib import parse

from placement import errors

# The parameters of a query string, decoded, in the order they were given.
Pairs: TypeAlias = list[tuple[str, str]]

COMPLAINT = "Invalid query string parameters: "


def decode(raw: str) -> Pairs:
    """Split and decode a query string. Both ``&`` and ``;`` end a parameter.

    :raises BadRequest: a name or value is not UTF-8
    """
    try:
        return parse.parse_qsl(
            raw.replace(";", "&"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
        )
    except ValueError as exc:
        raise errors.BadRequest(f"{COMPLAINT}{exc}") from exc
