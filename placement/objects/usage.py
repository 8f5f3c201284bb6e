"""Usages: sums of allocations, in units of their resource classes."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.objects import exact_text
from placement.objects.consumer import UNKNOWN_TYPE


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """What some consumers use: how many they are, and amounts by class name."""

    consumer_count: int
    amounts: Mapping[str, int]


def by_provider(connection: sa.Connection, provider_id: int) -> dict[str, int]:
    """Sum what is taken of each inventory of a provider, by resource class name."""
    taken = (models.Allocation.resource_provider_id == provider_id) & (
        models.Allocation.resource_class_id == models.Inventory.resource_class_id
    )
    query = (
        sa.select(models.ResourceClass.name, sa.func.sum(models.Allocation.used))
        .select_from(models.Inventory)
        .join(
            models.ResourceClass,
            models.ResourceClass.id == models.Inventory.resource_class_id,
        )
        .outerjoin(models.Allocation, taken)
        .where(models.Inventory.resource_provider_id == provider_id)
        .group_by(models.ResourceClass.id, models.ResourceClass.name)
        .order_by(models.ResourceClass.id)
    )
    return {name: int(used or 0) for name, used in connection.execute(query)}


def by_consumer_type(
    connection: sa.Connection, project_id: str, user_id: str | None = None
) -> dict[str, Usage]:
    """Sum what a project, or a user in it, uses, by consumer type.

    Consumers without a type are under ``UNKNOWN_TYPE``.
    """
    condition = _owned_by(connection, project_id, user_id)
    if condition is None:
        return {}
    counts = _count_consumers(connection, condition)
    amounts: dict[str, dict[str, int]] = {kind: {} for kind in counts}
    for kind, class_name, used in _sum_amounts(connection, condition):
        amounts[kind or UNKNOWN_TYPE][class_name] = int(used)
    return {kind: Usage(count, amounts[kind]) for kind, count in counts.items()}


def _owned_by(
    connection: sa.Connection, project_id: str, user_id: str | None
) -> sa.ColumnElement[bool] | None:
    """Return which consumers a project or user has; None if they are unknown."""
    projects = exact_text.ids_by_text(
        connection, models.Project.id, models.Project.external_id, [project_id]
    )
    if not projects:
        return None
    owned = models.Consumer.project_id == projects[project_id]
    if user_id is None:
        return owned
    users = exact_text.ids_by_text(
        connection, models.User.id, models.User.external_id, [user_id]
    )
    return owned & (models.Consumer.user_id == users[user_id]) if users else None


def _count_consumers(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> dict[str, int]:
    """Count the consumers that have allocations, by the name of their type."""
    row = models.Consumer
    uses = sa.exists().where(models.Allocation.consumer_id == row.uuid)
    counted = (
        sa.select(row.consumer_type_id, sa.func.count().label("count"))
        .where(condition, uses)
        .group_by(row.consumer_type_id)
        .subquery()
    )
    query = (
        sa.select(models.ConsumerType.name, counted.c.count)
        .select_from(counted)
        .outerjoin(
            models.ConsumerType, models.ConsumerType.id == counted.c.consumer_type_id
        )
        .order_by(models.ConsumerType.id)
    )
    rows = connection.execute(query)
    return {kind or UNKNOWN_TYPE: int(count) for kind, count in rows}


def _sum_amounts(
    connection: sa.Connection, condition: sa.ColumnElement[bool]
) -> Iterable[Any]:
    """Sum what is used, by type of the consumer and resource class: names and sums.

    Sums are made before ids become names, which are few.
    """
    row, taken = models.Consumer, models.Allocation
    sums = (
        sa.select(
            row.consumer_type_id,
            taken.resource_class_id,
            sa.func.sum(taken.used).label("used"),
        )
        .select_from(row)
        .join(taken, taken.consumer_id == row.uuid)
        .where(condition)
        .group_by(row.consumer_type_id, taken.resource_class_id)
        .subquery()
    )
    query = (
        sa.select(models.ConsumerType.name, models.ResourceClass.name, sums.c.used)
        .select_from(sums)
        .join(models.ResourceClass, models.ResourceClass.id == sums.c.resource_class_id)
        .outerjoin(
            models.ConsumerType, models.ConsumerType.id == sums.c.consumer_type_id
        )
        .order_by(models.ResourceClass.id)
    )
    return connection.execute(query)


def total(usages: Iterable[Usage]) -> Usage:
    """Return the sum of usages by different consumers."""
    count, amounts = 0, collections.Counter[str]()
    for usage in usages:
        count += usage.consumer_count
        amounts.update(usage.amounts)
    return Usage(count, dict(amounts))
