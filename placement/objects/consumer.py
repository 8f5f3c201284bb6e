"""Consumers: the owners of allocations, with their project, user and type."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_db import exception as db_exc

from placement import errors
from placement.db import models
from placement.model.consumer import WantedConsumer
from placement.model.entry import Ownership
from placement.objects import exact_match, generation, lease
from placement.objects.exact_match import WantedStrings
from placement.objects.transaction import Transaction
from placement_foundation.database import storage

RACE = "Another thread concurrently updated the data. Please retry your update"


class Attributes(NamedTuple):
    """The columns of a consumer's row, apart from its UUID."""

    project_id: int
    user_id: int
    consumer_type_id: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """The row of a consumer, locked for the rest of the transaction."""

    id: int
    uuid: str
    generation: int
    attributes: Attributes
    owner: Ownership


# The names of the owner: the fields of ``Ownership``.
_OWNER = (
    sa.select(models.Project.external_id)
    .where(models.Project.id == models.Consumer.project_id)
    .scalar_subquery(),
    sa.select(models.User.external_id)
    .where(models.User.id == models.Consumer.user_id)
    .scalar_subquery(),
    sa.select(models.ConsumerType.name)
    .where(models.ConsumerType.id == models.Consumer.consumer_type_id)
    .scalar_subquery(),
)
# The columns to read of locked consumers.
_LOCKED = sa.select(
    models.Consumer.id,
    models.Consumer.uuid,
    models.Consumer.generation,
    models.Consumer.project_id,
    models.Consumer.user_id,
    models.Consumer.consumer_type_id,
    *_OWNER,
)
_OWNERS = sa.select(models.Consumer.uuid, *_OWNER).where(
    models.Consumer.id.in_(sa.bindparam("ids", expanding=True))
)

_INSERT = sa.insert(models.Consumer).inline()


def lock(tx: Transaction, uuids: Collection[str]) -> dict[str, Record]:
    """Lock the consumers that exist, in the order of their ids; return them by UUID.

    Every write of a consumer's allocations does this first, so the allocations of a
    locked consumer stay as they are.
    """
    row = models.Consumer
    rows = exact_match.lock_by_string(tx, _LOCKED, row.id, row.uuid, uuids)
    records = {
        uuid: Record(
            row_id, uuid, number, Attributes(*fields[:3]), Ownership(*fields[3:])
        )
        for uuid, (row_id, _, number, *fields) in rows.items()
    }
    # On PostgreSQL, a consumer may have got a new project, user or type during the wait
    # for its lock. The statement began before these existed; a new one sees them.
    missed = [each.id for each in records.values() if _lacks_name(each)]
    for chunk in storage.chunks(sorted(missed)):
        for uuid, *owner in tx.execute(_OWNERS, {"ids": chunk}):
            records[uuid] = dataclasses.replace(records[uuid], owner=Ownership(*owner))
    return {text: records[text] for text in uuids if text in records}


def _lacks_name(record: Record) -> bool:
    owner, ids = record.owner, record.attributes
    return None in (owner.project_id, owner.user_id) or (
        owner.consumer_type is None
    ) != (ids.consumer_type_id is None)


def owner_after(wanted: WantedConsumer, record: Record | None) -> Ownership:
    """Return the owner that a consumer has after a write."""
    kind = wanted.type
    if kind is None and record:
        kind = record.owner.consumer_type
    return Ownership(wanted.project_id, wanted.user_id, kind)


def load_ids(connection: sa.Connection, uuids: Collection[str]) -> dict[str, int]:
    """Return the ids of the consumers that exist, by UUID."""
    row = models.Consumer
    return exact_match.ids_by_string(connection, row.id, row.uuid, uuids)


def load_generations(
    connection: sa.Connection, uuids: Collection[str]
) -> dict[str, int]:
    """Return the generations of the consumers that exist by now, by UUID."""
    row = models.Consumer
    generations: dict[str, int] = {}
    for chunk in storage.chunks(sorted(filter(exact_match.is_searchable, uuids))):
        query = sa.select(row.uuid, row.generation).where(row.uuid.in_(chunk))
        generations.update((uuid, number) for uuid, number in connection.execute(query))
    return {uuid: number for uuid, number in generations.items() if uuid in uuids}


def check_generations(
    wanted: Iterable[WantedConsumer], records: Mapping[str, Record]
) -> None:
    """Check that consumers have the generations that a write expects.

    :raises ConcurrentUpdate: a generation differs; it names the first such
    """
    for consumer in wanted:
        record = records.get(consumer.uuid)
        actual = record.generation if record else None
        if consumer.guarded and consumer.generation != actual:
            expected = "null" if actual is None else actual
            raise errors.ConcurrentUpdate(
                "consumer generation conflict - "
                f"expected {expected} but got {consumer.generation}"
            )


def list_owner_names(wanted: Sequence[WantedConsumer]) -> list[WantedStrings]:
    """Return the names of consumers' projects, users and types, to find their ids."""
    return [
        WantedStrings(
            models.Project.id,
            models.Project.external_id,
            {each.project_id for each in wanted},
        ),
        WantedStrings(
            models.User.id, models.User.external_id, {each.user_id for each in wanted}
        ),
        WantedStrings(
            models.ConsumerType.id,
            models.ConsumerType.name,
            {each.type for each in wanted if each.type},
        ),
    ]


def store(
    tx: Transaction,
    wanted: Sequence[WantedConsumer],
    records: Mapping[str, Record],
    owners: Sequence[Mapping[str, int]],
) -> list[dict[str, Any]]:
    """Write consumers that are to have allocations; each gets its next generation.

    :param owners: the known ids of ``list_owner_names``
    :return: the rows of new consumers, for the caller to insert. If another request
        creates one of these, the race is lost.
    :raises ConcurrentUpdate: a consumer has changed in spite of its lock
    :raises Conflict: the database considers two different names equal
    """
    attributes = _attributes(tx, wanted, records, owners)
    new = [uuid for uuid in attributes if uuid not in records]
    old = [records[uuid] for uuid in attributes if uuid in records]
    _change(
        tx,
        {
            record.id: attributes[record.uuid]
            for record in old
            if record.attributes != attributes[record.uuid]
        },
    )
    generation.bump(tx, models.Consumer, old, RACE)
    return [
        {"uuid": uuid, "generation": 1, **attributes[uuid]._asdict()}
        for uuid in sorted(new)
    ]


def remove(tx: Transaction, records: Iterable[Record]) -> None:
    """Delete consumers that have no allocations left, and their leases."""
    ids = sorted(record.id for record in records)
    lease.remove(tx, ids)
    storage.delete_each(tx.connection, models.Consumer.id, ids)


def _attributes(
    tx: Transaction,
    wanted: Sequence[WantedConsumer],
    records: Mapping[str, Record],
    owners: Sequence[Mapping[str, int]],
) -> dict[str, Attributes]:
    """Return the new attributes of each consumer, keyed by UUID, with ids for names."""
    projects, users, types = (
        _with_missing(tx, names, ids)
        for names, ids in zip(list_owner_names(wanted), owners, strict=True)
    )

    def type_id(consumer: WantedConsumer) -> int | None:
        if consumer.type is not None:
            return types[consumer.type]
        record = records.get(consumer.uuid)
        return record.attributes.consumer_type_id if record else None

    return {
        each.uuid: Attributes(
            projects[each.project_id], users[each.user_id], type_id(each)
        )
        for each in wanted
    }


def _with_missing(
    tx: Transaction, names: WantedStrings, known: Mapping[str, int]
) -> Mapping[str, int]:
    """Return the ids of rows by name, inserting the rows that are missing.

    :raises BadRequest: some databases cannot store a name
    :raises Conflict: the database considers a name equal to another one
    """
    missing = sorted(set(names.strings) - known.keys())
    if not missing:
        return known
    if not all(map(exact_match.is_searchable, missing)):
        raise errors.BadRequest("A project or user must not have a NUL in its name.")
    column = names.string_column
    rows = [{column.key: name} for name in missing]
    storage.insert_missing(tx.connection, column.parent.class_, rows)
    ids = exact_match.ids_by_string(tx.connection, names.id_column, column, missing)
    for name in missing:
        if name not in ids:
            raise _indistinguishable(name)
    return {**known, **ids}


def _indistinguishable(name: str) -> errors.Conflict:
    return errors.Conflict(
        f"This database cannot distinguish '{name}' from another name that is in use."
    )


def insert(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert consumers, in the state after their first write.

    :param rows: the result of ``store``
    :raises Conflict: the database considers two different UUIDs equal
    """
    if not rows:
        return
    try:
        tx.execute(_INSERT, rows)
    except db_exc.DBDuplicateEntry:
        # Another request was faster, unless two UUIDs differ only in case.
        if tx.dialect in ("mysql", "mariadb"):
            _check_distinct(tx.connection, [row["uuid"] for row in rows])
        raise


def _check_distinct(connection: sa.Connection, uuids: Sequence[str]) -> None:
    """Check that UUIDs differ in more than case, from each other and from stored ones.

    :raises Conflict: two differ in case only
    """
    row = models.Consumer
    spelled: dict[str, str] = {}
    for chunk in storage.chunks(uuids):
        stored = connection.scalars(sa.select(row.uuid).where(row.uuid.in_(chunk)))
        for uuid in [*stored, *chunk]:
            if spelled.setdefault(uuid.lower(), uuid) != uuid:
                raise _indistinguishable(uuid)


def _change(tx: Transaction, attributes: Mapping[int, Attributes]) -> None:
    """Set the attributes of consumers, keyed by id."""
    for chunk in storage.chunks(attributes, size=storage.CHUNK // 5):
        values = {
            name: sa.case(
                {row_id: getattr(attributes[row_id], name) for row_id in chunk},
                value=models.Consumer.id,
                else_=getattr(models.Consumer, name),
            )
            for name in Attributes._fields
        }
        tx.execute(
            sa.update(models.Consumer)
            .where(models.Consumer.id.in_(chunk))
            .values(values)
        )
