"""Declarations of files: ranges spelled out, each name once, for the ledger API."""

import dataclasses
import itertools
import math
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ruamel.yaml.nodes import Node

from placement_clients.apply import reading, yaml12
from placement_clients.apply.fault import Fault, Place
from placement_clients.apply.reading import Document, Text, Tree
from placement_clients.record import Json

# Of all files together, with their ranges spelled out: 2 GB of memory.
MOST_PROVIDERS = 2_000_000
LONGEST_NAME = 200
LONGEST_WORD = 255
WORD = re.compile(r"[A-Z0-9_]+")
VARIABLE = re.compile(r"\{(\w+)\}")


@dataclasses.dataclass(frozen=True, slots=True)
class Declaration:
    """The declarations of files. The trees are as the ledger API takes them."""

    trees: Sequence[Json]
    traits: Sequence[str]
    resource_classes: Sequence[str]
    aggregates: Mapping[str, str]
    projects: Mapping[str, str]

    def body(self, trees: Sequence[Json], **members: Json) -> Json:
        """Return the body of a request about some of the trees."""
        return {
            "trees": list(trees),
            "traits": list(self.traits),
            "resource_classes": list(self.resource_classes),
            "aggregates": dict(self.aggregates),
            # Older services have no names of projects.
            **({"projects": dict(self.projects)} if self.projects else {}),
            **members,
        }


def load(texts: Iterable[tuple[str, str]]) -> Declaration:
    """Return the declarations of all files together.

    :param texts: the name of each file, and its content
    :raises Fault: something is wrong with one of them
    """
    documents = []
    for file, text in texts:
        placed = list(_places(yaml12.compose(text, file), file))
        declared = [
            reading.read_document(node, place)
            for node, place in placed
            if node.tag != f"{yaml12.CORE}null"
        ]
        if not declared:
            # An interrupted download is not a fleet without hosts.
            reason = "the file declares nothing; write `trees: []` for no hosts"
            raise Fault(Place(file, 1), reason)
        documents += declared
    return _combine(documents)


def _places(nodes: Sequence[Node], file: str) -> Iterator[tuple[Node, Place]]:
    for number, node in enumerate(nodes):
        path = f"document {number + 1}" if len(nodes) > 1 else ""
        yield node, Place(file, yaml12.line_of(node), path)


def _combine(documents: Sequence[Document]) -> Declaration:
    aggregates = _join((each.aggregates for each in documents), "aggregate", "UUIDs")
    for given in aggregates.values():
        _check_uuid(given)
    projects = _join((each.projects for each in documents), "project", "ids")
    for given in projects.values():
        if not 0 < len(given) <= LONGEST_WORD:
            raise Fault(given.place, f"an id has 1 to {LONGEST_WORD} characters")
    patterns = [tree for document in documents for tree in document.trees]
    _check_size(patterns)
    checker = _Checker(aggregates)
    return Declaration(
        [checker.render(tree) for each in patterns for tree in _spell_out(each, {})],
        _words(text for document in documents for text in document.traits),
        _words(text for document in documents for text in document.resource_classes),
        _plain(aggregates),
        _plain(projects),
    )


def _plain(names: Mapping[Text, Text]) -> dict[str, str]:
    return {str(name): str(given) for name, given in names.items()}


def _join(maps: Iterable[Mapping[Text, Text]], what: str, ids: str) -> dict[Text, Text]:
    """Return the ids of names, from all documents."""
    joined: dict[Text, Text] = {}
    for each in maps:
        for name, given in each.items():
            if joined.setdefault(name, given) != given:
                raise Fault(name.place, f"the {what} {name} has two {ids}")
    return joined


def _words(texts: Iterable[Text]) -> list[str]:
    words = dict.fromkeys(texts)
    for word in words:
        _check_word(word)
    return [str(word) for word in words]


def _check_size(trees: Iterable[Tree]) -> None:
    """Check that trees do not stand for too many providers.

    :raises Fault: they do
    """
    count = 0
    for tree in trees:
        count += _count(tree)
        if count > MOST_PROVIDERS:
            raise Fault(
                tree.place,
                f"with this, there are more than {MOST_PROVIDERS} providers",
            )


def _count(tree: Tree) -> int:
    """Return how many providers a tree stands for, with its children."""
    each = 1 + sum(_count(child) for child in tree.children)
    return each * math.prod(len(values) for values in tree.ranges.values())


def _spell_out(tree: Tree, variables: Mapping[str, str]) -> Iterator[Tree]:
    """Yield the trees that a tree with ranges stands for."""
    for name in tree.ranges:
        if name in variables:
            raise Fault(name.place, f"the variable {name} is in use already")
    for each in itertools.product(*tree.ranges.values()):
        known = {**variables, **dict(zip(map(str, tree.ranges), each, strict=True))}
        yield _substitute(tree, known)


def _substitute(tree: Tree, known: Mapping[str, str]) -> Tree:
    def text(given: Text) -> Text:
        if not known:
            return given

        def value(found: re.Match[str]) -> str:
            if found[1] not in known:
                names = ", ".join(known)
                raise Fault(
                    given.place, f"unknown variable {found[0]}; there are: {names}"
                )
            return known[found[1]]

        return Text.of(VARIABLE.sub(value, given), given.place)

    inventories: dict[Text, Any] = {}
    for name, record in tree.inventories.items():
        key = text(name)
        if key in inventories:
            raise Fault(key.place, f"the key `{key}` occurs twice")
        inventories[key] = record
    return Tree(
        tree.place,
        text(tree.name),
        tree.uuid and text(tree.uuid),
        inventories,
        [text(each) for each in tree.traits],
        [text(each) for each in tree.aggregates],
        [each for child in tree.children for each in _spell_out(child, known)],
        {},
    )


class _Checker:
    """Checks trees, in which every name and UUID occurs once, and renders them."""

    def __init__(self, aggregates: Mapping[Text, Text]) -> None:
        self._aggregates = aggregates
        self._seen: dict[tuple[str, str], Place] = {}

    def render(self, tree: Tree) -> Json:
        """Return a tree as the ledger API takes it.

        :raises Fault: it declares something impossible
        """
        if not 0 < len(tree.name) <= LONGEST_NAME:
            raise Fault(tree.name.place, f"a name has 1 to {LONGEST_NAME} characters")
        self._note("name", tree.name)
        rendered: dict[str, Any] = {"name": str(tree.name)}
        if tree.uuid is not None:
            _check_uuid(tree.uuid)
            canonical = str(uuid.UUID(tree.uuid))
            self._note("UUID", Text.of(canonical, tree.uuid.place))
            rendered["uuid"] = canonical
        for word in (*tree.inventories, *tree.traits):
            _check_word(word)
        rendered["inventories"] = {
            str(name): value for name, value in tree.inventories.items()
        }
        rendered["traits"] = [str(each) for each in tree.traits]
        rendered["aggregates"] = [self._aggregate(each) for each in tree.aggregates]
        rendered["children"] = [self.render(child) for child in tree.children]
        return {name: value for name, value in rendered.items() if value}

    def _note(self, kind: str, text: Text) -> None:
        first = self._seen.get((kind, text))
        self._seen[kind, text] = text.place
        if first:
            raise Fault(
                text.place,
                f"the {kind} {text} occurs twice, first at {first}",
            )

    def _aggregate(self, name: Text) -> str:
        if name in self._aggregates:
            return str(self._aggregates[name])
        if not _is_uuid(name):
            raise Fault(
                name.place, f"{name} is neither a UUID nor one of the `aggregates`"
            )
        return str(name)


def _check_word(word: Text) -> None:
    """Check the name of a trait or resource class."""
    if not (WORD.fullmatch(word) and len(word) <= LONGEST_WORD) or word == "CUSTOM_":
        raise Fault(
            word.place,
            f"{word[:LONGEST_WORD]!r} is not a valid name: use A to Z, 0 to 9 and _",
        )


def _check_uuid(given: Text) -> None:
    if not _is_uuid(given):
        raise Fault(given.place, f"{given[:LONGEST_WORD]!r} is not a UUID")


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)).replace("-", "") == text.lower().replace("-", "")
    except ValueError:
        return False
