"""Applies a file to a Placement without ``/ledger/v1``: by ordinary calls.

There are no owners: what a file says is set, and nothing else is touched. Each provider
is changed by several calls, each guarded by a generation and repeated if it lost a
race.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from placement_clients import record
from placement_clients.apply.export import DEFAULTS, FIELDS
from placement_clients.client import (
    BadRequest,
    Client,
    Conflict,
    Inventory,
    Json,
    NotFound,
    Provider,
)

CUSTOM = "CUSTOM_"
# How much ratios may differ that are the same: MySQL keeps six digits.
RATIO_TOLERANCE = 1e-5
PARSE_CLASSES = record.parser_with(resource_classes=list)
# The traits and the resource classes that there are.
Names = tuple[frozenset[str], frozenset[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """A provider as it is declared; an inventory of None is one that is not there."""

    name: str
    uuid: str | None
    parent: str | None
    inventories: Mapping[str, Inventory | None]
    traits: frozenset[str]
    aggregates: frozenset[str]


def apply(placement: Client, trees: Iterable[Json], *, dry_run: bool) -> Iterator[Json]:
    """Apply trees, or plan it, and yield what the ledger API would answer of each."""
    document = placement.get("/resource_classes", version="1.2")
    classes = PARSE_CLASSES(document)["resource_classes"]
    known = placement.list_traits(), frozenset(each["name"] for each in classes)
    for tree in trees:
        yield _apply_tree(placement, tree, known, dry_run=dry_run)


def ensure_names(
    placement: Client, traits: Iterable[str], classes: Iterable[str]
) -> None:
    """Create traits and resource classes, those that are custom and new."""
    for name in sorted(traits):
        if name.startswith(CUSTOM):
            placement.ensure_trait(name)
    for name in sorted(classes):
        if name.startswith(CUSTOM):
            placement.ensure_resource_class(name)


def _apply_tree(placement: Client, tree: Json, names: Names, *, dry_run: bool) -> Json:
    changes: list[Json] = []
    result: dict[str, Any] = {
        "name": tree["name"],
        "uuid": tree.get("uuid"),
        "result": "unchanged",
        "changes": changes,
        "drift": [],
        "reason": None,
    }
    try:
        parts = list(_walk(tree, None))
        _check_names(parts, *names)
        found = [_find(placement, wanted) for wanted in parts]
        for wanted, known in zip(parts, found, strict=True):
            changes += list(_compare(placement, wanted, known))
        result["result"] = "changed" if found[0] else "created"
        # Whatever can be foreseen has been found out: nothing is half done.
        if not dry_run:
            for wanted, known in zip(parts, found, strict=True):
                _write(placement, wanted, known)
    except (Conflict, BadRequest, NotFound, _Impossible) as exc:
        reason = str(exc) if isinstance(exc, _Impossible) else exc.reason
        return {**result, "result": "refused", "reason": reason}
    if not changes:
        result["result"] = "unchanged"
    return result


class _Impossible(Exception):
    """A tree cannot be as it is declared. The message says why."""


def _check_names(
    parts: Iterable[Wanted], traits: frozenset[str], classes: frozenset[str]
) -> None:
    """Check that standard traits and resource classes exist.

    :raises _Impossible: one does not
    """
    for wanted in parts:
        for what, names, known in (
            ("trait", wanted.traits, traits),
            ("resource class", wanted.inventories.keys(), classes),
        ):
            for name in sorted(names - known):
                if not name.startswith(CUSTOM):
                    raise _Impossible(f"No such {what}: {name}.")


def _walk(tree: Json, parent: str | None) -> Iterator[Wanted]:
    """Yield the providers of a tree, parents before their children."""
    yield Wanted(
        tree["name"],
        tree.get("uuid"),
        parent,
        {
            name: _inventory(record)
            for name, record in tree.get("inventories", {}).items()
        },
        frozenset(tree.get("traits", ())),
        frozenset(tree.get("aggregates", ())),
    )
    for child in tree.get("children", ()):
        yield from _walk(child, tree["name"])


def _inventory(record: Json) -> Inventory | None:
    if record is None:
        return None
    given = {"total": record} if isinstance(record, int) else record
    return Inventory(**{**DEFAULTS, **given})


def _find(placement: Client, wanted: Wanted) -> Provider | None:
    """Return the provider, if it exists.

    :raises _Impossible: it has another parent, name or UUID than declared
    """
    found = placement.list_providers(uuid=wanted.uuid) if wanted.uuid else ()
    if not found:
        found = placement.list_providers(name=wanted.name)
    if not found:
        return None
    known = found[0]
    if wanted.uuid and known.uuid != wanted.uuid:
        raise _Impossible(f"{wanted.name} has the UUID {known.uuid} there.")
    parent = None
    if known.parent_uuid:
        parent = placement.get_provider(known.parent_uuid).name
    if (known.name, parent) != (wanted.name, wanted.parent):
        raise _Impossible(
            f"{wanted.name} is {known.name} below {parent or 'nothing'} there; only a "
            "service with /ledger/v1 renames and moves providers."
        )
    return known


def _compare(
    placement: Client, wanted: Wanted, known: Provider | None
) -> Iterator[Json]:
    """Yield the changes that make a provider what is declared."""
    if known is None:
        after = {
            "name": wanted.name,
            "parent": wanted.parent,
            "inventories": {
                name: dataclasses.asdict(value)
                for name, value in wanted.inventories.items()
                if value
            },
            "traits": sorted(wanted.traits),
            "aggregates": sorted(wanted.aggregates),
        }
        yield _change(wanted.name, None, after)
        return
    there = placement.get_inventories(known.uuid, version="1.26").by_class
    for name, value in sorted(wanted.inventories.items()):
        if not _is_same(there.get(name), value):
            path = f"{wanted.name}/inventories/{name}"
            yield _change(path, _raw(there.get(name)), _raw(value))
    for kind, names, has in (
        ("traits", wanted.traits, placement.get_traits(known.uuid).names),
        ("aggregates", wanted.aggregates, placement.get_aggregates(known.uuid).uuids),
    ):
        for name in sorted(names - has):
            yield _change(f"{wanted.name}/{kind}/{name}", False, True)


def _is_same(one: Inventory | None, other: Inventory | None) -> bool:
    """Return whether two inventories are equal, as far as databases can store it."""
    if one is None or other is None:
        return one is other
    alike = dataclasses.replace(one, allocation_ratio=other.allocation_ratio)
    ratios = one.allocation_ratio, other.allocation_ratio
    return alike == other and math.isclose(*ratios, rel_tol=RATIO_TOLERANCE)


def _raw(value: Inventory | None) -> Json:
    return value and {name: getattr(value, name) for name in FIELDS}


def _change(path: str, before: Json, after: Json) -> Json:
    return {"path": path, "before": before, "after": after, "owner": None}


def _write(placement: Client, wanted: Wanted, known: Provider | None) -> None:
    ensure_names(placement, wanted.traits, wanted.inventories)
    if known is None:
        parent = None
        if wanted.parent:
            parent = placement.list_providers(name=wanted.parent)[0].uuid
        known = placement.create_provider(wanted.name, uuid=wanted.uuid, parent=parent)
    absent = {name for name, value in wanted.inventories.items() if value is None}
    present = {name: value for name, value in wanted.inventories.items() if value}

    def inventories(there: Mapping[str, Inventory]) -> Mapping[str, Inventory]:
        kept = {name: value for name, value in there.items() if name not in absent}
        changed = {
            name: value
            for name, value in present.items()
            if not _is_same(there.get(name), value)
        }
        return {**kept, **changed}

    placement.change_inventories(known.uuid, inventories)
    placement.change_traits(known.uuid, lambda names: names | wanted.traits)
    placement.change_aggregates(known.uuid, lambda uuids: uuids | wanted.aggregates)
