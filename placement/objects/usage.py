"""Usages: sums of allocations, in units of their resource classes."""

import functools
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement.model.consumer import UNKNOWN_TYPE
from placement.model.usage import Usage
from placement.objects import exact_match


def by_consumer_type(
    connection: sa.Connection, project_id: str, user_id: str | None = None
) -> dict[str, Usage]:
    """Return the usages of a project, or of a user in it, by consumer type.

    Consumers without a type are under ``UNKNOWN_TYPE``.
    """
    owner = _find_owner(connection, project_id, user_id)
    if owner is None:
        return {}
    rows = connection.execute(_count_consumers(user_id is not None), owner)
    counts = {kind or UNKNOWN_TYPE: int(count) for kind, count in rows}
    amounts: dict[str, dict[str, int]] = {kind: {} for kind in counts}
    # Consumers of one type need not be distinguished, which is half of the work.
    by_type = len(counts) > 1
    only = next(iter(counts), UNKNOWN_TYPE)
    query = _sum_amounts(user_id is not None, by_type)
    for class_name, used, *kinds in connection.execute(query, owner):
        kind = kinds[0] or UNKNOWN_TYPE if by_type else only
        amounts[kind][class_name] = int(used)
    return {kind: Usage(counts[kind], amounts[kind]) for kind in sorted(counts)}


def _find_owner(
    connection: sa.Connection, project_id: str, user_id: str | None
) -> dict[str, int] | None:
    """Return the ids of a project, and of a user if given; None if one is unknown."""
    projects, users = exact_match.ids_of_all(
        connection,
        [
            (models.Project.external_id, [project_id]),
            (models.User.external_id, [] if user_id is None else [user_id]),
        ],
    )
    if project_id not in projects or (user_id is not None and user_id not in users):
        return None
    return {"project": projects[project_id], "user": users.get(user_id or "", 0)}


def _owned(by_user: bool) -> sa.ColumnElement[bool]:
    """Return the condition for consumers of a project, or of a user in it.

    The ids are parameters of the statement: ``project`` and ``user``.
    """
    owned = models.Consumer.project_id == sa.bindparam("project")
    if not by_user:
        return owned
    return owned & (models.Consumer.user_id == sa.bindparam("user"))


@functools.cache
def _count_consumers(by_user: bool) -> sa.Select[*tuple[Any, ...]]:
    """Return the query that counts consumers with allocations, by name of their type.

    :param by_user: whether only those of one user are counted
    """
    row = models.Consumer
    # Without the literal, SQLite would read whole rows of the table.
    uses = sa.exists(1).where(models.Allocation.consumer_id == row.uuid)
    counted = (
        sa.select(row.consumer_type_id, sa.func.count().label("count"))
        .where(_owned(by_user), uses)
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


@functools.cache
def _sum_amounts(by_user: bool, by_type: bool) -> sa.Select[*tuple[Any, ...]]:
    """Return the query for what is used: class names, sums, and names of types.

    The sums are made before ids are turned into names, for few rows.

    :param by_user: whether only the consumers of one user count
    :param by_type: whether there is a sum for each type of consumers
    """
    row, taken = models.Consumer, models.Allocation
    types = [row.consumer_type_id] if by_type else []
    sums = (
        sa.select(
            *types, taken.resource_class_id, sa.func.sum(taken.used).label("used")
        )
        .select_from(row)
        .join(taken, taken.consumer_id == row.uuid)
        .where(_owned(by_user))
        .group_by(*types, taken.resource_class_id)
        .subquery()
    )
    query: sa.Select[*tuple[Any, ...]] = (
        sa.select(models.ResourceClass.name, sums.c.used)
        .select_from(sums)
        .join(models.ResourceClass, models.ResourceClass.id == sums.c.resource_class_id)
        .order_by(models.ResourceClass.id)
    )
    if not by_type:
        return query
    kind = models.ConsumerType
    return query.add_columns(kind.name).outerjoin(
        kind, kind.id == sums.c.consumer_type_id
    )
