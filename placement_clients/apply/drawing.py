"""Draws plans, results and drift: one line for each difference."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from placement_clients.output import text_of
from placement_clients.record import Inventory, Json

SIGNS = {
    "created": "+",
    "changed": "~",
    "removed": "-",
    "conflict": "!",
    "refused": "!",
    "stale": "!",
}
STYLES = {"+": "green", "~": "yellow", "-": "red", "!": "bold red", "?": "cyan"}
PLANNED = {
    "created": "to create",
    "changed": "to change",
    "removed": "to remove",
    "conflict": "in conflict",
    "refused": "refused",
    "stale": "changed meanwhile",
    "unchanged": "unchanged",
}
DONE = {**PLANNED, "created": "created", "changed": "changed", "removed": "removed"}
# The defaults for members of an inventory that a file leaves out.
DEFAULTS = {
    field.name: field.default
    for field in dataclasses.fields(Inventory)
    if field.name != "total"
}


def draw_trees(console: Console, trees: Iterable[Json]) -> None:
    """Draw the results of trees, but for unchanged ones."""
    for tree in trees:
        if tree["result"] == "unchanged" and not tree["drift"]:
            continue
        sign = SIGNS.get(tree["result"], "?")
        title = f"{sign} {tree['name']}"
        if tree["reason"]:
            title += f": {tree['reason']}"
        elif tree["result"] == "conflict":
            title += ": another owner declares otherwise; --force takes it over"
        _print(console, title, sign)
        for change in tree["changes"]:
            _draw_change(console, change)
        for change in tree["drift"]:
            _print(console, f"    ? {_left(change)}", "?")


def draw_names(console: Console, changes: Sequence[Json]) -> None:
    """Draw how the names of aggregates and projects differ."""
    if changes:
        _print(console, "~ names", "~")
    for change in changes:
        _draw_change(console, change)


def draw_summary(
    console: Console, trees: Iterable[Json], words: Mapping[str, str]
) -> None:
    """Draw the number of trees with each result."""
    counts = Counter(tree["result"] for tree in trees)
    listed = [f"{counts[each]} {word}" for each, word in words.items() if counts[each]]
    console.print(Text(f"Hosts: {', '.join(listed) or 'none'}."))


def draw_drift(console: Console, declared: Iterable[Json]) -> None:
    """Draw how Placement differs from the declaration."""
    for each in declared:
        for change in each["drift"]:
            before, after = value(change["before"]), value(change["after"])
            line = f"? {change['path']}: declared {before}, is {after}"
            _print(console, f"{line} ({each['owner']})", "?")


def _draw_change(console: Console, change: Json) -> None:
    before, after = change["before"], change["after"]
    sign = "~"
    if before in (None, False):
        sign = "+"
    elif after in (None, False):
        sign = "-"
    if change["owner"]:
        sign = "!"
    line = f"    {sign} {change['path']}"
    if isinstance(before, bool) or isinstance(after, bool):
        pass
    elif sign == "+":
        line += f": {value(after)}"
    elif sign != "-":
        line += f": {value(before)} -> {value(after)}"
    if change["owner"]:
        line += f" ({change['owner']} declares otherwise)"
    _print(console, line, sign)


def _left(change: Json) -> str:
    if change["before"] is None and set(change["after"] or ()) == {"name"}:
        return f"{change['path']} is no longer declared; it stays"
    before, after = value(change["before"]), value(change["after"])
    return f"{change['path']} was declared {before}, is {after}: it stays"


def value(given: Any) -> str:
    """Return a value in a few words: an inventory without its defaults."""
    if given is None:
        return "absent"
    if isinstance(given, bool):
        return "present" if given else "absent"
    if not isinstance(given, dict):
        return str(given)
    if "total" in given:
        rest = [
            f"{name} {given[name]}"
            for name, usual in DEFAULTS.items()
            if given[name] != usual
        ]
        return ", ".join([str(given["total"]), *rest])
    parts = []
    if given.get("parent"):
        parts.append(f"below {given['parent']}")
    inventories = given.get("inventories", {}).items()
    parts += [f"{name} {value(record)}" for name, record in inventories]
    parts += given.get("traits", ())
    parts += [f"in {uuid}" for uuid in given.get("aggregates", ())]
    return ", ".join(parts) or str(given.get("name", "nothing"))


def _print(console: Console, line: str, sign: str) -> None:
    console.print(text_of(line, STYLES[sign]), soft_wrap=True)
