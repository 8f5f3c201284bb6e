"""Nodes as a table: those that have some traits, and not others."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

COLUMNS = ("uuid", "name", "resource_class", "provision_state", "traits")


@dataclasses.dataclass(frozen=True, slots=True)
class TraitFilter:
    """Keeps nodes by their traits.

    They have all of ``every``, at least one of ``some`` unless it is empty, and none of
    ``none``.
    """

    every: frozenset[str] = frozenset()
    some: frozenset[str] = frozenset()
    none: frozenset[str] = frozenset()

    def keeps(self, traits: Iterable[str]) -> bool:
        """Return whether it keeps a node with these traits."""
        there = frozenset(traits)
        return (
            self.every <= there
            and (not self.some or bool(self.some & there))
            and not self.none & there
        )


def rows(
    nodes: Iterable[Mapping[str, Any]], wanted: TraitFilter
) -> Iterator[tuple[str, ...]]:
    """Yield the columns of the nodes that a filter keeps."""
    for node in nodes:
        traits = sorted(node.get("traits") or ())
        if wanted.keeps(traits):
            shown = {**node, "traits": " ".join(traits)}
            yield tuple(str(shown.get(name) or "") for name in COLUMNS)
