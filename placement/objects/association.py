"""What a provider is associated with: traits and aggregates."""

from collections.abc import Set

import sqlalchemy as sa
from sqlalchemy import orm

from placement_foundation.database import storage


def replace(
    connection: sa.Connection,
    provider_id: int,
    member: orm.InstrumentedAttribute[int],
    wanted: Set[int],
) -> bool:
    """Associate a provider with these and no others; return whether anything changed.

    :param member: the column of the associated thing
    """
    row = member.class_
    mine = row.resource_provider_id == provider_id
    known = set(connection.execute(sa.select(member).where(mine)).scalars())
    for chunk in storage.chunks(sorted(known - wanted)):
        connection.execute(sa.delete(row).where(mine, member.in_(chunk)))
    new = [
        {"resource_provider_id": provider_id, member.key: key}
        for key in sorted(wanted - known)
    ]
    if new:
        connection.execute(sa.insert(row), new)
    return known != wanted
