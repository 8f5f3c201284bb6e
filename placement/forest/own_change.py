"""What writes of this process have made of trees, which need not be read again."""

import dataclasses
import threading
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from placement.forest.forest import Forest
from placement.model.allocation import Claim
from placement.model.tree import Provider, Tree
from placement.objects.placement import Change

# Of how many writes that is known. Each is followed within a second.
MOST = 100


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

    def add(self, forest: Forest, change: Change, claims: Iterable[Claim]) -> None:
        """Add a write that has ended.

        :param forest: what the claims were chosen in
        :param claims: all that the write has added
        """
        changed = _after(forest, change, claims)
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


def _after(
    forest: Forest, change: Change, claims: Iterable[Claim]
) -> dict[int, _OwnChange]:
    taken: dict[str, dict[str, int]] = {uuid: {} for uuid in change.providers}
    for claim in claims:
        for uuid, resources in claim.amounts.items():
            for name, amount in resources.items():
                taken[uuid][name] = taken[uuid].get(name, 0) + amount
    by_root: dict[int, dict[str, Provider]] = {}
    for uuid, locked in change.providers.items():
        provider = forest.provider(uuid)
        if provider:
            after = dataclasses.replace(
                provider,
                inventories={
                    name: each.with_more(taken[uuid].get(name, 0))
                    for name, each in provider.inventories.items()
                },
                generation=locked.generation,
                modified=locked.modified,
            )
            by_root.setdefault(locked.root_id, {})[uuid] = after
    changed = {}
    for root_id, members in by_root.items():
        before = forest.tree(root_id)
        if before:
            staying = tuple(members.get(each.uuid, each) for each in before.members)
            changed[root_id] = _OwnChange(before, Tree(staying, before.aggregates))
    return changed
