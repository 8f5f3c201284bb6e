"""Declarations of files: ranges spelled out, each name once, for the ledger API."""

import dataclasses
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from oslo_utils.uuidutils import is_uuid_like

from placement_clients.apply import reading
from placement_clients.apply.reading import Text
from placement_clients.apply.yaml12 import Fault, Place
from placement_clients.record import Json

# Of all files together, with their ranges spelled out: 2 GB of memory.
MOST_PROVIDERS = 2_000_000
VARIABLE = re.compile(r"\{(\w+)\}")


@dataclasses.dataclass(frozen=True, slots=True)
class Declaration:
    """The declarations of files. The trees are as the ledger API takes them."""

    trees: Sequence[Json]
    # The other members of the body of a request.
    others: Mapping[str, Json]

    def body(self, trees: Sequence[Json], **members: Json) -> Json:
        """Return the body of a request about some of the trees."""
        return {"trees": list(trees), **self.others, **members}


def load(texts: Iterable[tuple[str, str]]) -> Declaration:
    """Return the declarations of all files together.

    :param texts: the name of each file, and its content
    :raises Fault: something is wrong with one of them
    """
    documents = []
    for file, text in texts:
        declared = list(reading.read(text, file))
        if not declared:
            # An interrupted download is not a fleet without hosts.
            reason = "the file declares nothing; write `trees: []` for no hosts"
            raise Fault(Place(file, 1), reason)
        documents += declared
    return _combine(documents)


def _combine(documents: Sequence[Mapping[str, Json]]) -> Declaration:
    aggregates = _join(documents, "aggregates")
    others: dict[str, Json] = {
        "aggregates": aggregates,
        "projects": _join(documents, "projects"),
    }
    for member in ("traits", "resource_classes"):
        names = (name for each in documents for name in each.get(member) or ())
        others[member] = list(dict.fromkeys(names))
    patterns = [tree for document in documents for tree in document["trees"]]
    _check_size(patterns)
    checker = _Checker(aggregates)
    trees = [checker.render(tree) for each in patterns for tree in _spell_out(each, {})]
    return Declaration(trees, others)


def _join(documents: Iterable[Mapping[str, Json]], member: str) -> dict[str, str]:
    """Return what names stand for, from all documents."""
    joined: dict[str, str] = {}
    for document in documents:
        for name, given in (document.get(member) or {}).items():
            if joined.setdefault(name, given) != given:
                raise Fault(name.place, f"{name} of the {member} is two")
    return joined


def _check_size(trees: Iterable[Json]) -> None:
    """Check that trees do not stand for too many providers.

    :raises Fault: they do
    """
    count = 0
    for tree in trees:
        count += _count(tree)
        if count > MOST_PROVIDERS:
            raise Fault(
                tree["name"].place,
                f"with this, there are more than {MOST_PROVIDERS} providers",
            )


def _count(tree: Json) -> int:
    """Return how many providers a tree stands for, with its children."""
    each = 1 + sum(_count(child) for child in tree.get("children") or ())
    return each * math.prod(len(values) for values in _ranges(tree).values())


def _ranges(tree: Json) -> dict[Text, list[str]]:
    ranges = (tree.get("range") or {}).items()
    return {name: reading.values_of(written) for name, written in ranges}


def _spell_out(tree: Json, variables: Mapping[str, str]) -> Iterator[dict[str, Json]]:
    """Yield the trees that a tree with ranges stands for."""
    ranges = _ranges(tree)
    for name in ranges:
        if name in variables:
            raise Fault(name.place, f"the variable {name} is in use already")
    own = {
        name: value for name, value in tree.items() if name not in ("children", "range")
    }
    for each in itertools.product(*ranges.values()):
        known = {**variables, **dict(zip(map(str, ranges), each, strict=True))}
        children = [
            grown
            for child in tree.get("children") or ()
            for grown in _spell_out(child, known)
        ]
        yield {**_fill(own, known), "children": children}


def _fill(value: Json, known: Mapping[str, str]) -> Json:
    """Return a value in which variables are replaced."""
    if not known:
        return value
    if isinstance(value, Text):
        return _fill_text(value, known)
    if isinstance(value, list):
        return [_fill(each, known) for each in value]
    if not isinstance(value, dict):
        return value
    filled: dict[Text, Json] = {}
    for key, each in value.items():
        name = _fill_text(key, known)
        if name in filled:
            raise Fault(name.place, f"the key `{name}` occurs twice")
        filled[name] = _fill(each, known)
    return filled


def _fill_text(text: Text, known: Mapping[str, str]) -> Text:
    def value(found: re.Match[str]) -> str:
        if found[1] not in known:
            names = ", ".join(known)
            raise Fault(text.place, f"unknown variable {found[0]}; there are: {names}")
        return known[found[1]]

    return Text.of(VARIABLE.sub(value, text), text.place)


class _Checker:
    """Checks trees, in which every name and UUID occurs once, and renders them."""

    def __init__(self, aggregates: Mapping[str, str]) -> None:
        self._aggregates = aggregates
        self._seen: dict[tuple[str, str], Place] = {}

    def render(self, tree: Mapping[str, Json]) -> Json:
        """Return a tree as the ledger API takes it.

        :raises Fault: it declares something twice, or an aggregate without a UUID
        """
        for kind in ("name", "uuid"):
            if text := tree.get(kind):
                self._note(kind, text)
        for name in tree.get("aggregates") or ():
            if name not in self._aggregates and not is_uuid_like(name):
                reason = f"{name} is neither a UUID nor one of the `aggregates`"
                raise Fault(name.place, reason)
        children = [self.render(child) for child in tree["children"]]
        members = {**tree, "children": children}
        return {name: value for name, value in members.items() if value}

    def _note(self, kind: str, text: Text) -> None:
        # A UUID has several spellings.
        same = text.lower().replace("-", "") if kind == "uuid" else str(text)
        key = (kind, same)
        if first := self._seen.get(key):
            reason = f"the {kind} {text} occurs twice, first at {first}"
            raise Fault(text.place, reason)
        self._seen[key] = text.place
