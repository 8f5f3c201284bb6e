"""Documents of YAML 1.2, and so of JSON, as nodes with their lines: ruamel.yaml."""

import io
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import Node
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.representer import SafeRepresenter

from placement_clients.apply.fault import Fault, Place

CORE = "tag:yaml.org,2002:"
TOO_DEEP = "nested too deeply"
# The tags of words in ruamel.yaml: plain ones may be a date, `=` or `<<`.
WORDS = (f"{CORE}str", f"{CORE}timestamp", f"{CORE}value", f"{CORE}merge")
BOOLS = ("yes", "no", "on", "off", "y", "n")
KINDS = {
    f"{CORE}map": "a mapping",
    f"{CORE}seq": "a list",
    f"{CORE}int": "an integer",
    f"{CORE}float": "a number",
    f"{CORE}bool": "true or false",
    f"{CORE}null": "nothing",
    **dict.fromkeys(WORDS, "a string"),
}


def compose(text: str, file: str) -> list[Node]:
    """Return the documents of a file, as nodes with their lines.

    :raises Fault: it is not YAML
    """
    try:
        return list(YAML(typ="safe", pure=True).compose_all(text))
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


def line_of(node: Node) -> int:
    """Return the line at which a node begins."""
    return int(node.start_mark.line) + 1


def kind_of(node: Node) -> str:
    """Return the kind of a node: words such as "a mapping", "a list" or "nothing"."""
    return KINDS.get(str(node.tag), f"of the unknown kind {node.tag}")


def _represent(representer: Any, text: str) -> Any:
    # Line breaks are escaped, and readers of YAML 1.1 must not take a name for a bool.
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
