"""Which resource providers to list: filters, in the kept forest or as SQL."""

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import orm

from placement import errors
from placement.db import models
from placement.forest.forest import Forest
from placement.forest.vocabulary import Vocabulary
from placement.model.inventory import FIELDS, LARGEST_AMOUNT, InventoryUsage
from placement.model.request import Group, Request
from placement.model.resource_provider import ProviderFilters, ResourceProvider
from placement.model.trait import UNKNOWN_TRAIT
from placement.objects import (
    aggregate,
    exact_text,
    inventory,
    resource_class,
    resource_provider,
    trait,
)
from placement.search import plan, rules
from placement.search.tally import Tally
from placement_foundation.database import storage

Condition = sa.ColumnElement[bool]

# How many conditions SQLite accepts in one chain of ANDs, with room to spare.
GROUPS_AT_ONCE = 100


class _NothingMatches(Exception):
    """A filter excludes all providers, whatever the other filters say."""


def list_by_filters(
    connection: sa.Connection, filters: ProviderFilters, forest: Forest | None = None
) -> list[ResourceProvider]:
    """Return the providers that pass all filters, in the order of their ids.

    :param forest: all providers as the transaction sees them, if they are in memory
    :raises BadRequest: a trait or resource class does not exist, unless the answer is
        known to be empty anyway
    """
    if forest and _are_known(filters, forest.vocabulary):
        return _list_in_forest(forest, filters)
    trait_ids = trait.ids_by_name(connection, _mentioned_traits(filters))
    aggregate_ids = aggregate.ids_by_uuid(connection, _mentioned_aggregates(filters))
    try:
        wanted = _wanted(connection, filters, trait_ids, aggregate_ids)
        amounts = _amounts(connection, filters, wanted)
    except _NothingMatches:
        return []
    unwanted = _unwanted(filters, trait_ids, aggregate_ids)
    conditions = [*wanted, *unwanted, *_named(connection, filters)]
    if not amounts:
        providers = resource_provider.list_where(connection, *conditions)
    elif max(amounts.values()) > LARGEST_AMOUNT:
        return []
    else:
        providers = _with_room(connection, conditions, amounts)
    return [provider for provider in providers if filters.accepts(provider)]


def _are_known(filters: ProviderFilters, vocabulary: Vocabulary) -> bool:
    return (
        _mentioned_traits(filters) <= vocabulary.trait_ids.keys()
        and filters.resources.keys() <= vocabulary.class_ids.keys()
    )


def _list_in_forest(forest: Forest, filters: ProviderFilters) -> list[ResourceProvider]:
    """Return the providers that pass filters; all names in them are known."""
    # As in a group with a suffix, one provider must have everything.
    group = Group(
        suffix="1",
        resources=filters.resources,
        required=tuple(filters.traits),
        forbidden=filters.forbidden_traits,
        member_of=tuple(filters.aggregates),
        not_member_of=filters.forbidden_aggregates,
    )
    named = {uuid for uuid in (filters.uuid, filters.in_tree) if uuid is not None}
    if named:
        trees_named = {forest.tree_of(uuid) for uuid in named}
        trees = [tree for tree in trees_named if tree and len(trees_named) == 1]
    else:
        trees = list(forest.relevant(Request((group,))).trees)
    (want,) = plan.wants_of(group, forest.everything)
    members = [
        member for tree in trees for member in tree.members if filters.accepts(member)
    ]
    passing = rules.select(members, want, rules.rules_of(want), Tally().refuse)
    root_ids = {tree.root.uuid: tree.root.id for tree in trees}
    return [
        ResourceProvider(
            provider.id,
            provider.uuid,
            provider.name,
            provider.generation,
            provider.parent_uuid,
            provider.root_uuid,
            provider.modified,
            root_ids[provider.root_uuid],
        )
        for provider in sorted(passing, key=operator.attrgetter("id"))
    ]


def _named(connection: sa.Connection, filters: ProviderFilters) -> list[Condition]:
    row = models.ResourceProvider
    wanted = [(row.name, filters.name), (row.uuid, filters.uuid)]
    return [
        exact_text.has_text(connection, column, text)
        for column, text in wanted
        if text is not None
    ]


def _mentioned_traits(filters: ProviderFilters) -> frozenset[str]:
    return filters.forbidden_traits.union(*filters.traits)


def _mentioned_aggregates(filters: ProviderFilters) -> frozenset[str]:
    return filters.forbidden_aggregates.union(*filters.aggregates)


def _wanted(
    connection: sa.Connection,
    filters: ProviderFilters,
    trait_ids: Mapping[str, int],
    aggregate_ids: Mapping[str, int],
) -> list[Condition]:
    """Return the conditions on tree, traits and aggregates that a provider must meet.

    They are checked in this order, and only as long as something may match.
    """
    conditions = []
    if filters.in_tree is not None:
        conditions.append(_in_tree(connection, filters.in_tree))
    _check_traits(frozenset().union(*filters.traits), trait_ids)
    having = _having_one_of_each(
        models.ResourceProviderTrait.trait_id,
        [[trait_ids[name] for name in names] for names in filters.traits],
    )
    try:
        _check_traits(filters.forbidden_traits, trait_ids)
    except errors.BadRequest:
        _check_any_match(connection, having)
        raise
    known = [
        [aggregate_ids[uuid] for uuid in uuids if uuid in aggregate_ids]
        for uuids in filters.aggregates
    ]
    if not all(known):
        raise _NothingMatches
    members = _having_one_of_each(models.ResourceProviderAggregate.aggregate_id, known)
    return [*conditions, *having, *members]


def _unwanted(
    filters: ProviderFilters,
    trait_ids: Mapping[str, int],
    aggregate_ids: Mapping[str, int],
) -> list[Condition]:
    """Return the conditions that exclude traits and aggregates."""
    traits = [trait_ids[name] for name in filters.forbidden_traits]
    aggregates = [
        aggregate_ids[uuid]
        for uuid in filters.forbidden_aggregates
        if uuid in aggregate_ids
    ]
    return [
        *_having_none_of(models.ResourceProviderTrait.trait_id, traits),
        *_having_none_of(models.ResourceProviderAggregate.aggregate_id, aggregates),
    ]


def _in_tree(connection: sa.Connection, uuid: str) -> Condition:
    try:
        member = resource_provider.get_by_uuid(connection, uuid)
    except errors.NotFound as exc:
        raise _NothingMatches from exc
    root = orm.aliased(models.ResourceProvider)
    root_id = sa.select(root.id).where(root.uuid == member.root_provider_uuid)
    return models.ResourceProvider.root_provider_id == root_id.scalar_subquery()


def _check_traits(names: Iterable[str], ids: Mapping[str, int]) -> None:
    for name in sorted(names):
        if name not in ids:
            raise errors.BadRequest(
                'Invalid trait(s) in "required" parameter: '
                f"{UNKNOWN_TRAIT.format(name=name)}"
            )


def _having_one_of_each(
    member: orm.InstrumentedAttribute[int], groups: Sequence[Collection[int]]
) -> list[Condition]:
    """Require associations with at least one of each group."""
    provider_id = member.class_.resource_provider_id
    distinct = sorted({tuple(sorted(group)) for group in groups})
    conditions: list[Condition] = []
    for chunk in storage.chunks(distinct, GROUPS_AT_ONCE):
        having = sa.select(provider_id)
        having = having.where(_among(member, {key for group in chunk for key in group}))
        if len(chunk) > 1:
            counts = [
                sa.func.sum(sa.case((_among(member, group), 1), else_=0))
                for group in chunk
            ]
            having = having.group_by(provider_id)
            having = having.having(*[count > 0 for count in counts])
        conditions.append(models.ResourceProvider.id.in_(having))
    return conditions


def _among(member: orm.InstrumentedAttribute[int], ids: Iterable[int]) -> Condition:
    """Require one of some ids, written out, as there may be too many for parameters."""
    listed: sa.BindParameter[int] = sa.bindparam(
        None, sorted(ids), expanding=True, literal_execute=True
    )
    return member.in_(listed)


def _having_none_of(
    member: orm.InstrumentedAttribute[int], ids: Collection[int]
) -> list[Condition]:
    """Require that there is no association with any."""
    if not ids:
        return []
    having = sa.select(member.class_.resource_provider_id).where(_among(member, ids))
    return [models.ResourceProvider.id.not_in(having)]


def _amounts(
    connection: sa.Connection, filters: ProviderFilters, conditions: Iterable[Condition]
) -> dict[int, int]:
    """Return the amounts asked for, by class id."""
    try:
        ids = resource_class.ids_by_name(connection, filters.resources)
    except errors.NotFound as exc:
        _check_any_match(connection, conditions)
        raise errors.BadRequest(
            f"Invalid resource class in resources parameter: {exc}"
        ) from exc
    return {ids[name]: amount for name, amount in filters.resources.items()}


def _check_any_match(
    connection: sa.Connection, conditions: Iterable[Condition]
) -> None:
    """Check that each condition by itself matches some provider.

    :raises _NothingMatches: a condition does not
    """
    for condition in conditions:
        query = sa.select(models.ResourceProvider.id).where(condition).limit(1)
        if connection.execute(query).first() is None:
            raise _NothingMatches


def _with_room(
    connection: sa.Connection,
    conditions: Sequence[Condition],
    amounts: Mapping[int, int],
) -> list[ResourceProvider]:
    """Return the providers that have room for all amounts, keyed by class id."""
    fitting: dict[int, int] = {}
    for provider_id, class_id, *stock in _stocks(connection, conditions, amounts):
        if InventoryUsage(*stock).fits(amounts[class_id]):
            fitting[provider_id] = fitting.get(provider_id, 0) + 1
    ids = {key for key, count in fitting.items() if count == len(amounts)}
    if len(ids) <= storage.CHUNK:
        conditions = [models.ResourceProvider.id.in_(ids)]
    providers = resource_provider.list_where(connection, *conditions)
    return [provider for provider in providers if provider.id in ids]


def _stocks(
    connection: sa.Connection,
    conditions: Sequence[Condition],
    amounts: Mapping[int, int],
) -> Iterable[Any]:
    """Return the inventories that may have room: provider, class, fields, used.

    It leaves out what certainly does not fit; ``Stock`` decides what fits.
    """
    row = models.Inventory
    amount = sa.case(dict(amounts), value=row.resource_class_id, else_=0)
    stock = (
        sa.select(
            row.resource_provider_id,
            row.resource_class_id,
            *[getattr(row, name) for name in FIELDS],
            inventory.USED.label("used"),
            amount.label("amount"),
        )
        .join(
            models.ResourceProvider,
            models.ResourceProvider.id == row.resource_provider_id,
        )
        .where(row.resource_class_id.in_(amounts))
        .where(row.min_unit <= amount, row.max_unit >= amount)
        .where(*conditions)
        .subquery()
    )
    query = (
        sa.select(*[column for column in stock.c if column.name != "amount"])
        .where(inventory.may_hold(stock.c, stock.c.used, stock.c.amount))
        .order_by(stock.c.resource_provider_id, stock.c.resource_class_id)
    )
    return connection.execute(query)
