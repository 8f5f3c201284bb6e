"""Objects in replies as tables: of each member its name, its schema and its value."""

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


class Member(NamedTuple):
    """A member of an object in a reply.

    ``kind`` is the schema of its value, a record that renders it, or, if it is an array
    of these, a list with that record. ``value`` returns it, or names the attribute that
    has it, which is by default that of the same name. It is there from the microversion
    ``since`` on. An ``optional`` one is left out while the attribute that it names, or
    the value, is None.
    """

    kind: Json
    value: Callable[[Any], Json] | str | None = None
    since: tuple[int, int] = FIRST
    optional: bool | str = False


# The generation of a provider, in a reply about what belongs to it.
GENERATION = Member(INTEGER, "generation")


def record(**members: Member | Json) -> Described[Any]:
    """Return the renderer of an object with these members.

    :param members: the kind alone stands for a ``Member`` with nothing else
    """
    rows = {
        name: each if isinstance(each, Member) else Member(each)
        for name, each in members.items()
    }
    values = {name: _getter(row.value or name) for name, row in rows.items()}
    # What is None where an optional member is left out.
    needed = {
        name: values[name] if row.optional is True else _getter(row.optional)
        for name, row in rows.items()
        if row.optional
    }

    def describe(version: Version) -> Json:
        there = {name: row for name, row in rows.items() if version >= row.since}
        required = [name for name in there if name not in needed]
        schemas = {name: _describe(row.kind, version) for name, row in there.items()}
        return some_of(*required, **schemas)

    def render(value: Any, view: View) -> Json:
        return {
            name: _render(row.kind, values[name](value), view)
            for name, row in rows.items()
            if view.version >= row.since
            and (name not in needed or needed[name](value) is not None)
        }

    return Described(render, describe)


def _getter(value: Callable[[Any], Json] | str) -> Callable[[Any], Json]:
    return operator.attrgetter(value) if isinstance(value, str) else value


def _describe(kind: Json, version: Version) -> Json:
    if isinstance(kind, list):
        return listed(_describe(kind[0], version))
    return kind.describe(version) if isinstance(kind, Described) else kind


def _render(kind: Json, value: Any, view: View) -> Json:
    if isinstance(kind, list):
        return [_render(kind[0], each, view) for each in value]
    return kind.render(value, view) if isinstance(kind, Described) else value
