"""Flavors and images in files: members, and maps of properties."""

import json
import re
from collections.abc import Mapping

from placement_clients.record import Json
from placement_clients.request.errors import BadInput

# One of k1='v1', k2='v2', the form in which the openstack command line prints
# properties for people. A value may contain anything, so it ends where the next key
# begins.
PAIR = re.compile(r"([^=']+)='(.*?)'(?:, (?=[^=']+=')|$)", re.DOTALL)


def parse_members(document: Json, what: str) -> Mapping[str, Json]:
    """Return the members of an object.

    :raises BadInput: the document is not an object
    """
    if not isinstance(document, dict):
        raise BadInput(f"{what} is not a JSON object")
    return document


def parse_properties(value: Json, where: str) -> dict[str, str]:
    """Return properties given as a map or as a string; other values become JSON.

    :raises BadInput: they are neither
    """
    if value is None:
        return {}
    if isinstance(value, str):
        return _parse_text(value, where)
    if not isinstance(value, dict):
        raise BadInput(f"{where} is neither a map nor a string like k1='v1', k2='v2'")
    return {
        key: each if isinstance(each, str) else json.dumps(each)
        for key, each in value.items()
    }


def _parse_text(text: str, where: str) -> dict[str, str]:
    properties = {}
    position = 0
    while position < len(text):
        pair = PAIR.match(text, position)
        if pair is None:
            raise BadInput(
                f"{where} is not a string like k1='v1', k2='v2': {text[position:]!r}"
            )
        properties[pair[1]] = pair[2]
        position = pair.end()
    return properties
