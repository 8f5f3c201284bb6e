"""The anchors of a search take turns, within its budget."""

from collections.abc import Iterable, Iterator

from placement.search.search import Picks, Search


class Anchor:
    """The answers of one anchor, and where the search for them has paused.

    :param results: yields the picks of each answer, and None to pause
    """

    __slots__ = ("_budget", "_free", "_results", "is_exhausted")

    def __init__(self, results: Iterator[Picks | None], search: Search) -> None:
        self._results = results
        self._budget = search.budget
        self._free = search.free_picks
        self.is_exhausted = False

    def take_turn(self) -> Picks | None:
        """Return the next answer; None if there is none, or none within the share.

        The picks of an answer are counted in addition to those that led to it.
        """
        budget = self._budget
        if not budget.begin_turn(self._free):
            return None
        try:
            picks = next(self._results)
        except StopIteration:
            picks = None
            self.is_exhausted = True
        self._free = budget.end_turn(len(picks or ()))
        return picks


def take_turns(
    anchors: Iterable[Anchor | Picks], search: Search, *, depth_first: bool
) -> Iterator[Picks]:
    """Yield the answers of anchors in turn, those of hard anchors at the end.

    An anchor is hard if it spends its share without an answer. It goes on with a larger
    share when no other has answers left. No anchor begins before its turn has come.

    :param anchors: the anchors; an answer stands for an anchor that has no other
    """
    while True:
        hard: list[Anchor] = []
        yield from _rounds(anchors, hard, search, depth_first)
        search.tally.pauses += len(hard)
        if not hard or search.budget.is_used_up:
            search.tally.exhausted = bool(hard)
            return
        search.budget.enlarge_share()
        anchors = hard


def _rounds(
    anchors: Iterable[Anchor | Picks],
    hard: list[Anchor],
    search: Search,
    depth_first: bool,
) -> Iterator[Picks]:
    """Yield answers until each anchor has no more of them, or is hard.

    :param hard: receives the hard anchors
    """
    forgotten = Anchor(iter(()), search)
    while True:
        rest: list[Anchor] = []
        for anchor in anchors:
            if isinstance(anchor, tuple):
                # Its free picks are enough for a single answer.
                yield anchor
                continue
            while (picks := anchor.take_turn()) is not None:
                yield picks
                if not depth_first:
                    rest.append(anchor)
                    break
            else:
                if not anchor.is_exhausted:
                    # With a budget that is used up the anchor never goes on: it would
                    # keep its domains in memory until the last anchor is done.
                    hard.append(forgotten if search.budget.is_used_up else anchor)
        if not rest:
            return
        anchors = rest
