"""Usages: sums of allocations, in units of their resource classes."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """The usage of some consumers: their number, and amounts by class name."""

    consumer_count: int
    amounts: Mapping[str, int]


def total(usages: Iterable[Usage]) -> Usage:
    """Return the sum of usages by different consumers."""
    count, amounts = 0, collections.Counter[str]()
    for usage in usages:
        count += usage.consumer_count
        amounts.update(usage.amounts)
    return Usage(count, dict(amounts))
