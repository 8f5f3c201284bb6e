"""Sums over all providers and consumers, in a fixed number of queries."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.model.consumer import UNKNOWN_TYPE
from placement.model.inventory import Inventory


@dataclasses.dataclass(frozen=True, slots=True)
class Amounts:
    """The sums of a class over all providers, and how many providers have it.

    ``capacity`` is what can be allocated in all, without reserved units and with ratios
    applied.
    """

    providers: int = 0
    total: int = 0
    reserved: int = 0
    capacity: int = 0
    used: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the whole cloud: by resource class name, and by consumer type."""

    providers: int
    classes: Mapping[str, Amounts]
    consumers: Mapping[str, int]


def load(connection: sa.Connection) -> Totals:
    """Return the sums as the transaction sees them."""
    providers = connection.scalar(sa.select(sa.func.count(models.ResourceProvider.id)))
    return Totals(
        providers or 0, _load_classes(connection), _load_consumers(connection)
    )


def _load_classes(connection: sa.Connection) -> dict[str, Amounts]:
    """Return the sums of each class that has an inventory."""
    row = models.Inventory
    # The capacity is rounded for each inventory; many are alike.
    kind = (row.total, row.reserved, row.allocation_ratio)
    stored = (
        sa.select(models.ResourceClass.name, *kind, sa.func.count(row.id))
        .join(models.ResourceClass, models.ResourceClass.id == row.resource_class_id)
        .group_by(models.ResourceClass.name, *kind)
        .order_by(models.ResourceClass.name, *kind)
    )
    taken = (
        sa.select(models.ResourceClass.name, sa.func.sum(models.Allocation.used))
        .join(models.Allocation, models.OF_CLASS)
        .group_by(models.ResourceClass.name)
        .order_by(models.ResourceClass.name)
    )
    classes: dict[str, Amounts] = {}
    for name, total, reserved, ratio, count in _rows(connection, stored):
        amounts = classes.get(name, Amounts())
        capacity = Inventory(total, reserved, allocation_ratio=ratio).capacity
        classes[name] = Amounts(
            amounts.providers + count,
            amounts.total + count * total,
            amounts.reserved + count * reserved,
            amounts.capacity + count * capacity,
        )
    for name, used in _rows(connection, taken):
        amounts = classes.get(name, Amounts())
        classes[name] = dataclasses.replace(amounts, used=int(used))
    return classes


def _load_consumers(connection: sa.Connection) -> dict[str, int]:
    """Return how many consumers there are of each type."""
    name = models.ConsumerType.name
    query = (
        sa.select(name, sa.func.count(models.Consumer.id))
        .select_from(models.Consumer)
        .outerjoin(models.ConsumerType)
        .group_by(name)
        .order_by(name)
    )
    return {each or UNKNOWN_TYPE: count for each, count in _rows(connection, query)}


def _rows(connection: sa.Connection, query: sa.Executable) -> Iterable[Any]:
    return connection.execute(query)
