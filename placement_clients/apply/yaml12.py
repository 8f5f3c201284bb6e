"""YAML 1.2 with PyYAML: the core schema, with lines, and without duplicate keys.

PyYAML reads YAML 1.1, in which ``no`` is false, ``010`` is 8 and ``1:30`` is 90. What a
plain scalar means is decided here by the expressions of YAML 1.2 instead. JSON is YAML
1.2, but for tabs, which are replaced.
"""

import functools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import yaml

from placement_clients.apply.fault import Fault, Place

# An alias may stand for many values: no file needs more than this of them.
MOST_ALIASED = 200_000
DEEPEST = 100
# Composing recurses in C, where too deep a recursion ends the process.
DEEPEST_TO_COMPOSE = 1_000
CORE = "tag:yaml.org,2002:"
TOO_DEEP = "nested too deeply"
LIMIT = "maximum nesting depth"
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
    text = text.removeprefix("\ufeff")
    loader = None
    try:
        _check_depth(text, file)
        loader = _Loader(text)
        return list(_documents(loader))
    except yaml.reader.ReaderError as exc:
        if exc.encoding != "unicode":
            # The parser in C counts bytes: these have a character for each.
            text = text.encode().decode("latin-1")
        place = Place(file, text.count("\n", 0, exc.position) + 1)
        raise Fault(place, f"not YAML: the character {exc.character:#x}") from exc
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        # What is missing at the end is reported after it.
        last = text.rstrip().count("\n") + 1
        place = Place(file, min(mark.line + 1, last) if mark else 1)
        words = ", ".join(filter(None, (exc.context, exc.problem)))
        # Newer parsers have a limit of their own, and find it first.
        is_deep = exc.problem and LIMIT in exc.problem
        raise Fault(place, TOO_DEEP if is_deep else f"not YAML: {words}") from exc
    except (yaml.YAMLError, ValueError) as exc:
        raise Fault(Place(file, 1), f"not YAML: {exc}") from exc
    finally:
        if loader:
            loader.dispose()


def _check_depth(text: str, file: str) -> None:
    """Check that a file can be composed.

    :raises Fault: it is nested too deeply
    """
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST_TO_COMPOSE:
            raise Fault(Place(file, event.start_mark.line + 1), TOO_DEEP)


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


def check_size(documents: Iterable[tuple[yaml.Node, Place]]) -> None:
    """Check that what aliases stand for ends, and is not too much.

    Each node is looked at once, however many aliases stand for it.

    :raises Fault: it does not, or it is
    """
    measured: dict[int, tuple[int, int]] = {}
    count = 0
    for node, place in documents:
        count += _measure(node, place, measured)[0]
        if count - len(measured) > MOST_ALIASED:
            reason = f"aliases stand for more than {MOST_ALIASED} values"
            raise Fault(Place(place.file, line_of(node), place.path), reason)


def _measure(
    root: yaml.Node, place: Place, measured: dict[int, tuple[int, int]]
) -> tuple[int, int]:
    """Return how many values a node stands for, and how deep they are nested."""
    path: list[tuple[yaml.Node, Iterator[tuple[yaml.Node, str | int]], str | int]] = [
        (root, _steps(root), "")
    ]
    above = {id(root)}
    while path:
        node, waiting, _ = path[-1]
        for each, step in waiting:
            if id(each) in measured and measured[id(each)][1] + len(path) <= DEEPEST:
                continue
            path.append((each, _steps(each), step))
            reason = "this contains itself" if id(each) in above else None
            reason = TOO_DEEP if len(path) > DEEPEST + 1 else reason
            if reason:
                where = functools.reduce(
                    Place.at, [part[2] for part in path[1:]], place
                )
                raise Fault(Place(place.file, line_of(each), where.path), reason)
            above.add(id(each))
            break
        else:
            parts = [measured[id(each)] for each, _ in _steps(node)]
            measured[id(node)] = (
                1 + sum(size for size, _ in parts),
                1 + max((depth for _, depth in parts), default=0),
            )
            above.discard(id(node))
            path.pop()
    return measured[id(root)]


def _steps(node: yaml.Node) -> Iterator[tuple[yaml.Node, str | int]]:
    """Yield what is directly inside a node, and the steps that lead there."""
    if isinstance(node, yaml.SequenceNode):
        yield from ((each, number) for number, each in enumerate(node.value))
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            yield key, name
            yield value, name


def dump(document: Any) -> str:
    """Return a document as YAML that both versions read alike."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=100)
    return text
