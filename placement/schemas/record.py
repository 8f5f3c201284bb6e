"""Objects in replies as tables: of each item its name, its schema and its value."""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from placement_foundation.http.schema import (
    INTEGER,
    Described,
    Json,
    View,
    listed,
    some_of,
)
from placement_foundation.http.version import FIRST, Version

BOOLEAN = {"type": "boolean"}


class Item(NamedTuple):
    """An item of an object in a reply.

    ``kind`` is the schema of its value, a record that renders it, or, if it is an array
    of these, a list with that record. ``value`` returns it, or names the attribute that
    has it, by default that of its name. It is there from the microversion
    ``since`` on. An ``optional`` one is left out while the attribute that it names, or
    the value, is None.
    """

    kind: Json
    value: Callable[[Any], Json] | str | None = None
    since: tuple[int, int] = FIRST
    optional: bool | str = False


# The generation of a provider, in a reply about what belongs to it.
GENERATION = Item(INTEGER, "generation")


class _Part(NamedTuple):
    """An item, where its value comes from, and what is None where there is none."""

    kind: Json
    since: tuple[int, int]
    optional: bool | str
    value: Callable[[Any], Json]
    needed: Callable[[Any], Any] | None


def record(**items: Item | Json) -> Described[Any]:
    """Return the renderer of an object with these items.

    :param items: the kind alone stands for an ``Item`` with nothing else
    """
    parts = {
        name: _part(name, each if isinstance(each, Item) else Item(each))
        for name, each in items.items()
    }

    def describe(version: Version) -> Json:
        there = {name: part for name, part in parts.items() if version >= part.since}
        required = [name for name, part in there.items() if not part.optional]
        schemas = {name: _describe(part.kind, version) for name, part in there.items()}
        return some_of(*required, **schemas)

    def render(value: Any, view: View) -> Json:
        document = {}
        for name, part in parts.items():
            if view.version < part.since:
                continue
            if part.needed and part.needed(value) is None:
                continue
            shown = part.value(value)
            # Where another attribute decides, the value may be None.
            if shown is not None or part.optional is not True:
                document[name] = _render(part.kind, shown, view)
        return document

    return Described(render, describe)


def _part(name: str, item: Item) -> _Part:
    needed = None
    if isinstance(item.optional, str):
        needed = operator.attrgetter(item.optional)
    value = getter(name, item)
    return _Part(item.kind, item.since, item.optional, value, needed)


def getter(name: str, item: Item) -> Callable[[Any], Json]:
    """Return the function that takes the value of an item from what is rendered."""
    value = item.value or name
    return operator.attrgetter(value) if isinstance(value, str) else value


def _describe(kind: Json, version: Version) -> Json:
    if isinstance(kind, list):
        return listed(_describe(kind[0], version))
    return kind.describe(version) if isinstance(kind, Described) else kind


def _render(kind: Json, value: Any, view: View) -> Json:
    if isinstance(kind, list):
        return [_render(kind[0], each, view) for each in value]
    return kind.render(value, view) if isinstance(kind, Described) else value
