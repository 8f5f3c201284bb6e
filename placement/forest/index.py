"""An index of the trees of providers, by UUID or by name."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

# In how many parts the keys are kept, so that a change copies only a few.
PARTS = 1024

# A key of a provider, and the id of the root of its tree.
Entry: TypeAlias = tuple[str, int]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Index:
    """The ids of the roots of trees, by a key that each provider has. It never changes.

    The next one is made from it and the entries that differ, and shares the rest.
    """

    parts: tuple[Mapping[str, int], ...]

    def find(self, key: str) -> int | None:
        """Return the id of the root of a provider's tree; None if there is none."""
        return self.parts[hash(key) % PARTS].get(key)

    def __iter__(self) -> Iterator[str]:
        for part in self.parts:
            yield from part

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def replace(self, gone: set[Entry], there: set[Entry]) -> "Index":
        """Return the index without some entries, and with others.

        :param gone: entries to remove, unless they are among the others
        """
        changed: dict[int, dict[str, int]] = {}
        for key, root_id in gone - there:
            part = _copy(self.parts, changed, key)
            if part.get(key) == root_id:
                del part[key]
        for key, root_id in there - gone:
            _copy(self.parts, changed, key)[key] = root_id
        if not changed:
            return self
        return Index(
            tuple(changed.get(which, part) for which, part in enumerate(self.parts))
        )


def _copy(
    parts: tuple[Mapping[str, int], ...], changed: dict[int, dict[str, int]], key: str
) -> dict[str, int]:
    """Return the copy of the part that a key belongs to, made once."""
    which = hash(key) % PARTS
    if which not in changed:
        changed[which] = dict(parts[which])
    return changed[which]


def index_of(entries: Iterable[Entry]) -> Index:
    """Return the index of some entries."""
    parts: list[dict[str, int]] = [{} for _ in range(PARTS)]
    for key, root_id in entries:
        parts[hash(key) % PARTS][key] = root_id
    return Index(tuple(parts))
