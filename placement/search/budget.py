"""How much work a search may do: counted in picks, so that no clock decides."""

import dataclasses

# Picks that each anchor has for each slot beside the budget: enough for a walk that
# goes straight to an answer, and in proportion to the data and the request.
FREE_PICKS = 4
# How many times as large a share is when hard anchors are looked at again.
GROWTH = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """How many picks a search may make.

    ``per_anchor`` is how many in a row at one anchor without an answer, before others
    have their turn; ``total`` how many at all anchors together.
    """

    per_anchor: int = 2_000
    total: int = 400_000


class Budget:
    """What is left of the limits of one search.

    ``turn`` is what is left to the anchor whose turn it is. All its work is taken from
    there, and it pauses when that has become negative.
    """

    def __init__(self, limits: Limits) -> None:
        self.turn = 0
        self._allowed = 0
        self._free = 0
        self._share = limits.per_anchor
        self._left = limits.total

    @property
    def is_used_up(self) -> bool:
        """Whether there is nothing left to be shared out."""
        return self._left <= 0

    def begin_turn(self, free: int) -> bool:
        """Give an anchor its share, beside what it has for nothing.

        :returns: whether that is anything at all
        """
        self._free = free
        self._allowed = self.turn = free + max(0, min(self._share, self._left))
        return self._allowed > 0

    def end_turn(self, answer: int) -> int:
        """Take from what is left in all what a turn has spent, and its answer.

        :returns: what the anchor still has for nothing
        """
        spent = self._allowed - self.turn + answer
        self._left -= max(0, spent - self._free)
        return max(0, self._free - spent)

    def enlarge_share(self) -> None:
        """Give hard anchors more for their next turn."""
        self._share *= GROWTH
