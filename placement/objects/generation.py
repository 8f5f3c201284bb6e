"""Generations: numbers that show whether a caller knows the last change."""

from collections.abc import Iterable
from typing import Protocol

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement_foundation import storage


class Known(Protocol):
    """A row as it was read."""

    @property
    def id(self) -> int:
        """Its primary key."""

    @property
    def generation(self) -> int:
        """The generation that it had."""


def bump(
    connection: sa.Connection,
    row: type[models.Consumer | models.ResourceProvider],
    values: Iterable[Known],
    complaint: str,
) -> None:
    """Add one to the generation of each row.

    :param complaint: the message if another request has changed one of them
    :raises ConcurrentUpdate: a generation is no longer the one in the values
    """
    for chunk in storage.chunks(values):
        known = [(value.id, value.generation) for value in chunk]
        update = (
            sa.update(row)
            # MariaDB uses the primary key for the first condition only.
            .where(row.id.in_([value.id for value in chunk]))
            .where(sa.tuple_(row.id, row.generation).in_(known))
            .values(generation=row.generation + 1)
        )
        if connection.execute(update).rowcount != len(known):
            raise errors.ConcurrentUpdate(complaint)
