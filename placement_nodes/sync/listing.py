"""Nodes as a table: those that have some traits, and not others."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

COLUMNS = ("uuid", "name", "resource_class", "provision_state", "traits")


def rows(
    nodes: Iterable[Mapping[str, Any]],
    every: Collection[str],
    some: Collection[str],
    none: Collection[str],
) -> Iterator[tuple[str, ...]]:
    """Yield the columns of nodes, by their traits.

    They have all of ``every``, at least one of ``some`` unless it is empty, and none of
    ``none``.
    """
    for node in nodes:
        traits = set(node.get("traits") or ())
        if (
            traits.issuperset(every)
            and (not some or traits.intersection(some))
            and traits.isdisjoint(none)
        ):
            shown = {**node, "traits": " ".join(sorted(traits))}
            yield tuple(str(shown.get(name) or "") for name in COLUMNS)
