"""The call that a handler of this service gets."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from placement import conf, errors
from placement.forest import cache, reading
from placement.forest.cache import CachedForest, Checkpoint
from placement.forest.forest import Forest
from placement.model.resource_provider import UNKNOWN_PROVIDER, ResourceProvider
from placement.model.tree import Provider, Tree
from placement.objects import resource_provider
from placement.objects.journal.keeping import Keeper
from placement.objects.ledger import Ledger
from placement.objects.transaction import Transaction
from placement.questions import candidates
from placement.questions.candidates import CandidateOrder
from placement_foundation.gathering import Gathering
from placement_foundation.http import operation
from placement_foundation.http.operation import Connection
from placement_foundation.http.thread_limit import ThreadLimit

S = TypeVar("S")
T = TypeVar("T")

# Explanations of placements that do not fit take at most one of so many parts of the
# threads, beside heavy requests. Each waits so many seconds at most for its turn.
EXPLAINING_PART = 4
EXPLAINING_PATIENCE = 0.2


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """The values that all requests to this service share.

    ``candidates`` is the order of allocation candidates. ``forest_cache`` is None if
    the forest is not kept between requests, and ``journal`` is None if changes are not
    recorded. ``placings`` gathers requests for placements that arrive at the same time.
    """

    settings: conf.Settings
    candidates: CandidateOrder
    forest_cache: CachedForest | None
    placings: Gathering[Any, Any]
    journal: Keeper | None = None
    explaining: ThreadLimit = dataclasses.field(
        default_factory=lambda: ThreadLimit(EXPLAINING_PART, EXPLAINING_PATIENCE)
    )


def context_of(
    settings: conf.Settings,
    forest_cache: CachedForest | None = None,
    journal: Keeper | None = None,
) -> Context:
    """Return the context of a service. Without a cache, no forest is kept."""
    order = candidates.order_of(settings)
    return Context(settings, order, forest_cache, Gathering(), journal)


class Call(operation.Call[S, Context]):
    """A request to this service, checked and parsed."""

    __slots__ = ()

    @property
    def ledger(self) -> Ledger:
        """The ledger that the request writes to."""
        return Ledger(self.database, self.context.journal, self.origin)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` in a transaction until it commits."""
        return self.ledger.write(work)

    def forest(self) -> Forest:
        """Return the forest at this moment: the kept one, or one read for this call."""
        return self.database.read(self.forest_of)

    def forest_of(self, connection: Connection) -> Forest:
        """Return the forest at the moment of a transaction; see ``forest``."""
        return cache.load(connection, self.context.forest_cache)

    def checkpoint_of(self, connection: Connection) -> Checkpoint | None:
        """Return the kept forest and its position; None if no forest is kept."""
        forest_cache = self.context.forest_cache
        return forest_cache.load(connection) if forest_cache else None

    def lock_provider(self, tx: Transaction) -> ResourceProvider:
        """Return the provider that the path names, locked until the transaction ends.

        :raises NotFound: there is no such provider
        """
        return resource_provider.lock(tx, self.load(tx.connection))

    def tree(self, named: Mapping[str, str]) -> Tree | None:
        """Return the tree of a provider at this moment; None if there is none.

        It is read: that takes one query, and to bring the kept forest up to date takes
        two in a transaction.

        :param named: the ``uuid`` or the ``name`` of the provider
        """
        return self.fetch(functools.partial(reading.load_around, named=named))

    def named_provider(self) -> Provider:
        """Return the provider whose ``uuid`` is in the path.

        :raises NotFound: there is no such provider
        """
        uuid = self.path["uuid"]
        tree = self.tree({"uuid": uuid})
        for member in tree.members if tree else ():
            if member.uuid == uuid:
                return member
        raise errors.NotFound(UNKNOWN_PROVIDER.format(uuid=uuid))
