"""The rows that our own tables must have."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement.db import models
from placement_foundation.database.migration import Content

# The shards of the trees, and one more for the names.
STAMPS = 257


def _list_missing_stamps(connection: sa.Connection) -> Sequence[Mapping[str, Any]]:
    shards = set(connection.scalars(sa.select(models.FOREST_STAMPS.c.shard)))
    # A new row has a new token: trees that are kept by an old row are read again.
    return [
        {"shard": shard, "changes": f"{secrets.token_hex(6)};"}
        for shard in range(STAMPS)
        if shard not in shards
    ]


CONTENT = Content(models.OWN, {models.FOREST_STAMPS: _list_missing_stamps})
