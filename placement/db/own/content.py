"""The rows that our own tables must have."""

import datetime
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_utils.timeutils import utcnow

from placement.db import models
from placement_foundation.database.migration import Content

# The shards of the trees, and one more for the names.
STAMPS = 257
# The beginning of a journal that records nothing for the time being.
NEVER = datetime.datetime(9999, 1, 1)


def _list_missing_stamps(connection: sa.Connection) -> Sequence[Mapping[str, Any]]:
    shards = set(connection.scalars(sa.select(models.FOREST_STAMPS.c.shard)))
    # A new row has a new token: trees that are kept by an old row are read again.
    return [
        {"shard": shard, "changes": f"{secrets.token_hex(6)};"}
        for shard in range(STAMPS)
        if shard not in shards
    ]


def list_missing_state(connection: sa.Connection) -> Sequence[Mapping[str, Any]]:
    """Return the row for another life of the journal, if it has no state.

    The journal begins when a process starts to record changes.
    """
    if connection.execute(sa.select(models.JOURNAL_STATE.c.id)).first():
        return []
    newest = sa.func.max(models.JOURNAL_ENTRIES.c.position)
    position, token = connection.scalar(sa.select(newest)) or 0, secrets.token_hex(6)
    return [
        {
            "id": 1,
            "life": secrets.token_hex(6),
            "position": position,
            "token": token,
            "expired": position,
            "expired_token": token,
            "begins": NEVER,
            "tidied": utcnow(),
        }
    ]


CONTENT = Content(
    models.OWN,
    {
        models.FOREST_STAMPS: _list_missing_stamps,
        models.JOURNAL_STATE: list_missing_state,
    },
)
