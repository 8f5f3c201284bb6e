"""Documents of YAML 1.2, and so of JSON, as nodes with their lines: ruamel.yaml."""

import dataclasses
import io
import itertools
from collections.abc import Iterable
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.representer import SafeRepresenter

from placement_clients.output import Unusable

CORE = "tag:yaml.org,2002:"
TOO_DEEP = "nested too deeply"
# How many more values may be read than the file has, since aliases repeat them.
MOST_ALIASED = 200_000
# Kinds of scalars. Plain words may be a date, `=` or `<<` for ruamel.yaml.
WORDS = ("str", "timestamp", "value", "merge")
OTHERS = ("int", "float", "bool", "null")
BOOLS = ("yes", "no", "on", "off", "y", "n")


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """A place in a file: its name, a line from 1 up, and a path of so many members."""

    file: str
    line: int
    path: str = ""
    depth: int = 0

    def at(self, step: str | int, line: int | None = None) -> "Place":
        """Return a place within this one."""
        path = f"{self.path}[{step}]" if isinstance(step, int) else step
        if isinstance(step, str) and self.path:
            path = f"{self.path}.{step}"
        return Place(self.file, line or self.line, path, self.depth + 1)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.path}".removesuffix(": ")


class Fault(Unusable):
    """A file cannot be used. The message says where, and why."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(f"{place}: {reason}")


def compose(text: str, file: str) -> list[Node]:
    """Return the documents of a file, as nodes with their lines.

    :raises Fault: it is not YAML, or aliases stand for too many values
    """
    try:
        documents = list(YAML(typ="safe", pure=True).compose_all(text))
        _check_aliases(documents, file)
        return documents
    except ReaderError as exc:
        place = Place(file, text.count("\n", 0, exc.position) + 1)
        raise Fault(place, f"not YAML: the character {exc.character:#x}") from exc
    except MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        # The mark of something that is missing at the end is after the end.
        last = text.rstrip().count("\n") + 1
        place = Place(file, min(mark.line + 1, last) if mark else 1)
        words = ", ".join(filter(None, (exc.context, exc.problem)))
        raise Fault(place, f"not YAML: {words}") from exc
    except RecursionError as exc:
        raise Fault(Place(file, 1), TOO_DEEP) from exc
    except (YAMLError, ValueError) as exc:
        raise Fault(Place(file, 1), f"not YAML: {exc}") from exc


def _check_aliases(documents: Iterable[Node], file: str) -> None:
    sizes: dict[int, int] = {}
    total = 0
    for document in documents:
        total += _size(document, sizes)
        if total - len(sizes) > MOST_ALIASED:
            reason = f"aliases stand for more than {MOST_ALIASED} values"
            raise Fault(Place(file, line_of(document)), reason)


def _size(node: Node, sizes: dict[int, int]) -> int:
    """Return how many values a node stands for, by looking at each node once.

    One that contains itself counts once; to the reader it is nested too deeply.
    """
    if id(node) not in sizes:
        sizes[id(node)] = 1
        parts = node.value if isinstance(node, CollectionNode) else ()
        if isinstance(node, MappingNode):
            parts = itertools.chain.from_iterable(parts)
        sizes[id(node)] += sum(_size(part, sizes) for part in parts)
    return sizes[id(node)]


def line_of(node: Node) -> int:
    """Return the line at which a node begins."""
    return int(node.start_mark.line) + 1


# Returns the value of a number, a truth value or nothing; raises ValueError or
# LookupError if there is none, such as of ``!!int x`` and ``!!bool x``.
construct = YAML(typ="safe", pure=True).constructor.construct_object


def _represent(representer: Any, text: str) -> Any:
    # Not everything that ruamel.yaml writes unquoted is read again as it was; and
    # readers of YAML 1.1 must not take a name for a truth value.
    is_plain = text.isprintable() and text.lower() not in BOOLS
    style = None if is_plain else '"'
    return representer.represent_scalar(f"{CORE}str", text, style=style)


SafeRepresenter.add_representer(str, _represent)


def dump(document: Any) -> str:
    """Return a document as YAML."""
    text = io.StringIO()
    writer: Any = YAML(typ="safe", pure=True)
    writer.default_flow_style, writer.width = False, 100
    writer.sort_base_mapping_type_on_output = False
    writer.dump(document, text)
    return text.getvalue()
