"""Counts of what a search did."""

from collections import Counter
from collections.abc import Iterable


class Tally:
    """The work of a search.

    ``anchors`` is how many trees were searched. ``proofs`` counts the checks whether a
    partial assignment leaves enough for the rest. ``dead_ends`` counts, by suffix of
    the group, where everything that was tried failed. ``pauses`` is how many times an
    anchor spent its share, and ``exhausted`` says whether the budget ended the search
    before it was complete.
    """

    def __init__(self) -> None:
        self.anchors = 0
        self.picks = 0
        self.proofs = 0
        self.dead_ends: Counter[str] = Counter()
        self.pauses = 0
        self.exhausted = False

    def fail(self, suffixes: Iterable[str]) -> None:
        """Count a dead end at the groups of some suffixes."""
        self.dead_ends.update(suffixes)

    def hardest(self, most: int) -> list[str]:
        """Return the suffixes of the groups with the most dead ends, sorted."""
        return sorted(suffix for suffix, _ in self.dead_ends.most_common(most))
