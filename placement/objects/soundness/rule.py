"""The rules that the service relies on.

Each rule is a query for the rows that break it. Some rows are damage, which only a
program that writes past the API can do; the API allows the others, more used than there
is, say, but they matter to an operator. No rule repeats a UNIQUE constraint; foreign
keys guarantee nothing on SQLite, nor after a restore that switched them off.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import os_resource_classes
import sqlalchemy as sa
from sqlalchemy import orm

from placement.db import models
from placement.db.own import content
from placement.model.inventory import LARGEST_AMOUNT
from placement.model.lease import BATON
from placement.objects import declared
from placement.objects.soundness import tree
from placement.objects.transaction import Transaction
from placement.objects.usage import USED
from placement_foundation.database import sequence

Provider, Inventory = models.ResourceProvider, models.Inventory
Held, Consumer = models.Allocation, models.Consumer
Class, Parent = models.ResourceClass, orm.aliased(Provider)
Trait, Member = models.ResourceProviderTrait, models.ResourceProviderAggregate
Row: TypeAlias = Mapping[str, Any]
Query: TypeAlias = sa.Select[*tuple[Any, ...]]

# How many documents are in memory at a time.
BATCH = 1_000


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A condition on rows, and the query or function for the rows that break it.

    A repair removes them if ``removes`` is set, or else calls ``mend``, if there is
    one. It never changes rows that count as used. ``needs`` names a table that a
    database may lack.
    """

    name: str
    meaning: str
    broken: Query | Callable[[sa.Connection], Iterator[Row]]
    damage: bool = True
    removes: bool = False
    mend: Callable[[Transaction], None] | None = None
    needs: str | None = None

    @property
    def can_be_repaired(self) -> bool:
        """Whether there is one right way to mend the rows."""
        return self.removes or self.mend is not None

    def list_broken(self, connection: sa.Connection) -> list[Row]:
        """Return the rows that break the rule."""
        if callable(self.broken):
            return list(self.broken(connection))
        query = self.broken.order_by(*self.broken.selected_columns)
        return [dict(row) for row in connection.execute(query).mappings()]


def _exists(target: Any, column: Any) -> sa.ColumnElement[bool]:
    """Return the condition that the row exists to which a column refers."""
    exists: sa.ColumnElement[bool] = sa.exists(1).where(target == column)
    if target is Class.id:
        # The ids of standard classes are fixed, wherever rows are not stored yet.
        exists |= column.between(0, len(os_resource_classes.STANDARDS) - 1)
    return exists


def _class_name(column: Any) -> sa.ColumnElement[str]:
    """Return the name of the class of a row, stored or not."""
    standard = dict(enumerate(os_resource_classes.STANDARDS))
    stored = sa.select(Class.name).where(Class.id == column).scalar_subquery()
    name = sa.func.coalesce(stored, sa.case(standard, value=column))
    return name.label("class")


def _orphans(name: str, column: Any, target: Any) -> Rule:
    """Return the rule that a column refers to a row that exists.

    A row that refers to nothing counts nowhere, and can go.
    """
    table = column.class_.__table__
    broken = sa.select(
        *(key.label("row") if key.name == "id" else key for key in table.primary_key),
        column.label("refers_to"),
    )
    return Rule(
        name,
        f"a row of {table.name} whose {column.name} refers to nothing",
        broken.where(~_exists(target, column)),
        removes=True,
    )


_capacity = (Inventory.total - Inventory.reserved) * Inventory.allocation_ratio
_row, _consumer = Held.id.label("row"), Held.consumer_id.label("consumer")


def _inventories(*shown: Any) -> Query:
    place = Provider.name.label("provider"), _class_name(Inventory.resource_class_id)
    return (
        sa.select(*place, *shown)
        .select_from(Inventory)
        .join(Provider, Provider.id == Inventory.resource_provider_id)
    )


def _list_unreadable(
    column: sa.Column[Any], parse: Callable[[Any], object], connection: sa.Connection
) -> Iterator[Row]:
    """Yield the keys of the rows whose documents cannot be read."""
    key = column.table.primary_key
    query = sa.select(*key, column).order_by(*key)
    for row in connection.execute(query.execution_options(yield_per=BATCH)):
        try:
            parse(row[-1])
        except Exception:
            yield {each.name: row._mapping[each] for each in key}


def _documents(
    name: str, column: sa.Column[Any], parse: Callable[[Any], object] = json.loads
) -> Rule:
    """Return the rule that the documents in one of our own tables can be read."""
    return Rule(
        name,
        f"a document in {column.table.name} that cannot be read",
        functools.partial(_list_unreadable, column, parse),
        needs=column.table.name,
    )


def _content(table: sa.Table) -> Rule:
    """Return the rule that one of our own tables has the rows of its content."""
    list_missing = content.CONTENT.rows[table]

    def broken(connection: sa.Connection) -> Iterator[Row]:
        for row in list_missing(connection):
            yield {each.name: row[each.name] for each in table.primary_key}

    def mend(tx: Transaction) -> None:
        tx.connection.execute(sa.insert(table), list_missing(tx.connection))

    meaning = f"{table.name} lacks rows that it cannot be without"
    return Rule(f"rows-of-{table.name}", meaning, broken, mend=mend, needs=table.name)


# The ids of resource classes are not drawn.
_drawn = [
    each for each in models.Base.metadata.sorted_tables if each is not Class.__table__
]


def _list_behind(connection: sa.Connection) -> Iterator[Row]:
    """Yield the tables of which PostgreSQL would draw ids that are taken."""
    for table in sequence.list_behind(connection, _drawn):
        yield {"table": table.name}


def _count_on(tx: Transaction) -> None:
    sequence.count_on(tx.connection, sequence.list_behind(tx.connection, _drawn))


_allocated = (Held.consumer_id, Held.resource_provider_id, Held.resource_class_id)
_lease, _declared = models.LEASES.c.consumer_id, models.DECLARATIONS.c
_entry, _before = models.JOURNAL_ENTRIES.c, models.JOURNAL_ENTRIES.alias().c
_state = models.JOURNAL_STATE.c
# Before each of these positions, there is an entry: positions have no gaps.
_ends = sa.union_all(
    sa.select(_entry.position), sa.select((_state.position + 1).label("position"))
).subquery()

# A repair goes through them once: consumers come after their allocations, and leases
# after consumers.
RULES: Sequence[Rule] = (
    Rule(
        "over-capacity",
        "more is used than there is",
        # A float may be a little less than the number that was stored.
        _inventories(_capacity.label("capacity"), USED.label("used")).where(
            USED > 0, _capacity + 0.0001 < USED
        ),
        damage=False,
    ),
    Rule(
        "odd-amount",
        "an amount is not what min_unit, max_unit and step_size allow",
        _inventories(_consumer, Held.used.label("amount"))
        .join(Held, models.OF_INVENTORY)
        .where(
            (Held.used < Inventory.min_unit)
            | (Held.used > Inventory.max_unit)
            | (Held.used % sa.func.nullif(Inventory.step_size, 0) != 0)
        ),
        damage=False,
    ),
    Rule(
        "negative-capacity",
        "more is reserved than there is",
        # Capacities are rounded toward zero.
        _inventories(_capacity.label("capacity")).where(_capacity <= -1),
        damage=False,
    ),
    Rule(
        "impossible-inventory",
        "an inventory that no API accepts",
        _inventories(Inventory.total, Inventory.reserved).where(
            (Inventory.total < 1)
            | (Inventory.total > LARGEST_AMOUNT)
            | (Inventory.reserved < 0)
            | (Inventory.min_unit < 1)
            | (Inventory.max_unit < 1)
            | (Inventory.step_size < 1)
        ),
    ),
    Rule(
        "empty-allocation",
        "an allocation of nothing",
        sa.select(_row, _consumer, Held.used).where(Held.used < 1),
    ),
    _orphans("allocation-provider", Held.resource_provider_id, Provider.id),
    _orphans("allocation-class", Held.resource_class_id, Class.id),
    _orphans("inventory-provider", Inventory.resource_provider_id, Provider.id),
    _orphans("inventory-class", Inventory.resource_class_id, Class.id),
    _orphans("provider-trait", Trait.trait_id, models.Trait.id),
    _orphans("trait-provider", Trait.resource_provider_id, Provider.id),
    _orphans("provider-aggregate", Member.aggregate_id, models.Aggregate.id),
    _orphans("aggregate-provider", Member.resource_provider_id, Provider.id),
    Rule(
        "allocation-inventory",
        "an allocation of what the provider has no inventory of",
        sa.select(
            Provider.name.label("provider"),
            _class_name(Held.resource_class_id),
            _consumer,
            Held.used.label("amount"),
        )
        .join(Provider, Provider.id == Held.resource_provider_id)
        .where(_exists(Class.id, Held.resource_class_id))
        .where(~sa.exists(1).where(models.OF_INVENTORY)),
    ),
    Rule(
        "allocation-consumer",
        "a consumer without a record",
        sa.select(_consumer, sa.func.count().label("rows"))
        .where(~_exists(Consumer.uuid, Held.consumer_id))
        .group_by(Held.consumer_id),
    ),
    Rule(
        "allocation-twice",
        "two rows of what a consumer uses of one inventory",
        sa.select(*_allocated, sa.func.count().label("rows"))
        .group_by(*_allocated)
        .having(sa.func.count() > 1),
    ),
    Rule(
        "consumer-allocations",
        "a consumer without allocations",
        sa.select(Consumer.id.label("row"), Consumer.uuid.label("consumer")).where(
            ~_exists(Held.consumer_id, Consumer.uuid)
        ),
        removes=True,
    ),
    Rule(
        "consumer-owner",
        "a consumer without project or user",
        sa.select(Consumer.uuid.label("consumer")).where(
            ~_exists(models.Project.id, Consumer.project_id)
            | ~_exists(models.User.id, Consumer.user_id)
        ),
    ),
    Rule(
        "consumer-type",
        "a consumer of a type that does not exist",
        sa.select(Consumer.uuid.label("consumer"))
        .where(Consumer.consumer_type_id.is_not(None))
        .where(~_exists(models.ConsumerType.id, Consumer.consumer_type_id)),
        needs=models.ConsumerType.__tablename__,
    ),
    Rule(
        "provider-parent",
        "its parent does not exist",
        sa.select(Provider.uuid, Provider.name)
        .where(Provider.parent_provider_id.is_not(None))
        .where(~_exists(Parent.id, Provider.parent_provider_id)),
    ),
    Rule(
        "provider-root",
        "its root is not the one that its parents lead to",
        tree.MISPLACED,
        mend=tree.set_roots,
    ),
    Rule("parent-circle", "a provider is below itself", tree.CIRCLING),
    Rule(
        "provider-name",
        "it has no name or no generation",
        sa.select(Provider.id.label("row"), Provider.uuid).where(
            Provider.name.is_(None) | Provider.generation.is_(None)
        ),
    ),
    Rule(
        "lease",
        "a lease of a consumer that does not exist",
        sa.select(_lease.label("row")).where(
            _lease != BATON, ~sa.exists(1).where(models.IS_LEASED)
        ),
        removes=True,
        needs=models.LEASES.name,
    ),
    Rule(
        "declaration",
        "what an owner declared of a provider that does not exist",
        sa.select(_declared.provider_uuid.label("provider"), _declared.owner).where(
            ~_exists(Provider.uuid, _declared.provider_uuid)
        ),
        removes=True,
        needs=models.DECLARATIONS.name,
    ),
    Rule(
        "sequence",
        "the next id that the database draws is taken",
        _list_behind,
        mend=_count_on,
    ),
    *(_content(table) for table in content.CONTENT.rows),
    _documents("declaration-document", _declared.document, declared.parse_document),
    _documents("note-document", models.NOTES.c.document),
    _documents("journal-waiting", models.JOURNAL_INBOX.c.entries),
    _documents("journal-entry", _entry.document),
    Rule(
        "journal-hole",
        "entries of the journal are missing",
        sa.select(_ends.c.position.label("before_position"))
        .join(models.JOURNAL_STATE, _ends.c.position > _state.expired + 1)
        .where(~_exists(_before.position, _ends.c.position - 1)),
        needs=models.JOURNAL_STATE.name,
    ),
)
