"""Reads files: YAML as JSON, checked by a schema; strings have their places."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from placement_clients.apply import yaml12
from placement_clients.apply.yaml12 import Fault, Place
from placement_clients.record import Json

MERGED = (
    "merge keys (`<<`) are not in YAML 1.2: write the members out, or let an alias "
    "stand for a whole value, such as `traits: *gpu`"
)
DEEPEST = 100
# A longer message of the library has all of a value in it.
LONGEST_MESSAGE = 300
MOST_IN_RANGE = 100_000

TEXT = {"type": "string"}
# Names and UUIDs may have variables. What these stand for is left to the service.
WORD = {"type": "string", "maxLength": 255, "pattern": r"^([A-Z0-9_]|\{\w+\})+$"}
UUID = {"type": "string", "pattern": r"^([0-9A-Fa-f-]{32,36}|.*\{\w+\}.*)$"}
NAME = {"type": "string", "minLength": 1, "maxLength": 200}
IDENTITY = {"type": "string", "minLength": 1, "maxLength": 255}
RANGE = {
    "type": ["string", "array"],
    "pattern": r"^\d{1,9}\.\.\d{1,9}$",
    "items": TEXT,
    "uniqueItems": True,
}
RESERVED = {"type": "integer", "minimum": 0, "maximum": 0x7FFFFFFF}
AMOUNT = {**RESERVED, "minimum": 1}
RATIO = {"type": "number", "minimum": -3.40282e38, "maximum": 3.40282e38}


def _list(items: Json) -> dict[str, Any]:
    return {"type": ["array", "null"], "items": items}


def _set(items: Json) -> dict[str, Any]:
    return {**_list(items), "uniqueItems": True}


def _map(values: Json, names: Json) -> dict[str, Any]:
    return {
        "type": ["object", "null"],
        "propertyNames": names,
        "additionalProperties": values,
    }


def _members(*required: str, **properties: Json) -> dict[str, Any]:
    """Return the schema of a mapping with these members and no others."""
    return {
        "type": "object",
        "propertyNames": {"enum": [*properties]},
        "properties": properties,
        "required": required,
    }


INVENTORY = {
    **_members(
        "total",
        **dict.fromkeys(("total", "min_unit", "max_unit", "step_size"), AMOUNT),
        reserved=RESERVED,
        allocation_ratio=RATIO,
    ),
    # A number is the total; with null, there is to be no inventory.
    **AMOUNT,
    "type": ["integer", "object", "null"],
}
INVENTORIES = _map(INVENTORY, WORD)
TREES = _list({"$ref": "#/$defs/tree"})
TREE = _members(
    "name",
    name=NAME,
    uuid={**UUID, "type": ["string", "null"]},
    inventories=INVENTORIES,
    traits=_set(WORD),
    aggregates=_set(IDENTITY),
    children=TREES,
    range={**_map(RANGE, TEXT), "minProperties": 1},
)
PATTERN = {**TREE, "required": ["name", "range"]}
DOCUMENT = _members(
    trees=TREES,
    pattern={**PATTERN, "type": ["object", "array", "null"], "items": PATTERN},
    aggregates=_map(UUID, IDENTITY),
    projects=_map(IDENTITY, IDENTITY),
    traits=_set(WORD),
    resource_classes=_set(WORD),
)
# What a ``provider.yaml`` adds.
ADDED = {"type": ["object", "null"]}
# A file as nova-compute reads it, a ``provider.yaml``.
NOVA = _members(
    meta={},
    providers=_list(
        _members(
            "identification",
            identification=_members("name", name=NAME),
            inventories=_members(additional=_list(INVENTORIES)) | ADDED,
            traits=_members(additional=_set(WORD)) | ADDED,
        )
    ),
)


class Text(str):
    """A string, and its place in the file."""

    __slots__ = ("place",)
    place: Place

    @classmethod
    def of(cls, text: str, place: Place) -> "Text":
        """Return a string with a place."""
        made = cls(text)
        made.place = place
        return made


def read(text: str, file: str) -> Iterator[dict[str, Any]]:
    """Yield the documents of a file that are not empty.

    The member ``trees`` of each has all of its trees, as they are written.

    :raises Fault: it has something that is not allowed
    """
    nodes = yaml12.compose(text, file)
    for number, node in enumerate(nodes):
        path = f"document {number + 1}" if len(nodes) > 1 else ""
        place = Place(file, yaml12.line_of(node), path)
        document = _value(node, place)
        if document is not None:
            yield _checked(document, node, place)


def _checked(document: Json, node: Node, place: Place) -> dict[str, Any]:
    if isinstance(document, list):
        _check(TREES, document, node, place)
        return {"trees": document}
    if isinstance(document, dict) and "meta" in document:
        _check(NOVA, document, node, place)
        return {"trees": [_provider(each) for each in document.get("providers") or ()]}
    _check(DOCUMENT, document, node, place)
    pattern = document.get("pattern") or []
    patterns = pattern if isinstance(pattern, list) else [pattern]
    return {**document, "trees": [*(document.get("trees") or ()), *patterns]}


def _check(schema: Json, document: Json, node: Node, place: Place) -> None:
    whole = {**schema, "$defs": {"tree": TREE}}
    for error in Draft202012Validator(whole).iter_errors(document):
        reason = error.message
        if len(reason) > LONGEST_MESSAGE:
            reason = f"this is not of {error.validator} {error.validator_value}"
        raise Fault(_place_of(error, node, place), reason)


def _place_of(error: ValidationError, node: Node, place: Place) -> Place:
    if isinstance(error.instance, Text):
        # Of the name of a member, the library has no path.
        return error.instance.place
    for step in error.absolute_path:
        if isinstance(step, int):
            node = node.value[step]
        else:
            nodes = (value for key, value in node.value if key.value == step)
            node = next(nodes, node)
        place = place.at(step, yaml12.line_of(node))
    return place


def _provider(provider: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree of a provider in a ``provider.yaml``."""
    added = {
        name: (provider.get(name) or {}).get("additional") or ()
        for name in ("inventories", "traits")
    }
    inventories: dict[str, Json] = {}
    for each in added["inventories"]:
        inventories |= each or {}
    return {
        "name": provider["identification"]["name"],
        "inventories": inventories,
        "traits": list(added["traits"]),
    }


def _value(node: Node, place: Place) -> Json:
    """Return the value of a node.

    :raises Fault: JSON has no such value
    """
    if place.depth > DEEPEST:
        # An alias may stand for a list that contains it.
        raise Fault(place, yaml12.TOO_DEEP)
    kind = str(node.tag).removeprefix(yaml12.CORE)
    if isinstance(node, MappingNode) and kind == "map":
        return _mapping(node, place)
    if isinstance(node, SequenceNode) and kind == "seq":
        return [
            _value(each, place.at(number, yaml12.line_of(each)))
            for number, each in enumerate(node.value)
        ]
    if isinstance(node, ScalarNode) and kind in yaml12.WORDS:
        return _text(node, place)
    if isinstance(node, ScalarNode) and kind in yaml12.OTHERS:
        return _scalar(node, place)
    raise Fault(place, f"this is of the unknown kind {node.tag}")


def _mapping(node: MappingNode, place: Place) -> dict[Text, Json]:
    members: dict[Text, Json] = {}
    for key_node, value in node.value:
        where = Place(place.file, yaml12.line_of(key_node), place.path)
        if key_node.tag == f"{yaml12.CORE}merge":
            raise Fault(where.at("<<"), MERGED)
        key = _value(key_node, where)
        if not isinstance(key, Text):
            raise Fault(where, f'a key must be a string: write "{key}"')
        within = place.at(key, where.line)
        if key in members:
            raise Fault(within, f"the key `{key}` occurs twice")
        known = Text.of(key, within)
        members[known] = _value(value, place.at(key, yaml12.line_of(value)))
    return members


def _text(node: ScalarNode, place: Place) -> Text:
    try:
        # JSON writes characters beyond 65535 as two.
        whole = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
    except ValueError as exc:
        raise Fault(place, "this is not valid Unicode") from exc
    return Text.of(whole, place)


def _scalar(node: ScalarNode, place: Place) -> Json:
    try:
        value = yaml12.construct(node)
        if value is None or math.isfinite(value):
            return value
    except (ValueError, LookupError, OverflowError):
        # LookupError: a tag that does not fit, such as `!!bool maybe` or `!!int ""`.
        pass
    raise Fault(place, f"{node.value[:20]!r} is not a number of JSON")


def values_of(written: Json) -> list[str]:
    """Return what a variable of a range stands for.

    :raises Fault: there is none, or there are too many
    """
    if isinstance(written, list):
        return written
    first, _, last = written.partition("..")
    low, high = int(first), int(last)
    if not 0 <= high - low < MOST_IN_RANGE:
        reason = f"the range {written} does not have 1 to {MOST_IN_RANGE} members"
        raise Fault(written.place, reason)
    # 01..20 counts with leading zeros.
    width = len(first) if first.startswith("0") else 0
    return [f"{number:0{width}}" for number in range(low, high + 1)]
