"""Generations: numbers that show whether a caller has seen the last change."""

import functools
from collections.abc import Iterable
from typing import Protocol

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.objects.transaction import Transaction
from placement_foundation.database import storage


class WithGeneration(Protocol):
    """A row as it was read."""

    @property
    def id(self) -> int:
        """Its primary key."""

    @property
    def generation(self) -> int:
        """The generation that it had."""


def of(value: WithGeneration) -> int:
    """Return the generation of a row as it was read.

    It is 0 if the row has none, as a row of another service may.
    """
    return value.generation or 0


def stored(
    row: type[models.Consumer | models.ResourceProvider],
) -> sa.ColumnElement[int]:
    """Return the generation of a row as in ``of``, for a statement."""
    return sa.func.coalesce(row.generation, sa.literal_column("0"))


def bump(
    tx: Transaction,
    row: type[models.Consumer | models.ResourceProvider],
    values: Iterable[WithGeneration],
    complaint: str,
) -> None:
    """Add one to the generation of each row.

    :param complaint: the message if another request has changed one of them
    :raises ConcurrentUpdate: a generation differs from that in the values
    """
    for chunk in storage.chunks(values):
        pairs = [(value.id, of(value)) for value in chunk]
        parameters = {"ids": [value.id for value in chunk], "known": pairs}
        matched = tx.execute(_update(row), parameters).rowcount
        if matched != len(chunk):
            raise errors.ConcurrentUpdate(complaint)


@functools.cache
def _update(row: type[models.Consumer | models.ResourceProvider]) -> sa.Update:
    """Return the statement that changes rows with some ``ids``, if ``known``."""
    both = sa.tuple_(row.id, stored(row))
    return (
        sa.update(row)
        # MariaDB uses the primary key for the first condition only.
        .where(row.id.in_(sa.bindparam("ids", expanding=True)))
        .where(both.in_(sa.bindparam("known", expanding=True)))
        .values(generation=stored(row) + 1)
    )
