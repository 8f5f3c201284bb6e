"""What projects use, kept between requests.

It is kept in shares, one for each tree in which a project uses something, so that only
the shares of trees that have changed are read again.
"""

import collections
import dataclasses
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import sqlalchemy as sa

from placement.db import models
from placement.forest.cache import ForestCache
from placement.forest.kept import Kept
from placement.forest.reading import MOST_LISTED_ROOTS
from placement.model.consumer import UNKNOWN_TYPE
from placement.model.usage import Usage
from placement.objects import usage
from placement.objects.change_log import Seen

# How many accounts are kept, and how many allocations they have together: those of the
# owners that were asked about last.
MOST_OWNERS = 256
MOST_ALLOCATIONS = 100_000
# How many allocations may be read to bring an account up to date, even if it has few:
# that takes no longer than a request for few candidates. Otherwise, half as many as it
# has: to read one takes as long as to sum up two.
MOST_READ = 1000
# How many requests about an owner the database answers before an account is made, which
# takes longer; and how many after an account could not be made, followed or kept.
FIRST, AGAIN = 1, 20

# A type of consumers, and the id of a resource class.
Kind: TypeAlias = tuple[str, int]


class Project(NamedTuple):
    """A project, or a user in a project."""

    project_id: str
    user_id: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class TreeUsage:
    """What an owner uses of one tree.

    ``types`` are the types of the consumers, by id; ``size`` is the number of their
    allocations.
    """

    types: Mapping[int, str]
    amounts: Mapping[Kind, int]
    size: int


NOTHING = TreeUsage({}, {}, 0)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ProjectUsage:
    """What an owner uses, in all and of each tree. It never changes.

    ``ids`` are those of the project and the user; ``seen`` says at which moment, and
    ``origin`` from which reading of the database the forest came.
    ``shares`` are by id of the root. ``spread`` is in how many of them a consumer is,
    by its id; ``counts`` are numbers of consumers, by type.
    """

    ids: Mapping[str, int]
    seen: Seen
    origin: object
    shares: Mapping[int, TreeUsage]
    spread: Mapping[int, int]
    counts: Mapping[str, int]
    amounts: Mapping[Kind, int]
    size: int

    def replace(
        self, seen: Seen, root_ids: Iterable[int], fresh: Mapping[int, TreeUsage]
    ) -> "ProjectUsage":
        """Return the account with some shares replaced.

        :param root_ids: the roots of the trees whose shares are removed
        :param fresh: the shares to put in their place, by the ids of their roots
        """
        shares, spread, size = dict(self.shares), dict(self.spread), self.size
        counts = collections.Counter(self.counts)
        amounts = collections.Counter(self.amounts)
        for root_id in root_ids:
            share = shares.pop(root_id, NOTHING)
            size -= share.size
            amounts.subtract(share.amounts)
            for consumer, kind in share.types.items():
                spread[consumer] -= 1
                if not spread[consumer]:
                    del spread[consumer]
                    counts[kind] -= 1
        for root_id, share in fresh.items():
            shares[root_id] = share
            size += share.size
            amounts.update(share.amounts)
            for consumer, kind in share.types.items():
                counts[kind] += consumer not in spread
                spread[consumer] = spread.get(consumer, 0) + 1
        return ProjectUsage(
            self.ids, seen, self.origin, shares, spread, +counts, +amounts, size
        )

    def is_sound(self, classes: Mapping[int, str]) -> bool:
        """Return whether all parts fit together; they may not after unrecorded writes.

        :param classes: the names of resource classes, by id
        """
        return all(
            kind in self.counts and class_id in classes
            for kind, class_id in self.amounts
        )

    def usages(self, classes: Mapping[int, str]) -> dict[str, Usage]:
        """Return the usages by consumer type.

        :param classes: the names of resource classes, by id
        """
        amounts: dict[str, dict[str, int]] = {kind: {} for kind in sorted(self.counts)}
        for kind, class_id in sorted(self.amounts):
            amounts[kind][classes[class_id]] = self.amounts[kind, class_id]
        return {kind: Usage(self.counts[kind], each) for kind, each in amounts.items()}


class ProjectUsages:
    """The accounts of the owners that were asked about last.

    Threads share them: private methods require the lock.

    :param cache: keeps the forest; None if it is not kept, and so are no usages
    """

    def __init__(self, cache: ForestCache | None) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        # The longest unused is first.
        self._kept: collections.OrderedDict[Project, ProjectUsage] = (
            collections.OrderedDict()
        )
        self._size = 0
        # How many requests the database will answer, for owners without an account.
        self._waits: collections.OrderedDict[Project, int] = collections.OrderedDict()

    def __len__(self) -> int:
        """Return how many accounts there are."""
        return len(self._kept)

    def by_consumer_type(
        self, connection: sa.Connection, project_id: str, user_id: str | None = None
    ) -> dict[str, Usage]:
        """Return the usages of a project, or of a user in it, by consumer type.

        Consumers without a type are under ``UNKNOWN_TYPE``.
        """
        kept = self._load(connection, Project(project_id, user_id))
        if kept is not None:
            return kept
        return usage.by_consumer_type(connection, project_id, user_id)

    def _load(
        self, connection: sa.Connection, owner: Project
    ) -> dict[str, Usage] | None:
        """Return what an owner uses, by consumer type; None if that is not kept."""
        if self._cache is None:
            return None
        with self._lock:
            base = self._kept.get(owner)
            if base is None and self._must_wait(owner):
                return None
        current = self._cache.load(connection)
        if (
            base
            and current
            and base.origin is current.origin
            and current.seen.is_older(base.seen)
        ):
            # Other threads are ahead of this one.
            return None
        fresh = _renew(connection, owner, base, current) if current else None
        with self._lock:
            self._replace(owner, base, fresh)
        if current is None or fresh is None:
            return None
        return fresh.usages(current.forest.vocabulary.classes)

    def _must_wait(self, owner: Project) -> bool:
        left = self._waits.pop(owner, FIRST)
        self._wait(owner, max(left - 1, 0))
        return left > 0

    def _wait(self, owner: Project, requests: int) -> None:
        self._waits[owner] = requests
        if len(self._waits) > MOST_OWNERS:
            self._waits.popitem(last=False)

    def _replace(
        self, owner: Project, base: ProjectUsage | None, fresh: ProjectUsage | None
    ) -> None:
        """Keep an account instead of another one, unless another thread was faster."""
        if self._kept.get(owner) is not base:
            return
        if base:
            del self._kept[owner]
            self._size -= base.size
        if fresh is None or fresh.size > MOST_ALLOCATIONS:
            self._wait(owner, AGAIN)
            return
        self._waits.pop(owner, None)
        self._kept[owner] = fresh
        self._size += fresh.size
        while len(self._kept) > MOST_OWNERS or self._size > MOST_ALLOCATIONS:
            unused, account = self._kept.popitem(last=False)
            self._size -= account.size
            self._wait(unused, AGAIN)


_provider, _consumer = models.ResourceProvider, models.Consumer
_allocation, _type = models.Allocation, models.ConsumerType
# The allocations of trees, those of other owners included: few of them are read, so the
# database must not first look for all that the owner has.
_listed = (
    sa.select(
        _provider.root_provider_id.label("root_id"),
        _allocation.consumer_id,
        _allocation.resource_class_id,
        _allocation.used,
    )
    .join(_allocation, _allocation.resource_provider_id == _provider.id)
    .where(_provider.root_provider_id.in_(sa.bindparam("root_ids", expanding=True)))
    .limit(sa.bindparam("most"))
    .subquery()
)


def _of_all(by_user: bool) -> sa.Select[*tuple[Any, ...]]:
    """Return the query for the allocations of an owner."""
    return (
        sa.select(
            _provider.root_provider_id,
            _consumer.id,
            _type.name,
            _allocation.resource_class_id,
            _allocation.used,
        )
        .select_from(_consumer)
        .join(_allocation, _allocation.consumer_id == _consumer.uuid)
        .outerjoin(_provider, _provider.id == _allocation.resource_provider_id)
        .outerjoin(_type, _type.id == _consumer.consumer_type_id)
        .where(usage.owned(by_user))
        .limit(sa.bindparam("most"))
    )


def _of_some(by_user: bool) -> sa.Select[*tuple[Any, ...]]:
    """Return the query for the allocations of trees, without consumers of others."""
    own = (_consumer.uuid == _listed.c.consumer_id) & usage.owned(by_user)
    return (
        sa.select(
            _listed.c.root_id,
            _consumer.id,
            _type.name,
            _listed.c.resource_class_id,
            _listed.c.used,
        )
        .select_from(_listed)
        .outerjoin(_consumer, own)
        .outerjoin(_type, _type.id == _consumer.consumer_type_id)
    )


_OF_ALL = {by_user: _of_all(by_user) for by_user in (False, True)}
_OF_SOME = {by_user: _of_some(by_user) for by_user in (False, True)}


def _renew(
    connection: sa.Connection, owner: Project, base: ProjectUsage | None, current: Kept
) -> ProjectUsage | None:
    """Return an account as the transaction sees it; None if it cannot be kept."""
    if base is None or base.origin is not current.origin:
        fresh = _read(connection, owner, current)
    elif base.seen is current.seen:
        return base
    else:
        fresh = _follow(connection, base, current)
    sound = fresh and fresh.is_sound(current.forest.vocabulary.classes)
    return fresh if sound else None


def _read(
    connection: sa.Connection, owner: Project, current: Kept
) -> ProjectUsage | None:
    """Return the account of an owner; None if it is too large, or there is no owner."""
    ids = usage.find_owner(connection, *owner)
    if ids is None:
        return None
    parameters = {**ids, "most": MOST_ALLOCATIONS + 1}
    rows = connection.execute(_OF_ALL["user" in ids], parameters).all()
    if len(rows) > MOST_ALLOCATIONS:
        return None
    shares = _shares_of(rows)
    # Changes of providers without a tree are not recorded.
    if None in shares or not all(map(current.forest.tree, shares)):
        return None
    nothing = ProjectUsage(ids, current.seen, current.origin, {}, {}, {}, {}, 0)
    return nothing.replace(current.seen, (), shares)


def _follow(
    connection: sa.Connection, base: ProjectUsage, current: Kept
) -> ProjectUsage | None:
    """Return an account with the changes since; None if they are too many."""
    root_ids = base.seen.changed_roots(current.seen, MOST_LISTED_ROOTS)
    if root_ids is None:
        return None
    most = max(MOST_READ, base.size // 2)
    rows: Sequence[Any] = ()
    if root_ids:
        query = _OF_SOME["user" in base.ids]
        parameters = {**base.ids, "root_ids": sorted(root_ids), "most": most + 1}
        rows = connection.execute(query, parameters).all()
    if len(rows) > most:
        return None
    own = [row for row in rows if row.id is not None]
    return base.replace(current.seen, root_ids, _shares_of(own))


def _shares_of(rows: Iterable[Any]) -> dict[int, TreeUsage]:
    """Return shares by id of the root."""
    types: dict[int, dict[int, str]] = {}
    amounts: dict[int, dict[Kind, int]] = {}
    sizes: dict[int, int] = {}
    for root_id, consumer_id, name, class_id, used in rows:
        kind = name or UNKNOWN_TYPE
        types.setdefault(root_id, {})[consumer_id] = kind
        sums = amounts.setdefault(root_id, {})
        sums[kind, class_id] = sums.get((kind, class_id), 0) + used
        sizes[root_id] = sizes.get(root_id, 0) + 1
    return {
        root_id: TreeUsage(types[root_id], amounts[root_id], size)
        for root_id, size in sizes.items()
    }
