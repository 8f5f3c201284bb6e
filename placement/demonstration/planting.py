"""Storing the demonstration cloud in an empty database, and removing it again."""

import collections
import datetime
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.demonstration import cloud
from placement.model.member import members_of
from placement.objects import (
    clock,
    creation,
    lease,
    resource_class,
    resource_provider,
)
from placement.objects.transaction import Transaction
from placement_foundation.database import sequence, storage
from placement_foundation.observing import progress
from placement_foundation.observing.progress import Progress

# A table, and the values of a row.
Row: TypeAlias = tuple[type[models.Base], dict[str, Any]]
# How many hosts are stored at a time.
BATCH = 200
# The tables that are filled, each after those that it refers to.
FILLED: Sequence[type[models.Base]] = (
    models.ResourceProvider,
    models.Inventory,
    models.ResourceProviderTrait,
    models.ResourceProviderAggregate,
    models.Consumer,
    models.Allocation,
)


def plant(tx: Transaction, hosts: int, report: Progress = progress.SILENT) -> int:
    """Store a cloud with so many hosts; return how many providers it has.

    :param report: gets the progress, in hosts
    :raises Conflict: there are resource providers
    """
    if tx.connection.execute(sa.select(models.ResourceProvider.id).limit(1)).first():
        raise errors.Conflict(
            "There are resource providers in this database: a demonstration cloud "
            "needs an empty one. placement-manage demo --remove takes an earlier "
            "demonstration away."
        )
    resource_class.ensure(tx, [cloud.UNUSED_CLASS])
    planter = _Planter(tx.connection, cloud.list_aggregates(hosts))
    report.begin("storing hosts", hosts + cloud.ZONES)
    parts = cloud.make(hosts)
    while batch := list(itertools.islice(parts, BATCH)):
        rows = collections.defaultdict(list)
        for table, row in itertools.chain.from_iterable(map(planter.rows_of, batch)):
            rows[table].append(row)
        for table in FILLED:
            if rows[table]:
                tx.connection.execute(sa.insert(table), rows[table])
        report.advance(len(batch))
    sequence.count_on(
        tx.connection, [models.Base.metadata.tables["resource_providers"]]
    )
    tx.record_all()
    return len(planter.ids)


class _Planter:
    """Turns parts of a cloud into rows. The ids of providers, by name, are its own."""

    def __init__(self, connection: sa.Connection, aggregates: Sequence[str]) -> None:
        self.ids: dict[str, int] = {}
        self._roots: dict[int, int] = {}
        self._now = clock.now()
        uuids = [cloud.uuid_of(name) for name in aggregates]
        self._aggregates = _ensure(connection, models.Aggregate.uuid, uuids)
        self._traits = _ensure(connection, models.Trait.name, cloud.TRAITS)
        self._classes = _ensure(connection, models.ResourceClass.name, ())
        self._types = _ensure(connection, models.ConsumerType.name, cloud.TYPES)
        self._projects = _ensure(connection, models.Project.external_id, cloud.PROJECTS)
        self._users = _ensure(connection, models.User.external_id, [cloud.USER])

    def rows_of(self, part: cloud.CloudPart) -> Iterator[Row]:
        """Yield the rows of a part, each with its table."""
        for provider in part.providers:
            yield from self._rows_of_provider(provider)
        for consumer in part.consumers:
            yield from self._rows_of_consumer(consumer)

    def _rows_of_provider(self, provider: cloud.PlannedProvider) -> Iterator[Row]:
        key = self.ids[provider.name] = len(self.ids) + 1
        parent = self.ids[provider.parent] if provider.parent else None
        self._roots[key] = self._roots[parent] if parent else key
        yield (
            models.ResourceProvider,
            {
                "id": key,
                "uuid": cloud.uuid_of(provider.name),
                "name": provider.name,
                "generation": 0,
                "parent_provider_id": parent,
                "root_provider_id": self._roots[key],
            },
        )
        of_it = {"resource_provider_id": key}
        for name, inventory in provider.inventories.items():
            of_class = {"resource_class_id": self._classes[name]}
            yield models.Inventory, of_it | of_class | members_of(inventory)
        for name in provider.traits:
            yield models.ResourceProviderTrait, of_it | {"trait_id": self._traits[name]}
        for name in provider.aggregates:
            aggregate = {"aggregate_id": self._aggregates[cloud.uuid_of(name)]}
            yield models.ResourceProviderAggregate, of_it | aggregate

    def _rows_of_consumer(self, consumer: cloud.PlannedConsumer) -> Iterator[Row]:
        uuid = cloud.uuid_of(consumer.name)
        yield (
            models.Consumer,
            {
                "uuid": uuid,
                "project_id": self._projects[consumer.project],
                "user_id": self._users[cloud.USER],
                "generation": 1,
                "consumer_type_id": self._types[consumer.type],
                "created_at": self._now - datetime.timedelta(days=consumer.days),
            },
        )
        for provider, amounts in consumer.claims.items():
            for name, amount in amounts.items():
                yield (
                    models.Allocation,
                    {
                        "resource_provider_id": self.ids[provider],
                        "resource_class_id": self._classes[name],
                        "consumer_id": uuid,
                        "used": amount,
                    },
                )


def _ensure(
    connection: sa.Connection, column: Any, names: Iterable[str]
) -> dict[str, int]:
    """Add the names that a table lacks, and return the ids of all that it has."""
    rows = [{column.key: name} for name in names]
    storage.insert_missing(connection, column.class_, rows)
    query = sa.select(column, column.class_.id)
    return dict(connection.execute(query).all())


def remove(tx: Transaction, report: Progress = progress.SILENT) -> int:
    """Remove the demonstration cloud; return how many providers it had.

    All allocations against it are removed, too.

    :param report: gets the progress, in providers
    :raises Conflict: a provider that is not part of it is below one that is
    """
    # New claims and children wait from now on, and then find no provider.
    locked = resource_provider.lock_by_ids(tx, _planted(tx.connection))
    ids = [each.id for each in locked]
    _check_is_alone(tx.connection, ids)
    report.begin("removing allocations", len(ids))
    _remove_allocations(tx, ids, report)
    report.begin("removing resource providers")
    # Children were stored after their parents.
    creation.delete_many(tx, locked[::-1])
    _remove_names(tx.connection)
    tx.record_all()
    return len(ids)


def _planted(connection: sa.Connection) -> list[int]:
    """Return the ids of the planted providers; a name alone proves nothing."""
    provider = models.ResourceProvider
    query = (
        sa.select(provider.id, provider.uuid, provider.name)
        .where(provider.name.startswith(cloud.PREFIX))
        .order_by(provider.id)
    )
    return [
        key
        for key, uuid, name in connection.execute(query)
        if uuid == cloud.uuid_of(str(name))
    ]


def _check_is_alone(connection: sa.Connection, ids: Collection[int]) -> None:
    provider = models.ResourceProvider
    planted = set(ids)
    children = sa.select(provider.id, provider.name).order_by(provider.id)
    for chunk in storage.chunks(ids):
        query = children.where(provider.parent_provider_id.in_(chunk))
        for key, name in connection.execute(query):
            if key not in planted:
                raise errors.Conflict(
                    f"Resource provider {name} is below one of the demonstration "
                    "cloud, and not part of it: delete or move it first."
                )


def _remove_allocations(
    tx: Transaction, ids: Collection[int], report: Progress
) -> None:
    allocation, consumer = models.Allocation, models.Consumer
    users: set[str] = set()
    for chunk in storage.chunks(ids):
        here = allocation.resource_provider_id.in_(chunk)
        query = sa.select(allocation.consumer_id).where(here).distinct()
        users.update(tx.connection.scalars(query.order_by(allocation.consumer_id)))
        tx.connection.execute(sa.delete(allocation).where(here))
        report.advance(len(chunk))
    has_more = sa.exists().where(allocation.consumer_id == consumer.uuid)
    for leaving in storage.chunks(sorted(users)):
        idle = sa.select(consumer.id).where(consumer.uuid.in_(leaving), ~has_more)
        gone = tx.connection.scalars(idle.order_by(consumer.id)).all()
        # SQLite gives ids again: a lease that stayed would end another's claims.
        lease.remove(tx, gone)
        tx.connection.execute(sa.delete(consumer).where(consumer.id.in_(gone)))


def _remove_names(connection: sa.Connection) -> None:
    """Delete the names that only the cloud had, unless something else uses them now."""
    # There are no more aggregates of a cloud of any size than there are aggregates.
    most = connection.scalar(sa.select(sa.func.count(models.Aggregate.id))) or 0
    aggregates = cloud.list_aggregates(most * cloud.HOSTS_IN_A_RACK)
    member, has_trait = models.ResourceProviderAggregate, models.ResourceProviderTrait
    of_names: Sequence[tuple[Any, Iterable[str], Any]] = (
        (models.Aggregate.uuid, map(cloud.uuid_of, aggregates), member.aggregate_id),
        (models.Trait.name, cloud.TRAITS, has_trait.trait_id),
        (
            models.ResourceClass.name,
            [cloud.UNUSED_CLASS],
            models.Inventory.resource_class_id,
        ),
        (models.Project.external_id, cloud.PROJECTS, models.Consumer.project_id),
        (models.User.external_id, [cloud.USER], models.Consumer.user_id),
    )
    for column, names, reference in of_names:
        is_used = sa.exists().where(reference == column.class_.id)
        for chunk in storage.chunks(names):
            unused = sa.delete(column.class_).where(column.in_(chunk), ~is_used)
            connection.execute(unused)
