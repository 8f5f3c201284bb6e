"""What writes of this process have made of trees, which need not be read again."""

import dataclasses
import threading
from collections.abc import Mapping
from typing import NamedTuple

from placement.forest.forest import Forest
from placement.model.allocation import Place
from placement.model.inventory import InventoryUsage
from placement.model.tree import Provider, Tree
from placement.objects.placement import ChangedProviders
from placement.objects.resource_provider import Locked

# Of how many writes that is known, and of how many providers of each at most: a large
# one is seldom followed tree by tree.
MOST = 100
MOST_PROVIDERS = 100


class _OwnChange(NamedTuple):
    """A tree as it was when a write began, and as it was when that had ended."""

    before: Tree
    after: Tree


class OwnChanges:
    """The trees that the last writes of this process have changed.

    The log of changes says by which writes a tree has changed since a moment. If that
    was one of these alone, the tree is known.
    """

    def __init__(self) -> None:
        self._known: dict[str, Mapping[int, _OwnChange]] = {}
        self._adding = threading.Lock()

    def add(self, forest: Forest, change: ChangedProviders) -> None:
        """Add a write that has ended.

        :param forest: what its claims were chosen in
        """
        if len(change.providers) > MOST_PROVIDERS:
            return
        changed = _after(forest, change)
        with self._adding:
            self._known[change.token] = changed
            while len(self._known) > MOST:
                del self._known[next(iter(self._known))]

    def find(self, tokens: Mapping[int, str], forest: Forest) -> dict[int, Tree]:
        """Return the trees that are known, by the ids of their roots.

        :param tokens: by which write each tree has changed since the forest was as the
            database
        """
        found = {}
        for root_id, token in tokens.items():
            known = self._known.get(token, {}).get(root_id)
            if known and known.before is forest.tree(root_id):
                found[root_id] = known.after
        return found


def _after(forest: Forest, change: ChangedProviders) -> dict[int, _OwnChange]:
    """Return the trees of the providers; nothing if one is not where it was."""
    changed: dict[int, _OwnChange] = {}
    for uuid, locked in change.providers.items():
        before = forest.tree(locked.root_id)
        if before is None or all(each.uuid != uuid for each in before.members):
            return {}
        after = changed[locked.root_id].after if locked.root_id in changed else before
        members = [
            _having(each, locked, change.inventories) if each.uuid == uuid else each
            for each in after.members
        ]
        changed[locked.root_id] = _OwnChange(
            before, Tree(tuple(members), before.aggregates)
        )
    return changed


def _having(
    provider: Provider, locked: Locked, inventories: Mapping[Place, InventoryUsage]
) -> Provider:
    """Return a provider as it is since it was locked."""
    return dataclasses.replace(
        provider,
        inventories={
            name: inventories[provider.uuid, name] for name in provider.inventories
        },
        generation=locked.generation,
        modified=locked.modified,
    )
