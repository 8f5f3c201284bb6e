"""Applies declared hardware: some trees in each transaction, done or untouched.

The trees that differ are found in one reading, without locks. They are then locked,
compared once more, and written, in batches. A tree that the first reading refused stays
refused, so that a dry run is accurate.
"""

import dataclasses
import itertools
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

from placement import errors
from placement.declaration import naming, reading
from placement.declaration import plan as planning
from placement.declaration.outcome import (
    NO_UUID,
    Declaration,
    Goal,
    Outcome,
    Result,
    Terms,
    TreePlan,
)
from placement.forest.cache import CachedForest
from placement.model.declaration import Declared, DeclaredTree
from placement.model.resource_class import UNKNOWN_CLASS
from placement.model.resource_provider import ResourceProvider
from placement.model.trait import UNKNOWN_TRAIT, is_custom
from placement.objects import (
    aggregate,
    creation,
    declared,
    inventory,
    reparenting,
    resource_class,
    resource_provider,
    trait,
)
from placement.objects.ledger import Ledger
from placement.objects.transaction import Connection, Transaction
from placement.questions.name import refuse_unknown
from placement_foundation.database.trouble import LostRaceError

# How many trees are written in one transaction, and how often one that loses races is
# attempted before its trees are written one by one.
TREES = 100
ATTEMPTS = 8

# A tree to write: a declared one, or the root of one that is no longer declared.
Job: TypeAlias = DeclaredTree | str


def foresee(
    connection: Connection, asked: Declaration, cache: CachedForest | None = None
) -> Outcome:
    """Return the outcome that applying a declaration would have at this moment.

    :param cache: keeps the forest, if it is kept
    :raises BadRequest: a standard trait or resource class does not exist
    :raises UnusableTable: there is no table to remember declarations in
    """
    declared.check_table(connection)
    world = reading.load(connection, asked.trees, asked.terms, cache=cache)
    parts = [part for tree in asked.trees for part in tree]
    traits = asked.traits.union(*(part.traits for part in parts))
    classes = asked.resource_classes.union(*(part.inventories for part in parts))
    for listed, existing, complaint in (
        (asked.traits, world.trait_names, UNKNOWN_TRAIT),
        (asked.resource_classes, world.class_names, UNKNOWN_CLASS),
    ):
        refuse_unknown(_standard(listed), existing, complaint)
    return Outcome(
        planning.plan(asked.trees, world, asked.terms),
        sorted(traits - set(_standard(traits)) - set(world.trait_names)),
        sorted(classes - set(_standard(classes)) - set(world.class_names)),
        naming.foresee(connection, asked),
    )


def _standard(names: Collection[str]) -> list[str]:
    return sorted(name for name in names if not is_custom(name))


def apply(ledger: Ledger, asked: Declaration, foreseen: Outcome) -> Outcome:
    """Write what differs, and return what became of each tree.

    :param foreseen: what ``foresee`` returned for it
    :raises DatabaseUnavailable: the database is in trouble; some trees may be done
    """
    if foreseen.traits or foreseen.resource_classes:
        ledger.write(lambda tx: _ensure_names(tx, foreseen))
    if foreseen.names:
        ledger.write(lambda tx: naming.store(tx, asked))
    plans = list(foreseen.plans)
    terms = dataclasses.replace(asked.terms, make_uuid=lambda: str(uuid.uuid4()))
    for numbers in _batches(plans):
        jobs: list[Job] = [
            asked.trees[number] if number < len(asked.trees) else plans[number].uuid
            for number in numbers
        ]
        groups = [plans[number].group for number in numbers]
        written = _write(ledger, jobs, groups, terms)
        for number, each in zip(numbers, written, strict=True):
            plans[number] = each
    return dataclasses.replace(foreseen, plans=plans)


def _batches(plans: Sequence[TreePlan]) -> Iterator[list[int]]:
    """Yield the numbers of plans to be written in one transaction: whole groups."""
    groups: dict[int, list[int]] = {}
    for number, each in enumerate(plans):
        groups.setdefault(each.group, []).append(number)
    batch: list[int] = []
    for numbers in groups.values():
        if not any(plans[number].writes for number in numbers):
            continue
        if batch and len(batch) + len(numbers) > TREES:
            yield batch
            batch = []
        batch += numbers
    if batch:
        yield batch


def _ensure_names(tx: Transaction, foreseen: Outcome) -> None:
    trait.ensure(tx, foreseen.traits)
    resource_class.ensure(tx, foreseen.resource_classes)


def _write(
    ledger: Ledger, jobs: Sequence[Job], groups: Sequence[int], terms: Terms
) -> list[TreePlan]:
    """Write trees in one transaction; if one prevents that, group by group.

    :param groups: the group of each tree; those of a group follow each other
    """
    try:
        return ledger.write(lambda tx: _write_once(tx, jobs, terms), attempts=ATTEMPTS)
    except errors.Unavailable:
        raise
    except errors.ServiceError as exc:
        if len(set(groups)) > 1:
            pairs = list(zip(jobs, groups, strict=True))
            return [
                plan
                for number, some in itertools.groupby(pairs, itemgetter(1))
                for job in [[job for job, _ in some]]
                for plan in _write(ledger, job, [number] * len(job), terms)
            ]
        return [
            TreePlan(
                Result.REFUSED,
                job if isinstance(job, str) else job[0].name,
                NO_UUID,
                reason=str(exc),
            )
            for job in jobs
        ]


def _write_once(tx: Transaction, jobs: Sequence[Job], terms: Terms) -> list[TreePlan]:
    declared.check_table(tx.connection)
    trees = [job for job in jobs if not isinstance(job, str)]
    roots = [job for job in jobs if isinstance(job, str)]
    mentioned = reading.list_members(tx.connection, trees)
    locked = reparenting.lock_trees(tx, [*mentioned, *roots])
    mentioned_only = dataclasses.replace(terms, complete=False)
    world = reading.load(tx.connection, trees, mentioned_only, further=roots)
    if not world.by_uuid.keys() <= locked.keys():
        raise LostRaceError("a tree appeared before it could be locked")
    planned = planning.plan(trees, world, mentioned_only, roots)
    of_trees, of_roots = iter(planned[: len(trees)]), iter(planned[len(trees) :])
    plans = [next(of_roots if isinstance(job, str) else of_trees) for job in jobs]
    _carry_out(tx, plans, locked)
    return plans


def _carry_out(
    tx: Transaction,
    plans: Iterable[TreePlan],
    locked: Mapping[str, ResourceProvider],
) -> None:
    """Write trees, with one set of statements for all of them."""
    plans = list(plans)
    goals = [goal for each in plans for goal in each.goals]
    gone = [locked[provider.uuid] for each in plans for provider in each.removed]
    there = _place(tx, goals, gone, locked)
    inventories, traits, aggregates = (
        {
            there[goal.uuid]: getattr(goal, kind)
            for goal in goals
            if getattr(goal, kind) is not None
        }
        for kind in ("inventories", "traits", "aggregates")
    )
    entries = [
        *inventory.replace_of_many(tx, inventories),
        *trait.replace_of_many(tx, traits),
        *aggregate.replace_of_many(tx, aggregates),
    ]
    changed = [there[goal.uuid] for goal in goals if goal.provider and goal.has_parts]
    resource_provider.record_change(tx, changed, entries, bump=True)
    creation.delete_many(tx, gone)
    remembered: dict[declared.Key, Declared] = {}
    for each in plans:
        remembered.update(each.declared)
    declared.store(tx, remembered)


def _place(
    tx: Transaction,
    goals: Sequence[Goal],
    gone: Iterable[ResourceProvider],
    locked: Mapping[str, ResourceProvider],
) -> Mapping[str, ResourceProvider]:
    """Create providers, rename them and move them; return all by UUID.

    :param gone: providers to delete later, when nothing is below them any more
    """
    renamed = [goal for goal in goals if goal.is_renamed]
    new = [
        creation.New(goal.uuid, goal.name, goal.parent_uuid)
        for goal in goals
        if goal.provider is None
    ]
    names = {goal.name for goal in renamed} | {each.name for each in new}
    holders = (*gone, *(locked[goal.uuid] for goal in renamed))
    creation.vacate(tx, [each for each in holders if each.name in names])
    there = creation.create_many(tx, new, locked)
    for goal in renamed:
        creation.rename(tx, locked[goal.uuid], goal.name)
    moved = [goal for goal in goals if goal.is_moved]
    for goal in moved:
        reparenting.move(
            tx, locked[goal.uuid], goal.parent_uuid, allow_reparenting=True
        )
    if moved:
        # The moved providers have other roots now.
        there = {**there, **resource_provider.lock_by_uuids(tx, list(there))}
    return there
