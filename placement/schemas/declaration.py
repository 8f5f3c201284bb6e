"""Declared hardware on the wire: declarations, and their outcomes."""

import collections
import dataclasses
import uuid
from collections.abc import Mapping
from typing import Any, TypeAlias

from placement import errors
from placement.declaration.outcome import Declaration, Outcome, Result, Terms
from placement.model.declaration import DeclaredProvider, Names
from placement.model.inventory import Inventory
from placement.schemas import inventory
from placement.schemas.allocation import EXTERNAL_ID
from placement.schemas.record import BOOLEAN, Item, record
from placement.schemas.resource_class import RESOURCE_CLASS_PATTERN
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs
from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    TEXT_OR_NULL,
    UUID,
    Json,
    Schema,
    is_uuid,
    keyed,
    listed,
    some_of,
)

COMPLAINT = "JSON does not validate: "
# Databases may neglect case, so an owner has none.
OWNER = {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]*$", "maxLength": 64}
DEFAULT_OWNER = "fleet"
TRAIT = {"type": "string", "pattern": "^[A-Z0-9_]+$", "maxLength": 255}
CLASS_NAME = {"type": "string", "pattern": RESOURCE_CLASS_PATTERN, "maxLength": 255}
RECORD = some_of("total", **inventory.AMOUNTS)
# An inventory in full, its total only, or None: the provider is to have none.
INVENTORY = {
    "anyOf": [RECORD, inventory.AMOUNT, {"type": "null"}],
}


def _keyed(names: Json, values: Json) -> dict[str, Json]:
    return {"type": "object", "propertyNames": names, "additionalProperties": values}


PART = Schema(
    some_of(
        "name",
        name={"type": "string", "minLength": 1, "maxLength": 200},
        uuid=UUID,
        inventories=_keyed(CLASS_NAME, INVENTORY),
        traits=listed(TRAIT),
        aggregates=listed(EXTERNAL_ID),
        children=listed({"type": "object"}),
    )
)
# The trees are checked one provider at a time: with JSON Schema alone that takes
# seconds for a large cloud.
BODY = Schema(
    some_of(
        owner=OWNER,
        dry_run=BOOLEAN,
        force=BOOLEAN,
        prune=BOOLEAN,
        complete=BOOLEAN,
        planned=listed(TEXT),
        trees=listed({"type": "object"}),
        aggregates=_keyed(EXTERNAL_ID, UUID),
        projects=_keyed(EXTERNAL_ID, EXTERNAL_ID),
        traits=listed(TRAIT),
        resource_classes=listed(CLASS_NAME),
    )
)

# A provider of a tree as it was sent, where it is, and the position of its parent.
_Sent: TypeAlias = tuple[Json, str, int | None]


@dataclasses.dataclass(frozen=True, slots=True)
class DeclaredQuery:
    """Which declarations to list: those of one owner, or only where there is drift."""

    owner: str | None
    drift: bool


def parse(body: Json) -> Declaration:
    """Return the declaration in a body.

    :raises BadRequest: it declares something twice, or what cannot be
    """
    planned = body.get("planned")
    if body.get("prune") and not body.get("complete") and planned is None:
        raise errors.BadRequest("To prune, the declaration must be complete.")
    reader = _Reader(body.get("aggregates", {}))
    trees = [
        reader.read_tree(tree, f"trees[{number}]")
        for number, tree in enumerate(body.get("trees", ()))
    ]
    terms = Terms(
        body.get("owner", DEFAULT_OWNER),
        body.get("force", False),
        body.get("prune", False),
        body.get("complete", False),
        planned=None if planned is None else frozenset(planned),
    )
    return Declaration(
        trees,
        terms,
        frozenset(body.get("traits", ())),
        frozenset(body.get("resource_classes", ())),
        Names(_by_id(body, "aggregates"), _by_id(body, "projects")),
    )


def _by_id(body: Json, kind: str) -> dict[str, str]:
    """Return the names in a body by what they stand for; of two, the first one."""
    given = reversed(body.get(kind, {}).items())
    return {each: name for name, each in given}


class _Reader:
    """Reads the trees of a body, in which names and UUIDs occur once."""

    def __init__(self, aggregates: Mapping[str, str]) -> None:
        self._aggregates = aggregates
        self._places: dict[str, str] = {}

    def read_tree(self, tree: Json, place: str) -> tuple[DeclaredProvider, ...]:
        """Return a tree, parents before their children."""
        parts: list[DeclaredProvider] = []
        waiting: list[_Sent] = [(tree, place, None)]
        while waiting:
            sent, where, parent = waiting.pop()
            parts.append(self._read_part(sent, where, parent))
            children = list(enumerate(sent.get("children", ())))
            waiting += [
                (child, f"{where}.children[{number}]", len(parts) - 1)
                for number, child in reversed(children)
            ]
        return tuple(parts)

    def _read_part(
        self, sent: Json, where: str, parent: int | None
    ) -> DeclaredProvider:
        PART.check(sent, f"{COMPLAINT}{where}: ")
        given = str(uuid.UUID(sent["uuid"])) if "uuid" in sent else None
        self._note(f"name {sent['name']}", where)
        if given:
            self._note(f"UUID {given}", where)
        return DeclaredProvider(
            sent["name"],
            given,
            parent,
            {
                name: _parse_inventory(name, record, where)
                for name, record in sent.get("inventories", {}).items()
            },
            frozenset(sent.get("traits", ())),
            frozenset(
                self._aggregate(name, where) for name in sent.get("aggregates", ())
            ),
        )

    def _aggregate(self, name: str, where: str) -> str:
        """Return the UUID of an aggregate, which may be given by a name."""
        aggregate_uuid = self._aggregates.get(name, name)
        if not is_uuid(aggregate_uuid):
            raise errors.BadRequest(
                f"{COMPLAINT}{where}: {name} is neither a UUID nor in `aggregates`."
            )
        return aggregate_uuid

    def _note(self, what: str, where: str) -> None:
        first = self._places.setdefault(what, where)
        if first != where:
            raise errors.BadRequest(
                f"{COMPLAINT}{where}: the {what} occurs twice, first at {first}."
            )


def _parse_inventory(name: str, record: Json, where: str) -> Inventory | None:
    if record is None:
        return None
    if isinstance(record, int | float):
        # To JSON Schema, 8.0 is an integer.
        return Inventory(int(record))
    parsed = inventory.parse_inventory(record)
    if parsed.capacity < 0:
        raise errors.BadRequest(
            f"{COMPLAINT}{where}: the reserved value of {name} is greater than total."
        )
    return parsed


@query_string.parser(
    some_of(owner=OWNER, drift={"type": "string", "enum": ["true", "false"]})
)
def parse_query(pairs: Pairs) -> DeclaredQuery:
    """Return which declarations to list.

    :raises BadRequest: a parameter is unknown or malformed
    """
    return DeclaredQuery(
        query_string.last(pairs, "owner"), query_string.last(pairs, "drift") == "true"
    )


CHANGE = record(
    path=TEXT,
    before=Item({}, lambda change: _render_value(change.before)),
    after=Item({}, lambda change: _render_value(change.after)),
    owner=TEXT_OR_NULL,
)
PLAN = record(
    name=TEXT,
    uuid=Item(TEXT_OR_NULL, lambda plan: plan.uuid or None),
    result={"enum": [str(each) for each in Result]},
    changes=[CHANGE],
    drift=[CHANGE],
    reason=TEXT_OR_NULL,
    plan=Item(TEXT, "digest"),
)


def _summary(outcome: Outcome) -> Json:
    """Return how many trees have each result."""
    results = collections.Counter(each.result for each in outcome.plans)
    return {str(each): results[each] for each in Result}


# What became of declared trees, or would.
render_outcome = record(
    trees=Item([PLAN], "plans"),
    traits=listed(TEXT),
    resource_classes=listed(TEXT),
    names=[CHANGE],
    summary=Item(keyed(INTEGER), _summary),
)


def _render_value(value: Any) -> Json:
    """Render an inventory, a provider, or a plain value."""
    if isinstance(value, Inventory):
        return inventory.render_record(value)
    if isinstance(value, dict):
        return {name: _render_value(each) for name, each in value.items()}
    return value


RECORD_OR_NULL = {"anyOf": [inventory.SHOWN, {"type": "null"}]}
REMEMBERED = record(
    owner=TEXT,
    uuid=TEXT,
    name=TEXT_OR_NULL,
    root=Item(TEXT_OR_NULL, "root_uuid"),
    created=Item(BOOLEAN, "declared.created"),
    inventories=Item(
        keyed(RECORD_OR_NULL),
        lambda each: _render_value(dict(each.declared.inventories)),
    ),
    traits=Item(listed(TEXT), lambda each: sorted(each.declared.traits)),
    aggregates=Item(listed(TEXT), lambda each: sorted(each.declared.aggregates)),
    drift=[CHANGE],
)
# Declarations, and how the stored providers differ from them.
render_declared = record(declared=Item([REMEMBERED], list))


@query_string.parser(some_of(owner=OWNER))
def parse_owner(pairs: Pairs) -> str | None:
    """Return the owner whose names to list, None for all.

    :raises BadRequest: a parameter is unknown or malformed
    """
    return query_string.last(pairs, "owner")


# The names of aggregates, by UUID, and those of projects, by id.
render_names = record(
    aggregates=Item(keyed(TEXT), lambda names: dict(names.aggregates)),
    projects=Item(keyed(TEXT), lambda names: dict(names.projects)),
)
