"""YAML 1.2 with PyYAML: the core schema, with lines, and without duplicate keys.

PyYAML reads YAML 1.1, in which ``no`` is false, ``010`` is 8 and ``1:30`` is 90. What a
plain scalar means is decided here by the expressions of YAML 1.2 instead. JSON is YAML
1.2, but for tabs, which are replaced.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import yaml

from placement_clients.apply.fault import Fault, Place

# An alias may stand for many values: no file needs more than this.
MOST_VALUES = 5_000_000
DEEPEST = 100
CORE = "tag:yaml.org,2002:"
# The plain scalars of the core schema, by what they mean.
PLAIN = {
    "null": re.compile(r"(?:~|null|Null|NULL|)\Z"),
    "bool": re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"),
    "int": re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"),
    "float": re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}
# A character beyond 65535, as JSON escapes it.
PAIR = re.compile(r"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w)")
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Parser):  # type: ignore[misc]
    """Finds out what plain scalars mean by the expressions above."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Quotes what YAML 1.1 or 1.2 would not read as a string."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out: no reader has to look elsewhere."""
        return True


for _kind, _pattern in PLAIN.items():
    # None stands for any first character.
    _Loader.add_implicit_resolver(CORE + _kind, _pattern, None)
    _Dumper.add_implicit_resolver(CORE + _kind, _pattern, None)


def compose(text: str, file: str) -> list[yaml.Node]:
    """Return the documents of a file, as nodes that know their lines.

    :raises Fault: it is not YAML
    """
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") and _is_json(text):
        text = PAIR.sub(_join, text.replace("\t", " "))
    loader = None
    try:
        loader = _Loader(text.removeprefix("\ufeff"))
        return list(_documents(loader))
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        # What is missing at the end is reported after it.
        last = text.rstrip().count("\n") + 1
        place = Place(file, min(mark.line + 1, last) if mark else 1)
        words = ", ".join(filter(None, (exc.context, exc.problem)))
        raise Fault(place, f"not YAML: {words}") from exc
    except (yaml.YAMLError, ValueError) as exc:
        raise Fault(Place(file, 1), f"not YAML: {exc}") from exc
    except RecursionError as exc:
        raise Fault(Place(file, 1), "nested too deeply") from exc
    finally:
        if loader:
            loader.dispose()


def _join(found: re.Match[str]) -> str:
    pair = json.loads(f'"{found[2]}"')
    return f"{found[1]}{pair}"


def _documents(loader: Any) -> Iterator[yaml.Node]:
    while loader.check_node():
        yield loader.get_node()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def line_of(node: yaml.Node) -> int:
    """Return the line at which a node begins."""
    return int(node.start_mark.line) + 1


def kind_of(node: yaml.Node) -> str:
    """Return what a node is: a word such as "a mapping", "a string" or "nothing"."""
    words = {
        "map": "a mapping",
        "seq": "a list",
        "str": "a string",
        "int": "an integer",
        "float": "a number",
        "bool": "true or false",
        "null": "nothing",
    }
    return words.get(node.tag.removeprefix(CORE), f"of the unknown kind {node.tag}")


def check_size(nodes: Sequence[yaml.Node], file: str) -> None:
    """Check that what aliases stand for ends, and is not too much.

    :raises Fault: it does not, or it is
    """
    count = 0
    waiting = [(node, 0, frozenset[int]()) for node in nodes]
    while waiting:
        node, depth, above = waiting.pop()
        count += 1
        place = Place(file, line_of(node))
        if id(node) in above:
            raise Fault(place, "this contains itself")
        if depth > DEEPEST:
            raise Fault(place, "nested too deeply")
        if count > MOST_VALUES:
            raise Fault(place, f"more than {MOST_VALUES} values")
        if isinstance(node, yaml.ScalarNode):
            continue
        inside = above | {id(node)}
        below = node.value
        if isinstance(node, yaml.MappingNode):
            below = [each for pair in node.value for each in pair]
        waiting += [(each, depth + 1, inside) for each in below]


def dump(document: Any) -> str:
    """Return a document as YAML that both versions read alike."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=100)
    return text
