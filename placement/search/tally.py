"""What a search did, counted."""

from collections import Counter
from collections.abc import Callable


class Tally:
    """The work of a search, and the reasons for which it refused providers.

    ``refusals`` are by name of the rule; ``proofs`` counts how often it was asked
    whether a partial assignment leaves enough for the rest.
    """

    def __init__(self) -> None:
        self.refusals: Counter[str] = Counter()
        self.picks = 0
        self.proofs = 0

    def refuse(self, rule: Callable[..., object]) -> None:
        """Count a refusal."""
        self.refusals[rule.__name__] += 1
