"""What a provider is associated with: traits and aggregates."""

import dataclasses
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy import orm

from placement.objects.transaction import Transaction
from placement_foundation.database import storage


@dataclasses.dataclass(frozen=True, slots=True)
class AssociationChange:
    """What was associated with a provider, and what was not any more, by name."""

    added: Sequence[str]
    removed: Sequence[str]

    def __bool__(self) -> bool:
        """Return whether anything changed."""
        return bool(self.added or self.removed)


def replace(
    tx: Transaction,
    provider_id: int,
    member: orm.InstrumentedAttribute[int],
    name: orm.InstrumentedAttribute[str] | orm.InstrumentedAttribute[str | None],
    wanted: Mapping[str, int],
) -> AssociationChange:
    """Associate a provider with these and no others; return what changed.

    :param member: the column with the id of the associated thing
    :param name: the column of the thing itself that has its name
    :param wanted: the ids by name
    """
    row, thing = member.class_, name.class_
    mine = row.resource_provider_id == provider_id
    query = sa.select(member, name).outerjoin(thing, thing.id == member).where(mine)
    known = {key: text or "" for key, text in tx.execute(query)}
    names = {key: text for text, key in wanted.items()}
    gone, new = sorted(known.keys() - names.keys()), sorted(names.keys() - known.keys())
    for chunk in storage.chunks(gone):
        tx.execute(sa.delete(row).where(mine, member.in_(chunk)))
    rows = [{"resource_provider_id": provider_id, member.key: key} for key in new]
    if rows:
        tx.execute(sa.insert(row), rows)
    return AssociationChange([names[key] for key in new], [known[key] for key in gone])
