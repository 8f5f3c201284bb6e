"""Storing the demonstration cloud in an empty database, and removing it again."""

import datetime
import itertools
from collections.abc import (
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from typing import Any

import sqlalchemy as sa

from placement import errors
from placement.db import models
from placement.demonstration import cloud
from placement.objects import (
    clock,
    declared,
    lease,
    resource_class,
    resource_provider,
    trait,
)
from placement.objects.journal import recording
from placement_foundation.database import storage
from placement_foundation.observing import progress
from placement_foundation.observing.progress import Progress

CHUNK = 5_000

Rows = Iterable[Mapping[str, Any]]


def plant(
    connection: sa.Connection, hosts: int, report: Progress = progress.SILENT
) -> int:
    """Store a cloud with so many hosts; return how many providers it has.

    :param report: gets the progress, in rows
    :raises Conflict: there are resource providers
    """
    if connection.execute(sa.select(models.ResourceProvider.id).limit(1)).first():
        raise errors.Conflict(
            "There are resource providers in this database: a demonstration cloud "
            "needs an empty one. placement-manage demo --remove takes an earlier "
            "demonstration away."
        )
    planter = _Planter(connection, list(_made(hosts, report)), report)
    planter.plant(cloud.list_aggregates(hosts))
    recording.note_everything(connection)
    return len(planter.providers)


def _made(hosts: int, report: Progress) -> Iterator[cloud.CloudPart]:
    report.begin("making hosts", hosts + cloud.ZONES)
    for part in cloud.make(hosts):
        yield part
        report.advance()


class _Planter:
    """Turns a cloud into rows."""

    def __init__(
        self,
        connection: sa.Connection,
        parts: Sequence[cloud.CloudPart],
        report: Progress,
    ) -> None:
        self._connection = connection
        self._report = report
        self.providers = [each for part in parts for each in part.providers]
        self._consumers = [each for part in parts for each in part.consumers]
        self._ids: dict[str, int] = {}

    def plant(self, aggregates: Sequence[str]) -> None:
        self._plant_providers()
        self._plant_inventories()
        self._plant_traits()
        self._plant_aggregates(aggregates)
        self._plant_consumers()
        self._plant_allocations()

    def _insert(self, table: type[models.Base], rows: Rows) -> None:
        remaining = iter(rows)
        while chunk := list(itertools.islice(remaining, CHUNK)):
            self._connection.execute(sa.insert(table), chunk)
            self._report.advance(len(chunk))

    def _plant_providers(self) -> None:
        """Insert one generation after the other: a child refers to its parent."""
        self._report.begin("storing resource providers", len(self.providers))
        table = models.ResourceProvider
        generation = [each for each in self.providers if each.parent is None]
        roots: dict[str, int | None] = {}
        while generation:
            rows = (
                {
                    "uuid": cloud.uuid_of(each.name),
                    "name": each.name,
                    "generation": 0,
                    "parent_provider_id": each.parent and self._ids[each.parent],
                    "root_provider_id": each.parent and roots[each.parent],
                }
                for each in generation
            )
            self._insert(table, rows)
            self._ids |= _ids(
                self._connection, table.name, (p.name for p in generation)
            )
            for each in generation:
                above = each.parent and roots[each.parent]
                roots[each.name] = above or self._ids[each.name]
            names = {each.name for each in generation}
            generation = [each for each in self.providers if each.parent in names]
        is_root = table.root_provider_id.is_(None)
        self._connection.execute(
            sa.update(table).where(is_root).values(root_provider_id=table.id)
        )

    def _plant_inventories(self) -> None:
        if resource_class.find_by_name(self._connection, cloud.UNUSED_CLASS) is None:
            resource_class.create(self._connection, cloud.UNUSED_CLASS)
        class_ids = self._class_ids()
        self._begin("inventories", (each.inventories for each in self.providers))
        self._insert(
            models.Inventory,
            (
                {
                    "resource_provider_id": self._ids[provider.name],
                    "resource_class_id": class_ids[name],
                    "total": inventory.total,
                    "reserved": inventory.reserved,
                    "min_unit": 1,
                    "max_unit": inventory.total,
                    "step_size": 1,
                    "allocation_ratio": inventory.ratio,
                }
                for provider in self.providers
                for name, inventory in provider.inventories.items()
            ),
        )

    def _begin(self, what: str, rows: Iterable[Sized]) -> None:
        self._report.begin(f"storing {what}", sum(map(len, rows)))

    def _class_ids(self) -> dict[str, int]:
        names = {name for each in self.providers for name in each.inventories}
        return resource_class.ids_by_name(self._connection, names)

    def _plant_traits(self) -> None:
        own = [{"name": name} for name in cloud.TRAITS]
        storage.insert_missing(self._connection, models.Trait, own)
        names = {name for each in self.providers for name in each.traits}
        ids = trait.ids_by_name(self._connection, names)
        self._begin("traits", (each.traits for each in self.providers))
        self._insert(
            models.ResourceProviderTrait,
            (
                {
                    "resource_provider_id": self._ids[provider.name],
                    "trait_id": ids[name],
                }
                for provider in self.providers
                for name in provider.traits
            ),
        )

    def _plant_aggregates(self, names: Sequence[str]) -> None:
        uuids = {name: cloud.uuid_of(name) for name in names}
        table = models.Aggregate
        rows = [{"uuid": each} for each in uuids.values()]
        storage.insert_missing(self._connection, table, rows)
        ids = _ids(self._connection, table.uuid, uuids.values())
        self._begin("aggregates", (each.aggregates for each in self.providers))
        self._insert(
            models.ResourceProviderAggregate,
            (
                {
                    "resource_provider_id": self._ids[provider.name],
                    "aggregate_id": ids[uuids[name]],
                }
                for provider in self.providers
                for name in provider.aggregates
            ),
        )

    def _plant_consumers(self) -> None:
        projects = self._ensure(models.Project.external_id, cloud.PROJECTS)
        users = self._ensure(models.User.external_id, [cloud.USER])
        names = {each.type for each in self._consumers}
        types = self._ensure(models.ConsumerType.name, sorted(names))
        now = clock.now()
        self._report.begin("storing consumers", len(self._consumers))
        self._insert(
            models.Consumer,
            (
                {
                    "uuid": cloud.uuid_of(each.name),
                    "project_id": projects[each.project],
                    "user_id": users[cloud.USER],
                    "generation": 1,
                    "consumer_type_id": types[each.type],
                    "created_at": now - datetime.timedelta(days=each.days),
                }
                for each in self._consumers
            ),
        )

    def _ensure(self, column: Any, names: Collection[str]) -> dict[str, int]:
        rows = [{column.key: name} for name in names]
        storage.insert_missing(self._connection, column.class_, rows)
        return _ids(self._connection, column, names)

    def _plant_allocations(self) -> None:
        class_ids = self._class_ids()
        self._begin(
            "allocations",
            (amounts for each in self._consumers for amounts in each.claims.values()),
        )
        self._insert(
            models.Allocation,
            (
                {
                    "resource_provider_id": self._ids[provider],
                    "resource_class_id": class_ids[name],
                    "consumer_id": cloud.uuid_of(consumer.name),
                    "used": amount,
                }
                for consumer in self._consumers
                for provider, amounts in consumer.claims.items()
                for name, amount in amounts.items()
            ),
        )


def _ids(
    connection: sa.Connection, column: Any, names: Iterable[str]
) -> dict[str, int]:
    """Return the ids of rows, keyed by the value of a column."""
    table = column.class_
    return {
        name: key
        for chunk in storage.chunks(names)
        for name, key in connection.execute(
            sa.select(column, table.id).where(column.in_(chunk))
        )
    }


def remove(connection: sa.Connection, report: Progress = progress.SILENT) -> int:
    """Remove the demonstration cloud; return how many providers it had.

    All allocations against it are removed, too.

    :param report: gets the progress, in providers
    :raises Conflict: a provider that is not part of it is below one that is
    """
    # What is claimed or put below them from now on waits, and then finds them gone.
    locked = resource_provider.lock_by_ids(connection, _planted(connection))
    ids = [each.id for each in locked]
    _check_is_alone(connection, ids)
    report.begin("removing allocations", len(ids))
    _remove_allocations(connection, ids, report)
    report.begin("removing resource providers")
    provider = models.ResourceProvider
    for table in (
        models.Inventory,
        models.ResourceProviderTrait,
        models.ResourceProviderAggregate,
    ):
        _delete(connection, table.resource_provider_id, ids)
    for chunk in storage.chunks(ids):
        # Some databases check foreign keys row by row when they delete several.
        loose = {"parent_provider_id": None, "root_provider_id": None}
        connection.execute(
            sa.update(provider).where(provider.id.in_(chunk)).values(**loose)
        )
    _delete(connection, provider.id, ids)
    declared.forget(connection, (each.uuid for each in locked))
    _remove_names(connection)
    recording.note_everything(connection)
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
    for chunk in storage.chunks(ids):
        query = (
            sa.select(provider.id, provider.name)
            .where(provider.parent_provider_id.in_(chunk))
            .order_by(provider.id)
        )
        known = set(ids)
        for key, name in connection.execute(query):
            if key not in known:
                raise errors.Conflict(
                    f"Resource provider {name} is below one of the demonstration "
                    "cloud, and not part of it: delete or move it first."
                )


def _remove_allocations(
    connection: sa.Connection, ids: Collection[int], report: Progress
) -> None:
    allocation, consumer = models.Allocation, models.Consumer
    users: set[str] = set()
    for chunk in storage.chunks(ids):
        here = allocation.resource_provider_id.in_(chunk)
        query = sa.select(allocation.consumer_id).where(here).distinct()
        users.update(connection.scalars(query.order_by(allocation.consumer_id)))
        connection.execute(sa.delete(allocation).where(here))
        report.advance(len(chunk))
    has_more = sa.exists().where(allocation.consumer_id == consumer.uuid)
    for leaving in storage.chunks(sorted(users)):
        idle = sa.select(consumer.id).where(consumer.uuid.in_(leaving), ~has_more)
        gone = connection.scalars(idle.order_by(consumer.id)).all()
        # SQLite gives ids again: a lease that stayed would end another's claims.
        lease.remove(connection, gone)
        _delete(connection, consumer.id, gone)


def _delete(connection: sa.Connection, column: Any, values: Iterable[Any]) -> None:
    for chunk in storage.chunks(values):
        connection.execute(sa.delete(column.class_).where(column.in_(chunk)))


def _remove_names(connection: sa.Connection) -> None:
    """Delete the names that only the cloud had, unless something else uses them now."""
    member = models.ResourceProviderAggregate
    _delete_unused(
        connection,
        models.Aggregate.uuid,
        _aggregates(connection),
        sa.exists().where(member.aggregate_id == models.Aggregate.id),
    )
    has_trait = models.ResourceProviderTrait
    _delete_unused(
        connection,
        models.Trait.name,
        cloud.TRAITS,
        sa.exists().where(has_trait.trait_id == models.Trait.id),
    )
    inventory = models.Inventory
    _delete_unused(
        connection,
        models.ResourceClass.name,
        [cloud.UNUSED_CLASS],
        sa.exists().where(inventory.resource_class_id == models.ResourceClass.id),
    )
    consumer = models.Consumer
    _delete_unused(
        connection,
        models.Project.external_id,
        cloud.PROJECTS,
        sa.exists().where(consumer.project_id == models.Project.id),
    )
    _delete_unused(
        connection,
        models.User.external_id,
        [cloud.USER],
        sa.exists().where(consumer.user_id == models.User.id),
    )


def _aggregates(connection: sa.Connection) -> Iterator[str]:
    """Yield the UUIDs of aggregates that a cloud of any size can have."""
    most = connection.scalar(sa.select(sa.func.count()).select_from(models.Aggregate))
    yield from map(
        cloud.uuid_of, cloud.list_aggregates((most or 0) * cloud.HOSTS_IN_A_RACK)
    )


def _delete_unused(
    connection: sa.Connection,
    column: Any,
    names: Iterable[str],
    used: sa.ColumnElement[bool],
) -> None:
    for chunk in storage.chunks(names):
        connection.execute(
            sa.delete(column.class_).where(column.in_(chunk)).where(~used)
        )
