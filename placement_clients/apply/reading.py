"""Reads files: values, each with its place in the file."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from placement_clients.apply import yaml12
from placement_clients.apply.fault import Fault, Place

T = TypeVar("T")
Reader: TypeAlias = Callable[[Node, Place], T]

MERGED = (
    "merge keys (`<<`) are not in YAML 1.2: write the members out, or let an alias "
    "stand for a whole value, such as `traits: *gpu`"
)
UNNAMED = (
    "a provider is declared by its name: write `identification: {name: ...}`, not a "
    "UUID or $COMPUTE_NODE"
)
DEEPEST = 100
LARGEST_AMOUNT = 0x7FFFFFFF
AMOUNTS = {"total": 1, "reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1}
LARGEST_RATIO = 3.40282e38


class Text(str):
    """A string, and its place in the file."""

    place: Place

    @classmethod
    def of(cls, text: str, place: Place) -> "Text":
        """Return a string with a place."""
        made = cls(text)
        made.place = place
        return made


@dataclasses.dataclass(frozen=True, slots=True)
class Tree:
    """A provider with its children, before its ranges are spelled out."""

    place: Place
    name: Text
    uuid: Text | None
    inventories: Mapping[Text, Any]
    traits: list[Text]
    aggregates: list[Text]
    children: "list[Tree]"
    ranges: Mapping[Text, list[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Document:
    """A document of a file."""

    trees: list[Tree]
    aggregates: Mapping[Text, Text]
    projects: Mapping[Text, Text]
    traits: list[Text]
    resource_classes: list[Text]


def read_document(node: Node, place: Place) -> Document:
    """Return a document, which may be a mapping or a list of trees.

    :raises Fault: it has something that is not allowed
    """
    if isinstance(node, SequenceNode):
        return Document(_list(node, place, read_tree), {}, {}, [], [])
    if isinstance(node, MappingNode) and any(
        key.value == "meta" for key, _ in node.value
    ):
        # A file as nova-compute reads it, a ``provider.yaml``.
        known = members(node, place, ("meta", "providers"))
        return Document(known.get_list("providers", _read_provider), {}, {}, [], [])
    known = members(
        node,
        place,
        ("trees", "pattern", "aggregates", "projects", "traits", "resource_classes"),
    )
    patterns: list[Tree] = known.get("pattern", _read_patterns, [])
    return Document(
        [*known.get_list("trees", read_tree), *patterns],
        known.get("aggregates", _read_map, {}),
        known.get("projects", _read_map, {}),
        known.get("traits", read_texts, []),
        known.get("resource_classes", read_texts, []),
    )


def _read_provider(node: Node, place: Place) -> Tree:
    known = members(node, place, ("identification", "inventories", "traits"))
    identity: dict[Text, Text] = known.get("identification", _read_map, {})
    if [*identity] != ["name"]:
        raise Fault(place, UNNAMED)
    [name] = identity.values()
    inventories: dict[Text, Any] = {}
    for each in _added(known, "inventories", _read_inventories):
        inventories |= each
    traits = _added(known, "traits", read_text)
    return Tree(place, name, None, inventories, traits, [], [], {})


def _added(known: "Members", name: str, read: Reader[T]) -> list[T]:
    def read_added(node: Node, place: Place) -> list[T]:
        return members(node, place, ("additional",)).get_list("additional", read)

    return known.get(name, read_added, [])


def _read_patterns(node: Node, place: Place) -> list[Tree]:
    """Return the trees of a pattern: one, or a list of them, each with a range."""
    is_list = isinstance(node, SequenceNode)
    trees = _list(node, place, read_tree) if is_list else [read_tree(node, place)]
    for tree in trees:
        if not tree.ranges:
            raise Fault(tree.place, "a pattern needs a `range`")
    return trees


def read_tree(node: Node, place: Place) -> Tree:
    """Return a tree.

    :raises Fault: it has something that is not allowed
    """
    known = members(
        node,
        place,
        (
            *("name", "uuid", "inventories", "traits", "aggregates"),
            *("children", "range"),
        ),
    )
    if "name" not in known.nodes:
        raise Fault(place, "`name` is missing")
    name = known.nodes[Text("name")]
    return Tree(
        place,
        read_text(name, place.at("name", yaml12.line_of(name))),
        known.get("uuid", read_text, None),
        known.get("inventories", _read_inventories, {}),
        known.get("traits", read_texts, []),
        known.get("aggregates", read_texts, []),
        known.get_list("children", read_tree),
        known.get("range", _read_ranges, {}),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Members:
    """The members of a mapping, by keys that have their places."""

    place: Place
    nodes: Mapping[Text, Node]

    def get(self, name: str, read: Reader[T], default: T) -> T:
        """Return the value of a member; the default if it is missing or empty."""
        node = self.nodes.get(Text(name))
        if node is None or node.tag == f"{yaml12.CORE}null":
            return default
        return read(node, self.place.at(name, yaml12.line_of(node)))

    def get_list(self, name: str, read: Reader[T]) -> list[T]:
        """Return the list in a member; empty if the member is missing."""
        return self.get(name, lambda node, place: _list(node, place, read), [])


def members(
    node: Node, place: Place, allowed: tuple[str, ...] | None = None
) -> Members:
    """Return the members of a mapping.

    :raises Fault: it is not a mapping, or has a key twice or one that is not allowed
    """
    if not isinstance(node, MappingNode) or node.tag != f"{yaml12.CORE}map":
        raise Fault(place, f"this must be a mapping, not {yaml12.kind_of(node)}")
    nodes: dict[Text, Node] = {}
    for key_node, value in node.value:
        where = Place(place.file, yaml12.line_of(key_node), place.path)
        key = read_text(key_node, where)
        if key in nodes:
            raise Fault(where.at(key), f"the key `{key}` occurs twice")
        if allowed and key == "<<":
            raise Fault(where.at(key), MERGED)
        if allowed and key not in allowed:
            listed = ", ".join(allowed)
            raise Fault(where.at(key), f"unknown member `{key}`; there are: {listed}")
        nodes[Text.of(key, where.at(key))] = value
    return Members(place, nodes)


def _list(node: Node, place: Place, read: Reader[T]) -> list[T]:
    if not isinstance(node, SequenceNode) or node.tag != f"{yaml12.CORE}seq":
        raise Fault(place, f"this must be a list, not {yaml12.kind_of(node)}")
    if place.depth > DEEPEST:
        # An alias may stand for a list that contains it.
        raise Fault(place, yaml12.TOO_DEEP)
    return [
        read(each, place.at(number, yaml12.line_of(each)))
        for number, each in enumerate(node.value)
    ]


def read_texts(node: Node, place: Place) -> list[Text]:
    """Return a list of strings, none of which occurs twice."""
    texts = _list(node, place, read_text)
    seen = set()
    for text in texts:
        if text in seen:
            raise Fault(text.place, f"`{text}` occurs twice")
        seen.add(text)
    return texts


def read_text(node: Node, place: Place) -> Text:
    """Return a string.

    :raises Fault: it is something else, or has characters that nothing can store
    """
    if node.tag not in yaml12.WORDS:
        is_word = isinstance(node.value, str) and node.tag != f"{yaml12.CORE}null"
        quoted = f': write "{node.value}"' if is_word else ""
        raise Fault(place, f"this must be a string, not {yaml12.kind_of(node)}{quoted}")
    try:
        # JSON writes characters beyond 65535 as two.
        whole = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
    except ValueError as exc:
        raise Fault(place, "this is not valid Unicode") from exc
    return Text.of(whole, place)


def _read_map(node: Node, place: Place) -> dict[Text, Text]:
    nodes = members(node, place).nodes
    return {key: read_text(value, key.place) for key, value in nodes.items()}


def _read_inventories(node: Node, place: Place) -> dict[Text, Any]:
    known = members(node, place)
    return {
        key: _read_inventory(value, key.place) for key, value in known.nodes.items()
    }


def _read_inventory(node: Node, place: Place) -> Any:
    """Return the members of an inventory, its total, or None."""
    if node.tag == f"{yaml12.CORE}null":
        return None
    if isinstance(node, ScalarNode):
        return _read_amount(node, place, 1)
    known = members(node, place, (*AMOUNTS, "allocation_ratio"))
    if "total" not in known.nodes:
        raise Fault(place, "`total` is missing")
    record: dict[str, Any] = {}
    for key, value in known.nodes.items():
        where = place.at(key, yaml12.line_of(value))
        if key in AMOUNTS:
            record[str(key)] = _read_amount(value, where, AMOUNTS[key])
        else:
            record[str(key)] = _read_ratio(value, where)
    free = record["total"] - record.get("reserved", 0)
    capacity = int(free * record.get("allocation_ratio", 1))
    if capacity < 0:
        raise Fault(
            place, f"(total - reserved) * allocation_ratio is {capacity}: less than 0"
        )
    return record


def _read_amount(node: Node, place: Place, least: int) -> int:
    if node.tag != f"{yaml12.CORE}int":
        raise Fault(place, f"this must be an integer, not {yaml12.kind_of(node)}")
    if len(node.value) > 20:
        raise Fault(place, f"{node.value[:20]}... is too large")
    try:
        value = _number(node.value)
    except ValueError as exc:
        raise Fault(place, f"{node.value!r} is not an integer") from exc
    if not least <= value <= LARGEST_AMOUNT:
        raise Fault(place, f"{value} is not from {least} to {LARGEST_AMOUNT}")
    return value


def _read_ratio(node: Node, place: Place) -> float:
    if node.tag not in (f"{yaml12.CORE}int", f"{yaml12.CORE}float"):
        raise Fault(place, f"this must be a number, not {yaml12.kind_of(node)}")
    try:
        is_integer = node.tag == f"{yaml12.CORE}int"
        value = float(_number(node.value) if is_integer else node.value)
    except (ValueError, OverflowError):
        value = math.nan
    if not abs(value) <= LARGEST_RATIO:
        raise Fault(place, f"{node.value[:20]!r} is not a ratio")
    return value


def _number(text: str) -> int:
    return int(text, 0) if text[:2] in ("0o", "0x", "0b") else int(text)


def _read_ranges(node: Node, place: Place) -> dict[Text, list[str]]:
    """Return what each variable of a range stands for."""
    known = members(node, place)
    if not known.nodes:
        raise Fault(place, "a range needs a variable, such as `n: 1..4`")
    return {key: _read_range(value, key.place) for key, value in known.nodes.items()}


def _read_range(node: Node, place: Place) -> list[str]:
    if isinstance(node, SequenceNode):
        return [str(each) for each in read_texts(node, place)]
    text = node.value if isinstance(node, ScalarNode) else ""
    first, dots, last = text.partition("..")
    if not (dots and _is_number(first) and _is_number(last)):
        raise Fault(place, "a range is two numbers, such as 1..200, or a list")
    low, high = int(first), int(last)
    if low > high:
        raise Fault(place, f"the range {text} is empty")
    if high - low >= MOST_IN_RANGE:
        raise Fault(place, f"a range has at most {MOST_IN_RANGE} members")
    # 01..20 counts with leading zeros.
    width = len(first) if first.startswith("0") else 0
    return [f"{number:0{width}}" for number in range(low, high + 1)]


MOST_IN_RANGE = 100_000


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9
