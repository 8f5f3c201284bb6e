"""What the service relies on, and the queries for the rows that break it.

Each rule is a query for the rows that break it. Some of what it finds is damage, which
only a program that writes past the API can do; the rest, more used than there is, say,
the API allows, but an operator wants to know of it.
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

Provider = models.ResourceProvider
Parent, Root = orm.aliased(Provider), orm.aliased(Provider)
Repair: TypeAlias = Callable[[sa.Connection], int]


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """What has to be true of the rows, and the query for those that break it.

    ``repair`` mends them all, where there is one right way to, and returns how many.
    Nothing that counts as used is ever changed. ``needs`` are the tables that a
    database may lack.
    """

    name: str
    meaning: str
    broken: sa.Select[*tuple[Any, ...]]
    damage: bool = True
    repair: Repair | None = None
    needs: tuple[sa.FromClause, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class BrokenRule:
    """A broken rule: how many rows break it, and these, or the first of them."""

    rule: Rule
    count: int
    rows: Sequence[dict[str, Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class Removal:
    """The repair that removes the rows of a table that meet a condition."""

    model: Any
    condition: sa.ColumnElement[bool]

    def __call__(self, connection: sa.Connection) -> int:
        """Remove the rows, and return how many they were."""
        removal = sa.delete(self.model).where(self.condition)
        return connection.execute(removal).rowcount

    def count_shared(self, connection: sa.Connection) -> int:
        """Return how many are allocations of consumers that keep others."""
        if self.model is not models.Allocation:
            return 0
        removed = sa.select(models.Allocation.id).where(self.condition)
        other = orm.aliased(models.Allocation)
        keeps = sa.exists(1).where(
            other.consumer_id == models.Allocation.consumer_id, other.id.not_in(removed)
        )
        counted = sa.select(sa.func.count(models.Allocation.id))
        return connection.scalar(counted.where(self.condition, keeps)) or 0


def _is_stored(column: Any, target: Any) -> sa.ColumnElement[bool]:
    """Return the condition that the row exists to which a column refers."""
    stored = sa.select(target).where(target == column).correlate(column.class_)
    exists: sa.ColumnElement[bool] = stored.exists()
    if target is not models.ResourceClass.id:
        return exists
    # The ids of standard classes are fixed, wherever the rows are not stored yet.
    return sa.or_(exists, column.between(0, len(os_resource_classes.STANDARDS) - 1))


def _orphans(name: str, meaning: str, column: Any, target: Any, *shown: Any) -> Rule:
    """Return the rule that a column refers to a row that exists.

    A row that refers to nothing counts nowhere, and can go.

    :param shown: what to show of such a row
    """
    condition = column.is_not(None) & ~_is_stored(column, target)
    broken = sa.select(*shown, column.label("refers_to")).where(condition)
    model = column.class_
    key = sa.inspect(model).primary_key
    return Rule(name, meaning, broken.order_by(*key), repair=Removal(model, condition))


def _class_name(class_id: Any) -> sa.ColumnElement[str]:
    """Return the name of the class with an id, stored or not."""
    standard = dict(enumerate(os_resource_classes.STANDARDS))
    stored = (
        sa.select(models.ResourceClass.name)
        .where(models.ResourceClass.id == class_id)
        .correlate(class_id.class_)
        .scalar_subquery()
    )
    return sa.func.coalesce(stored, sa.case(standard, value=class_id)).label("class")


_inventory = models.Inventory
_held = models.Allocation
_of_inventory = (_held.resource_provider_id == _inventory.resource_provider_id) & (
    _held.resource_class_id == _inventory.resource_class_id
)
_used = (
    sa.select(sa.func.coalesce(sa.func.sum(_held.used), 0))
    .where(_of_inventory)
    .correlate(_inventory)
    .scalar_subquery()
)
_capacity = (_inventory.total - _inventory.reserved) * _inventory.allocation_ratio
_place = (
    Provider.name.label("provider"),
    _class_name(_inventory.resource_class_id),
)
_placed = sa.join(_inventory, Provider, Provider.id == _inventory.resource_provider_id)

_over_capacity = (
    sa.select(*_place, _capacity.label("capacity"), _used.label("used"))
    .select_from(_placed)
    # A float may be a little less than the number that was stored.
    .where(_used > 0, _used > _capacity + 0.0001)
    .order_by(_inventory.id)
)
_odd_amounts = (
    sa.select(*_place, _held.consumer_id.label("consumer"), _held.used.label("amount"))
    .select_from(_placed.join(_held, _of_inventory))
    .where(
        (_held.used < _inventory.min_unit)
        | (_held.used > _inventory.max_unit)
        | (_held.used % sa.func.nullif(_inventory.step_size, 0) != 0)
    )
    .order_by(_held.id)
)
_impossible = (
    sa.select(*_place, *[getattr(_inventory, name) for name in ("total", "reserved")])
    .select_from(_placed)
    .where(
        (_inventory.total < 1)
        | (_inventory.total > LARGEST_AMOUNT)
        | (_inventory.reserved < 0)
        | (_inventory.min_unit < 1)
        | (_inventory.max_unit < 1)
        | (_inventory.step_size < 1)
    )
    .order_by(_inventory.id)
)
_negative = (
    sa.select(*_place, _capacity.label("capacity"))
    .select_from(_placed)
    # Capacities are rounded toward zero.
    .where(_capacity <= -1)
    .order_by(_inventory.id)
)
_nothing_used = (
    sa.select(_held.id.label("row"), _held.consumer_id.label("consumer"), _held.used)
    .where(_held.used < 1)
    .order_by(_held.id)
)
_without_inventory = (
    sa.select(
        Provider.name.label("provider"),
        _class_name(_held.resource_class_id),
        _held.consumer_id.label("consumer"),
        _held.used.label("amount"),
    )
    .select_from(_held)
    .join(Provider, Provider.id == _held.resource_provider_id)
    .where(_is_stored(_held.resource_class_id, models.ResourceClass.id))
    .where(~sa.select(_inventory.id).where(_of_inventory).correlate(_held).exists())
    .order_by(_held.id)
)
_without_record = (
    sa.select(_held.consumer_id.label("consumer"), sa.func.count().label("rows"))
    .where(
        ~sa.select(models.Consumer.id)
        .where(models.Consumer.uuid == _held.consumer_id)
        .correlate(_held)
        .exists()
    )
    .group_by(_held.consumer_id)
    .order_by(_held.consumer_id)
)
_allocated = (_held.consumer_id, _held.resource_provider_id, _held.resource_class_id)
_allocated_twice = (
    sa.select(*_allocated, sa.func.count().label("rows"))
    .group_by(*_allocated)
    .having(sa.func.count() > 1)
    .order_by(*_allocated)
)
_is_idle = ~(
    sa.select(_held.id)
    .where(_held.consumer_id == models.Consumer.uuid)
    .correlate(models.Consumer)
    .exists()
)
_idle_consumers = (
    sa.select(models.Consumer.id.label("row"), models.Consumer.uuid.label("consumer"))
    .where(_is_idle)
    .order_by(models.Consumer.id)
)
_ownerless = (
    sa.select(models.Consumer.uuid.label("consumer"))
    .outerjoin(models.Project, models.Project.id == models.Consumer.project_id)
    .outerjoin(models.User, models.User.id == models.Consumer.user_id)
    .where(models.Project.id.is_(None) | models.User.id.is_(None))
    .order_by(models.Consumer.id)
)
_typeless = (
    sa.select(
        models.Consumer.uuid.label("consumer"),
        models.Consumer.consumer_type_id.label("refers_to"),
    )
    .outerjoin(
        models.ConsumerType, models.ConsumerType.id == models.Consumer.consumer_type_id
    )
    .where(
        models.Consumer.consumer_type_id.is_not(None), models.ConsumerType.id.is_(None)
    )
    .order_by(models.Consumer.id)
)
_rootless = (
    sa.select(Provider.uuid, Provider.name)
    .outerjoin(Root, Root.id == Provider.root_provider_id)
    .where(Root.id.is_(None))
    .order_by(Provider.id)
)
_parentless = (
    sa.select(Provider.uuid, Provider.name, Provider.parent_provider_id)
    .outerjoin(Parent, Parent.id == Provider.parent_provider_id)
    .where(Provider.parent_provider_id.is_not(None), Parent.id.is_(None))
    .order_by(Provider.id)
)
_wrong_root = (
    sa.select(Provider.uuid, Provider.name, Root.uuid.label("root"))
    .join(Root, Root.id == Provider.root_provider_id)
    .outerjoin(Parent, Parent.id == Provider.parent_provider_id)
    .where(
        (Provider.parent_provider_id.is_(None) & (Root.id != Provider.id))
        | (Parent.id.is_not(None) & (Parent.root_provider_id != Root.id))
    )
    .order_by(Provider.id)
)
_nameless = (
    sa.select(Provider.id.label("row"), Provider.uuid)
    .where(Provider.name.is_(None) | Provider.generation.is_(None))
    .order_by(Provider.id)
)
_has_ended = (models.LEASES.c.consumer_id != BATON) & ~(
    sa.select(models.Consumer.id)
    .where(models.IS_LEASED)
    .correlate(models.LEASES)
    .exists()
)
_ended_leases = (
    sa.select(models.LEASES.c.consumer_id.label("row"))
    .where(_has_ended)
    .order_by(models.LEASES.c.consumer_id)
)
_declared = models.DECLARATIONS.c
_is_of_nothing = ~(
    sa.select(Provider.id)
    .where(Provider.uuid == _declared.provider_uuid)
    .correlate(models.DECLARATIONS)
    .exists()
)
_stale_declarations = (
    sa.select(_declared.provider_uuid.label("provider"), _declared.owner)
    .where(_is_of_nothing)
    .order_by(_declared.provider_uuid, _declared.owner)
)


RULES: Sequence[Rule] = (
    Rule("over-capacity", "more is used than there is", _over_capacity, damage=False),
    Rule(
        "odd-amount",
        "an amount is not what min_unit, max_unit and step_size allow",
        _odd_amounts,
        damage=False,
    ),
    Rule(
        "negative-capacity", "more is reserved than there is", _negative, damage=False
    ),
    Rule("impossible-inventory", "an inventory that no API accepts", _impossible),
    Rule("empty-allocation", "an allocation of nothing", _nothing_used),
    _orphans(
        "allocation-provider",
        "an allocation of a provider that does not exist",
        _held.resource_provider_id,
        Provider.id,
        _held.id.label("row"),
    ),
    _orphans(
        "allocation-class",
        "an allocation of a resource class that does not exist",
        _held.resource_class_id,
        models.ResourceClass.id,
        _held.id.label("row"),
    ),
    Rule(
        "allocation-inventory",
        "an allocation of what the provider has no inventory of",
        _without_inventory,
    ),
    Rule("allocation-consumer", "a consumer without a record", _without_record),
    Rule(
        "allocation-twice",
        "two rows of what a consumer uses of one inventory",
        _allocated_twice,
    ),
    Rule(
        "consumer-allocations",
        "a consumer without allocations",
        _idle_consumers,
        repair=Removal(models.Consumer, _is_idle),
    ),
    Rule("consumer-owner", "a consumer without project or user", _ownerless),
    Rule(
        "consumer-type",
        "a consumer of a type that does not exist",
        _typeless,
        needs=(models.ConsumerType.__table__,),
    ),
    _orphans(
        "inventory-provider",
        "an inventory of a provider that does not exist",
        _inventory.resource_provider_id,
        Provider.id,
        _inventory.id.label("row"),
    ),
    _orphans(
        "inventory-class",
        "an inventory of a resource class that does not exist",
        _inventory.resource_class_id,
        models.ResourceClass.id,
        _inventory.id.label("row"),
    ),
    _orphans(
        "provider-trait",
        "a trait that does not exist",
        models.ResourceProviderTrait.trait_id,
        models.Trait.id,
        models.ResourceProviderTrait.resource_provider_id.label("provider_id"),
    ),
    _orphans(
        "trait-provider",
        "a trait of a provider that does not exist",
        models.ResourceProviderTrait.resource_provider_id,
        Provider.id,
        models.ResourceProviderTrait.trait_id.label("trait_id"),
    ),
    _orphans(
        "provider-aggregate",
        "an aggregate that does not exist",
        models.ResourceProviderAggregate.aggregate_id,
        models.Aggregate.id,
        models.ResourceProviderAggregate.resource_provider_id.label("provider_id"),
    ),
    _orphans(
        "aggregate-provider",
        "a member of an aggregate that does not exist",
        models.ResourceProviderAggregate.resource_provider_id,
        Provider.id,
        models.ResourceProviderAggregate.aggregate_id.label("aggregate_id"),
    ),
    Rule("provider-parent", "its parent does not exist", _parentless),
    Rule("provider-root", "its root does not exist", _rootless, repair=tree.set_roots),
    Rule(
        "provider-tree",
        "its root is not that of its parent",
        _wrong_root,
        repair=tree.set_roots,
    ),
    Rule("parent-circle", "a provider is below itself", tree.CIRCLING),
    Rule("provider-name", "it has no name or no generation", _nameless),
    Rule(
        "lease",
        "a lease of a consumer that does not exist",
        _ended_leases,
        repair=Removal(models.LEASES, _has_ended),
        needs=(models.LEASES,),
    ),
    Rule(
        "declaration",
        "what an owner declared of a provider that does not exist",
        _stale_declarations,
        repair=Removal(models.DECLARATIONS, _is_of_nothing),
        needs=(models.DECLARATIONS,),
    ),
)
