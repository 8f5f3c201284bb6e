"""The work that a search may do: counted in picks, so that no clock decides."""

import dataclasses

# Free picks of each anchor for each slot, outside the budget: enough for a walk that
# goes straight to an answer, and in proportion to the data and the request.
FREE_PICKS = 4
# How many times as large a share is when hard anchors are looked at again.
GROWTH = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """How many picks a search may make.

    ``per_anchor`` is how many picks one anchor may make in a row without an answer,
    before others have their turn; ``total`` is for all anchors together.
    """

    per_anchor: int = 2_000
    total: int = 400_000


class Budget:
    """The remaining picks of one search.

    ``turn`` is what is left for the anchor whose turn it is. All its work is subtracted
    from this, and it pauses when the result is negative.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self.turn = 0
        self._allowed = 0
        self._free = 0
        self._share = limits.per_anchor
        self._left = limits.total

    @property
    def is_used_up(self) -> bool:
        """Whether no picks are left to share out."""
        return self._left == 0

    def begin_turn(self, free: int) -> bool:
        """Give an anchor its share, in addition to its free picks.

        :returns: whether the anchor has any picks
        """
        self._free = free
        self._allowed = self.turn = free + min(self._share, self._left)
        return self._allowed > 0

    def end_turn(self, answer: int) -> int:
        """Subtract what a turn has spent, and its answer, from what is left in all.

        :returns: how many free picks the anchor still has
        """
        spent = self._allowed - self.turn + answer
        if spent <= self._free:
            return self._free - spent
        self._left = max(0, self._left - (spent - self._free))
        return 0

    def enlarge_share(self) -> None:
        """Give hard anchors more for their next turn."""
        self._share *= GROWTH
