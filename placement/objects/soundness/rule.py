"""The rules that the service relies on.

Each rule is a query for the rows that break it. Some rows are damage, which only a
program that writes past the API can do; the API allows the others, more used than there
is, say, but they matter to an operator. No rule repeats a UNIQUE constraint; foreign
keys guarantee nothing on SQLite, nor after a restore that switched them off.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import os_resource_classes
import sqlalchemy as sa
from sqlalchemy import orm

from placement.db import models
from placement.model.inventory import LARGEST_AMOUNT
from placement.model.lease import BATON
from placement.objects.soundness import tree
from placement.objects.transaction import Transaction

Provider, Inventory = models.ResourceProvider, models.Inventory
Held, Consumer = models.Allocation, models.Consumer
Parent, Root = orm.aliased(Provider), orm.aliased(Provider)
Repair: TypeAlias = Callable[[Transaction], int]


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A condition on rows, and the query for the rows that break it.

    ``repair`` mends them all, where there is one right way to, and returns how many.
    Rows that count as used never change. ``needs`` names a table that a database may
    lack.
    """

    name: str
    meaning: str
    broken: sa.Select[*tuple[Any, ...]]
    damage: bool = True
    repair: Repair | None = None
    needs: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Removal:
    """The repair that removes the rows of a table that meet a condition."""

    table: Any
    condition: sa.ColumnElement[bool]

    def __call__(self, tx: Transaction) -> int:
        """Remove the rows, and return how many they were."""
        removal = sa.delete(self.table).where(self.condition)
        return tx.connection.execute(removal).rowcount

    def count_shared(self, connection: sa.Connection) -> int:
        """Return how many of the rows are allocations of consumers that keep others."""
        if self.table is not Held:
            return 0
        removed = sa.select(Held.id).where(self.condition)
        other = orm.aliased(Held)
        keeps = sa.exists(1).where(
            other.consumer_id == Held.consumer_id, other.id.not_in(removed)
        )
        counted = sa.select(sa.func.count(Held.id)).where(self.condition, keeps)
        return connection.scalar(counted) or 0


def _lacks(table: Any, target: Any, *refers: Any) -> sa.ColumnElement[bool]:
    """Return the condition that a row refers to a row that a target lacks."""
    return ~sa.select(target).where(*refers).correlate(table).exists()


def _refers_to_nothing(column: Any, target: Any) -> Any:
    """Return the condition that the row does not exist to which a column refers."""
    missing = _lacks(column.class_, target, target == column)
    if target is not models.ResourceClass.id:
        return missing
    # The ids of standard classes are fixed, wherever the rows are not stored yet.
    return missing & ~column.between(0, len(os_resource_classes.STANDARDS) - 1)


def _orphans(name: str, meaning: str, column: Any, target: Any, *shown: Any) -> Rule:
    """Return the rule that a column refers to a row that exists.

    A row that refers to nothing counts nowhere, and can go.

    :param shown: what to show of such a row
    """
    table, condition = column.class_, _refers_to_nothing(column, target)
    broken = sa.select(*shown, column.label("refers_to")).where(condition)
    key = sa.inspect(table).primary_key
    return Rule(name, meaning, broken.order_by(*key), repair=Removal(table, condition))


def _class_name(class_id: Any) -> sa.ColumnElement[str]:
    """Return the name of the class with an id, stored or not."""
    standard = dict(enumerate(os_resource_classes.STANDARDS))
    stored = sa.select(models.ResourceClass.name).where(
        models.ResourceClass.id == class_id
    )
    name = stored.correlate(class_id.class_).scalar_subquery()
    return sa.func.coalesce(name, sa.case(standard, value=class_id)).label("class")


_of_inventory = (Held.resource_provider_id == Inventory.resource_provider_id) & (
    Held.resource_class_id == Inventory.resource_class_id
)
_used = (
    sa.select(sa.func.coalesce(sa.func.sum(Held.used), 0))
    .where(_of_inventory)
    .correlate(Inventory)
    .scalar_subquery()
)
_capacity = (Inventory.total - Inventory.reserved) * Inventory.allocation_ratio
_row, _consumer = Held.id.label("row"), Held.consumer_id.label("consumer")
_row_of_inventory = Inventory.id.label("row")


def _inventories(*shown: Any) -> sa.Select[*tuple[Any, ...]]:
    place = Provider.name.label("provider"), _class_name(Inventory.resource_class_id)
    return (
        sa.select(*place, *shown)
        .select_from(Inventory)
        .join(Provider, Provider.id == Inventory.resource_provider_id)
        .order_by(Inventory.id)
    )


_allocated = (Held.consumer_id, Held.resource_provider_id, Held.resource_class_id)
_member = models.ResourceProviderAggregate
_trait = models.ResourceProviderTrait
_is_idle = _lacks(Consumer, Held.id, Held.consumer_id == Consumer.uuid)
_lease = models.LEASES.c.consumer_id
_has_ended = (_lease != BATON) & _lacks(models.LEASES, Consumer.id, models.IS_LEASED)
_declared = models.DECLARATIONS.c
_is_of_nothing = _lacks(
    models.DECLARATIONS, Provider.id, Provider.uuid == _declared.provider_uuid
)

RULES: Sequence[Rule] = (
    Rule(
        "over-capacity",
        "more is used than there is",
        # A float may be a little less than the number that was stored.
        _inventories(_capacity.label("capacity"), _used.label("used")).where(
            _used > 0, _used > _capacity + 0.0001
        ),
        damage=False,
    ),
    Rule(
        "odd-amount",
        "an amount is not what min_unit, max_unit and step_size allow",
        _inventories(_consumer, Held.used.label("amount"))
        .join(Held, _of_inventory)
        .where(
            (Held.used < Inventory.min_unit)
            | (Held.used > Inventory.max_unit)
            | (Held.used % sa.func.nullif(Inventory.step_size, 0) != 0)
        )
        .order_by(Held.id),
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
        sa.select(_row, _consumer, Held.used).where(Held.used < 1).order_by(Held.id),
    ),
    _orphans(
        "allocation-provider",
        "an allocation of a provider that does not exist",
        Held.resource_provider_id,
        Provider.id,
        _row,
    ),
    _orphans(
        "allocation-class",
        "an allocation of a resource class that does not exist",
        Held.resource_class_id,
        models.ResourceClass.id,
        _row,
    ),
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
        .where(~_refers_to_nothing(Held.resource_class_id, models.ResourceClass.id))
        .where(_lacks(Held, Inventory.id, _of_inventory))
        .order_by(Held.id),
    ),
    Rule(
        "allocation-consumer",
        "a consumer without a record",
        sa.select(_consumer, sa.func.count().label("rows"))
        .where(_lacks(Held, Consumer.id, Consumer.uuid == Held.consumer_id))
        .group_by(Held.consumer_id)
        .order_by(Held.consumer_id),
    ),
    Rule(
        "allocation-twice",
        "two rows of what a consumer uses of one inventory",
        sa.select(*_allocated, sa.func.count().label("rows"))
        .group_by(*_allocated)
        .having(sa.func.count() > 1)
        .order_by(*_allocated),
    ),
    Rule(
        "consumer-allocations",
        "a consumer without allocations",
        sa.select(Consumer.id.label("row"), Consumer.uuid.label("consumer"))
        .where(_is_idle)
        .order_by(Consumer.id),
        repair=Removal(Consumer, _is_idle),
    ),
    Rule(
        "consumer-owner",
        "a consumer without project or user",
        sa.select(Consumer.uuid.label("consumer"))
        .outerjoin(models.Project, models.Project.id == Consumer.project_id)
        .outerjoin(models.User, models.User.id == Consumer.user_id)
        .where(models.Project.id.is_(None) | models.User.id.is_(None))
        .order_by(Consumer.id),
    ),
    Rule(
        "consumer-type",
        "a consumer of a type that does not exist",
        sa.select(Consumer.uuid.label("consumer"))
        .where(_refers_to_nothing(Consumer.consumer_type_id, models.ConsumerType.id))
        .where(Consumer.consumer_type_id.is_not(None))
        .order_by(Consumer.id),
        needs=models.ConsumerType.__tablename__,
    ),
    _orphans(
        "inventory-provider",
        "an inventory of a provider that does not exist",
        Inventory.resource_provider_id,
        Provider.id,
        _row_of_inventory,
    ),
    _orphans(
        "inventory-class",
        "an inventory of a resource class that does not exist",
        Inventory.resource_class_id,
        models.ResourceClass.id,
        _row_of_inventory,
    ),
    _orphans(
        "provider-trait",
        "a trait that does not exist",
        _trait.trait_id,
        models.Trait.id,
        _trait.resource_provider_id.label("provider_id"),
    ),
    _orphans(
        "trait-provider",
        "a trait of a provider that does not exist",
        _trait.resource_provider_id,
        Provider.id,
        _trait.trait_id.label("trait_id"),
    ),
    _orphans(
        "provider-aggregate",
        "an aggregate that does not exist",
        _member.aggregate_id,
        models.Aggregate.id,
        _member.resource_provider_id.label("provider_id"),
    ),
    _orphans(
        "aggregate-provider",
        "a member of an aggregate that does not exist",
        _member.resource_provider_id,
        Provider.id,
        _member.aggregate_id.label("aggregate_id"),
    ),
    Rule(
        "provider-parent",
        "its parent does not exist",
        sa.select(Provider.uuid, Provider.name)
        .where(_lacks(Provider, Parent.id, Parent.id == Provider.parent_provider_id))
        .where(Provider.parent_provider_id.is_not(None))
        .order_by(Provider.id),
    ),
    Rule(
        "provider-root",
        "its root does not exist",
        sa.select(Provider.uuid, Provider.name)
        .where(_lacks(Provider, Root.id, Root.id == Provider.root_provider_id))
        .order_by(Provider.id),
        repair=tree.set_roots,
    ),
    Rule(
        "provider-tree",
        "its root is not that of its parent",
        sa.select(Provider.uuid, Provider.name, Root.uuid.label("root"))
        .join(Root, Root.id == Provider.root_provider_id)
        .outerjoin(Parent, Parent.id == Provider.parent_provider_id)
        # Without a parent, that is the provider itself.
        .where(sa.func.coalesce(Parent.root_provider_id, Provider.id) != Root.id)
        .order_by(Provider.id),
        repair=tree.set_roots,
    ),
    Rule("parent-circle", "a provider is below itself", tree.CIRCLING),
    Rule(
        "provider-name",
        "it has no name or no generation",
        sa.select(Provider.id.label("row"), Provider.uuid)
        .where(Provider.name.is_(None) | Provider.generation.is_(None))
        .order_by(Provider.id),
    ),
    Rule(
        "lease",
        "a lease of a consumer that does not exist",
        sa.select(_lease.label("row")).where(_has_ended).order_by(_lease),
        repair=Removal(models.LEASES, _has_ended),
        needs=models.LEASES.name,
    ),
    Rule(
        "declaration",
        "what an owner declared of a provider that does not exist",
        sa.select(_declared.provider_uuid.label("provider"), _declared.owner)
        .where(_is_of_nothing)
        .order_by(_declared.provider_uuid, _declared.owner),
        repair=Removal(models.DECLARATIONS, _is_of_nothing),
        needs=models.DECLARATIONS.name,
    ),
)
