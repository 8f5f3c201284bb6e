"""What projects use, kept between requests by tree and followed as the forest is."""

import collections
import dataclasses
import threading
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import sqlalchemy as sa

from placement.forest.cache import CachedForest
from placement.forest.checkpoint import Checkpoint
from placement.forest.reading import MOST_LISTED_ROOTS
from placement.model.usage import Usage
from placement.objects import usage
from placement.objects.change_log import LogPosition
from placement.objects.usage import Used

# How many owners are kept, and how many allocations all of them have.
MOST_OWNERS, MOST_ALLOCATIONS = 256, 100_000
# How many allocations may be read to follow changes, even for an owner that has few.
MOST_READ = 1000
# After how many seconds all are read again: nothing else notices consumers that were
# given to another project, user or type by SQL.
READ_AGAIN = 300

K = TypeVar("K", bound=Hashable)

# A project, and maybe a user in it.
Asked: TypeAlias = tuple[str, str | None]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ProjectUsage:
    """What an owner uses at a moment of a forest. It never changes.

    ``trees`` are its allocations by id of the root, ``allocations`` numbers of them by
    type and consumer, ``consumers`` numbers of these by type, and ``amounts`` sums by
    type and resource class. The numbers are kept without those that are zero.
    """

    ids: Mapping[str, int]
    origin: object
    read_at: float
    position: LogPosition
    trees: Mapping[int | None, Sequence[Used]]
    allocations: Mapping[tuple[str, int], int]
    consumers: Mapping[str, int]
    amounts: Mapping[tuple[str, int], int]
    size: int

    def replace(
        self, position: LogPosition, root_ids: Iterable[int], used: Sequence[Used]
    ) -> "ProjectUsage":
        """Return what is used at another moment, given what there is of some trees."""
        trees = dict(self.trees)
        gone = [each for root_id in root_ids for each in trees.pop(root_id, ())]
        there = collections.defaultdict[int | None, list[Used]](list)
        for each in used:
            there[each.root_id].append(each)
        allocations = dict(self.allocations)
        consumers, amounts = dict(self.consumers), dict(self.amounts)
        for sign, changed in ((-1, gone), (1, used)):
            for _, kind, consumer_id, class_id, amount in changed:
                consumer = kind, consumer_id
                was_there = consumer in allocations
                _add(allocations, consumer, sign)
                _add(consumers, kind, (consumer in allocations) - was_there)
                _add(amounts, (kind, class_id), sign * amount)
        return dataclasses.replace(
            self,
            position=position,
            trees={**trees, **there},
            allocations=allocations,
            consumers=consumers,
            amounts=amounts,
            size=self.size - len(gone) + len(used),
        )

    def usages(self, classes: Mapping[int, str]) -> dict[str, Usage]:
        """Return the usages by consumer type, given the names of classes by id."""
        amounts: dict[str, dict[str, int]] = {kind: {} for kind in self.consumers}
        for kind, class_id in sorted(self.amounts):
            if class_id in classes:
                amounts[kind][classes[class_id]] = self.amounts[kind, class_id]
        return {
            kind: Usage(self.consumers[kind], amounts[kind])
            for kind in sorted(self.consumers)
        }


def _add(numbers: dict[K, int], key: K, number: int) -> None:
    """Add to a number, and forget it if it becomes zero."""
    total = numbers.get(key, 0) + number
    if total:
        numbers[key] = total
    else:
        numbers.pop(key, None)


class ProjectUsages:
    """What the owners use that were asked about last.

    :param cache: keeps the forest; None if it is not kept, and so are no usages
    """

    def __init__(self, cache: CachedForest | None) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        # The longest unused is first. None is for the first request about an owner: to
        # read all allocations takes twice as long as to let the database sum them up.
        self.kept: dict[Asked, ProjectUsage | None] = {}

    def by_consumer_type(
        self, connection: sa.Connection, project_id: str, user_id: str | None = None
    ) -> dict[str, Usage]:
        """Return the usages of a project, or of a user in it, by consumer type.

        Consumers without a type are under ``UNKNOWN_TYPE``.
        """
        owner = (project_id, user_id)
        is_first = owner not in self.kept
        current = None if is_first or not self._cache else self._cache.load(connection)
        fresh = None
        if current:
            fresh = _renew(connection, owner, self.kept.get(owner), current)
        with self._lock:
            self.kept.pop(owner, None)
            if fresh or is_first:
                self.kept[owner] = fresh
            while len(self.kept) > MOST_OWNERS or _size(self.kept) > MOST_ALLOCATIONS:
                del self.kept[next(iter(self.kept))]
        if current and fresh:
            return fresh.usages(current.forest.vocabulary.classes)
        return usage.by_consumer_type(connection, *owner)


def _size(kept: Mapping[Asked, ProjectUsage | None]) -> int:
    return sum(each.size for each in kept.values() if each)


def _renew(
    connection: sa.Connection,
    owner: Asked,
    base: ProjectUsage | None,
    current: Checkpoint,
) -> ProjectUsage | None:
    """Return what an owner uses; None if it is unknown, or if that is much to read."""
    now, position, roots = time.monotonic(), current.position, None
    if base and base.origin is current.origin and now < base.read_at + READ_AGAIN:
        changed = base.position.changed(base.position.differing(position))
        roots = changed.roots
        most = max(MOST_READ, base.size // 2)
        if changed.shards or len(roots) > MOST_LISTED_ROOTS:
            return None
        if not roots:
            return base
    else:
        ids = usage.find_owner(connection, *owner)
        if ids is None:
            return None
        base = ProjectUsage(ids, current.origin, now, position, {}, {}, {}, {}, 0)
        most = MOST_ALLOCATIONS
    found = usage.load_allocations(connection, base.ids, roots, most)
    # Changes of providers without a tree are not recorded.
    if found is None or any(each.root_id is None for each in found):
        return None
    return base.replace(position, roots or (), found)
