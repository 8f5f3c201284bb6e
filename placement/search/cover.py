"""The relaxation that looks only at collective traits: set cover.

Each slot contributes the bits of one choice; together the choices must have all missing
bits. This is solved exactly, by branching on the bit that the fewest choices have. It
may take too long, so the steps are counted.
"""

from collections import Counter
from collections.abc import Collection, Sequence

# With more slots, it is not tried.
MOST_SLOTS = 64


class _OutOfStepsError(Exception):
    """The cover was not decided within its steps."""


def is_possible(
    missing: int, choices: Sequence[Collection[int]], steps: int
) -> tuple[bool | None, int]:
    """Return whether one choice for each slot can have all missing bits together.

    :param choices: the bits that each choice contributes, for each slot
    :returns: the result, None if the steps do not suffice; and how many it took
    """
    if len(choices) > MOST_SLOTS:
        return None, 0
    cover = Cover(choices, steps)
    return cover.is_possible(missing), steps - cover.steps


class Cover:
    """One covering problem, and the search for its answer.

    :param choices: for each slot, the bits of each choice that it has
    :param steps: how many steps may be taken
    """

    def __init__(self, choices: Sequence[Collection[int]], steps: int) -> None:
        self.steps = steps
        # Slots with the same choices are interchangeable.
        kinds = Counter(_undominated(each) for each in choices)
        self._kinds = list(kinds)
        self._counts = tuple(kinds.values())
        self._failed: set[tuple[int, tuple[int, ...]]] = set()

    def is_possible(self, missing: int) -> bool | None:
        """Return whether all missing bits can be covered; None if the steps run out."""
        try:
            return self._cover(missing, self._counts)
        except _OutOfStepsError:
            return None

    def _cover(self, missing: int, counts: tuple[int, ...]) -> bool:
        """Return whether some slots of each kind can have the missing bits together."""
        if not missing:
            return True
        if (missing, counts) in self._failed:
            return False
        useful = [
            [bits & missing for bits in kind] if count else []
            for kind, count in zip(self._kinds, counts, strict=True)
        ]
        self._step(sum(map(len, useful)))
        if self._most(useful, counts) >= missing.bit_count():
            rarest = _rarest(missing, useful)
            for kind, choices in enumerate(useful):
                fewer = (*counts[:kind], counts[kind] - 1, *counts[kind + 1 :])
                # The choice with the most bits comes first.
                having = {bits for bits in choices if bits & rarest}
                for bits in sorted(having, key=int.bit_count, reverse=True):
                    if self._cover(missing & ~bits, fewer):
                        return True
        self._failed.add((missing, counts))
        return False

    def _step(self, choices: int) -> None:
        self.steps -= choices
        if self.steps < 0:
            raise _OutOfStepsError

    @staticmethod
    def _most(useful: Sequence[Sequence[int]], counts: Sequence[int]) -> int:
        """Return how many bits the slots can contribute at most, if none overlap."""
        return sum(
            sum(sorted(map(int.bit_count, choices), reverse=True)[:count])
            for choices, count in zip(useful, counts, strict=True)
        )


def _undominated(choices: Collection[int]) -> tuple[int, ...]:
    """Return the choices that are not contained in another choice."""
    most_first = sorted(set(choices), key=lambda bits: (-bits.bit_count(), bits))
    kept: list[int] = []
    for bits in most_first:
        if not any(bits & other == bits for other in kept):
            kept.append(bits)
    return tuple(kept)


def _rarest(missing: int, useful: Sequence[Sequence[int]]) -> int:
    """Return the missing bit that the fewest choices have."""
    counts = Counter[int]()
    for choices in useful:
        for bits in choices:
            while bits:
                least = bits & -bits
                counts[least] += 1
                bits ^= least
    left = missing
    best, fewest = 0, 0
    while left:
        least = left & -left
        left ^= least
        if not best or counts[least] < fewest:
            best, fewest = least, counts[least]
    return best
