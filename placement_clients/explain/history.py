"""History as a person reads it: a line for each change."""

from collections.abc import Iterator, Mapping
from typing import Any

from oslo_utils.uuidutils import is_uuid_like
from rich.console import Console

from placement_clients.client import Client, encode_query
from placement_clients.output import text_of
from placement_clients.record import Json

LIMIT = 1000
GAP = "journal.gap"


def filters_of(placement: Client, what: str) -> list[str]:
    """Return the queries for a provider, by name or UUID, or for a consumer.

    The first that finds anything is the right one.
    """
    listed = [{"name": what}]
    if is_uuid_like(what):
        listed.append({"uuid": what})
    for filters in listed:
        for provider in placement.list_providers(**filters):
            return [encode_query({"provider": provider.uuid})]
    # A provider that was deleted is not listed, but has a history.
    kinds = ("provider", "consumer") if is_uuid_like(what) else ("consumer",)
    return [encode_query({kind: what}) for kind in kinds]


def has_changes(entries: list[Json]) -> bool:
    """Return whether there is a change; a gap passes all filters."""
    return any(entry["type"] != GAP for entry in entries)


def draw(console: Console, document: Json) -> None:
    """Draw a line for each change, with its time, its request and its caller."""
    for entry in document["history"]:
        time = entry["time"][:19].replace("T", " ")
        request = entry.get("global_request_id") or entry.get("request_id") or "-"
        line = f"{time} UTC  {request}  {_caller(entry)}  {'; '.join(_changes(entry))}"
        console.print(text_of(line), soft_wrap=True)


def _caller(entry: Json) -> str:
    user = entry.get("user_name") or entry.get("user_id")
    project = entry.get("project_name") or entry.get("project_id")
    if user is None:
        return str(entry.get("request", "-"))
    return f"{user} ({project})" if project else str(user)


def _changes(entry: Json) -> Iterator[str]:
    before, after = entry["before"] or {}, entry["after"] or {}
    kind = entry["type"]
    if kind == "allocations.changed":
        for provider in {**before, **after}:
            name = entry["names"].get(provider, provider)
            amounts = _amounts(before.get(provider, {}), after.get(provider, {}))
            if amounts:
                yield f"{name}: {amounts}"
    elif kind == "inventory.changed":
        totals = [
            {name: each["total"] for name, each in side.items()}
            for side in (before, after)
        ]
        yield f"inventory: {_amounts(*totals) or 'changed, with the same totals'}"
    elif kind in ("traits.changed", "aggregates.changed"):
        added = [f"+{each}" for each in after["added"]]
        removed = [f"-{each}" for each in after["removed"]]
        yield f"{kind.partition('.')[0]}: {' '.join(added + removed)}"
    else:
        yield f"{kind}: {entry['subject'] or ''}{_differences(before, after)}"


def _amounts(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    return ", ".join(
        f"{name} {before.get(name, 0)} → {after.get(name, 0)}"
        for name in {**before, **after}
        if before.get(name, 0) != after.get(name, 0)
    )


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    return "".join(
        f" {name} {before.get(name) or 'none'} → {after.get(name) or 'none'}"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    )
