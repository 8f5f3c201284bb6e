"""What a search did, counted."""

from collections import Counter
from collections.abc import Callable, Iterable


class Tally:
    """The work of a search, and the reasons for which it refused providers.

    ``anchors`` is how many trees were looked at.
    ``refusals`` are by name of the rule; ``proofs`` counts how often it was asked
    whether a partial assignment leaves enough for the rest. ``dead_ends`` counts, by
    suffix of the group, where all that was tried failed. ``pauses`` is how often an
    anchor spent its share, and ``exhausted`` tells whether the search was ended by its
    budget before everything was looked at.
    """

    def __init__(self) -> None:
        self.anchors = 0
        self.refusals: Counter[str] = Counter()
        self.picks = 0
        self.proofs = 0
        self.dead_ends: Counter[str] = Counter()
        self.pauses = 0
        self.exhausted = False

    def refuse(self, rule: Callable[..., object], times: int = 1) -> None:
        """Count the refusals of a rule."""
        self.refusals[rule.__name__] += times

    def fail(self, suffixes: Iterable[str]) -> None:
        """Count a dead end at the groups of some suffixes."""
        self.dead_ends.update(suffixes)

    def hardest(self, most: int) -> list[str]:
        """Return the suffixes of the groups with most dead ends, sorted."""
        return sorted(suffix for suffix, _ in self.dead_ends.most_common(most))
