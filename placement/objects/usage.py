"""Usages: sums of allocations, in units of their resource classes."""

from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.model.consumer import UNKNOWN_TYPE
from placement.model.usage import Usage
from placement.objects import exact_match

# The amount used of the inventory in a row of a query.
USED: sa.ScalarSelect[Any] = (
    sa.select(sa.func.coalesce(sa.func.sum(models.Allocation.used), 0))
    .where(models.OF_INVENTORY)
    .scalar_subquery()
)


def by_consumer_type(
    connection: sa.Connection, project_id: str, user_id: str | None = None
) -> dict[str, Usage]:
    """Return the usages of a project, or of a user in it, by consumer type.

    Consumers without a type are under ``UNKNOWN_TYPE``.
    """
    owned = _owned(connection, project_id, user_id)
    rows = connection.execute(_count_consumers(owned))
    counts = {kind or UNKNOWN_TYPE: int(count) for kind, count in rows}
    amounts: dict[str, dict[str, int]] = {kind: {} for kind in counts}
    for kind, class_name, used in connection.execute(_sum_amounts(owned)):
        amounts[kind or UNKNOWN_TYPE][class_name] = int(used)
    return {kind: Usage(counts[kind], amounts[kind]) for kind in sorted(counts)}


def _owned(
    connection: sa.Connection, project_id: str, user_id: str | None
) -> sa.ColumnElement[bool]:
    """Return the condition for consumers of a project, or of a user in it."""
    projects, users = exact_match.ids_of_all(
        connection,
        [
            (models.Project.external_id, [project_id]),
            (models.User.external_id, [] if user_id is None else [user_id]),
        ],
    )
    if project_id not in projects or (user_id is not None and user_id not in users):
        return sa.false()
    owned = models.Consumer.project_id == projects[project_id]
    if user_id is None:
        return owned
    return owned & (models.Consumer.user_id == users[user_id])


def _count_consumers(
    owned: sa.ColumnElement[bool],
) -> sa.Select[*tuple[Any, ...]]:
    """Return the query that counts consumers with allocations, by name of their type.

    :param owned: which consumers are counted
    """
    row = models.Consumer
    # Without the literal, SQLite would read whole rows of the table.
    uses = sa.exists(1).where(models.Allocation.consumer_id == row.uuid)
    counted = (
        sa.select(row.consumer_type_id, sa.func.count().label("count"))
        .where(owned, uses)
        .group_by(row.consumer_type_id)
        .subquery()
    )
    return (
        sa.select(models.ConsumerType.name, counted.c.count)
        .select_from(counted)
        .outerjoin(
            models.ConsumerType, models.ConsumerType.id == counted.c.consumer_type_id
        )
        .order_by(models.ConsumerType.id)
    )


def _sum_amounts(owned: sa.ColumnElement[bool]) -> sa.Select[*tuple[Any, ...]]:
    """Return the query for what is used: names of types and classes, and sums.

    The sums are made before ids are turned into names, for few rows.

    :param owned: which consumers count
    """
    row, taken, kind = models.Consumer, models.Allocation, models.ConsumerType
    ids = row.consumer_type_id, taken.resource_class_id
    sums = (
        sa.select(*ids, sa.func.sum(taken.used).label("used"))
        .select_from(row)
        .join(taken, taken.consumer_id == row.uuid)
        .where(owned)
        .group_by(*ids)
        .subquery()
    )
    return (
        sa.select(kind.name, models.ResourceClass.name, sums.c.used)
        .select_from(sums)
        .join(models.ResourceClass, models.ResourceClass.id == sums.c.resource_class_id)
        .outerjoin(kind, kind.id == sums.c.consumer_type_id)
        .order_by(models.ResourceClass.id, kind.id)
    )
