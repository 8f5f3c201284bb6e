"""The reports of the agent about its passes: metrics, and its health."""

import time
from collections.abc import Callable

from placement_foundation.observing import telemetry
from placement_nodes import measure
from placement_nodes.sync.agent import Tally

# The most intervals without an answer.
PATIENCE = 3


class Report:
    """The outcome of the last passes, and when each service answered.

    :param interval: seconds between two passes
    """

    def __init__(
        self, interval: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = interval
        self._clock = clock
        self._answered = dict.fromkeys(("nodes", "placement"), clock())
        # The nodes were read, and are being worked on.
        self._works = False

    def heard(self, service: str) -> None:
        """Note an answer: of ``nodes``, or of ``placement``."""
        self._answered[service] = self._clock()
        if service == "nodes":
            self._works = True

    def skipped(self) -> None:
        """Note a pass in which the nodes could not be read."""
        self._works = False
        telemetry.record(measure.PASSES, outcome="skipped")

    def made(self, tally: Tally) -> None:
        """Note a pass."""
        self._works = False
        # The time without a reading counts from here.
        self._answered["nodes"] = self._clock()
        outcome = "partial" if tally.failed else "complete"
        telemetry.record(measure.PASSES, outcome=outcome)
        for name in ("synchronised", "left_out", "failed", "unanswered"):
            telemetry.record(measure.NODES, len(getattr(tally, name)), outcome=name)
        for name in ("changed", "removed"):
            telemetry.record(measure.CHANGES, len(getattr(tally, name)), kind=name)
        telemetry.record(measure.REMOVALS_HELD, len(tally.held))
        if not tally.failed:
            telemetry.record(measure.LAST_PASS, time.time())

    def reads_nodes(self) -> bool:
        """Return whether the nodes could be read a short time ago.

        The list is read only at the beginning of a pass, which may take long.
        """
        return self._works or self._is_recent("nodes")

    def reaches_placement(self) -> bool:
        """Return whether Placement answered a short time ago."""
        return self._is_recent("placement")

    def _is_recent(self, service: str) -> bool:
        silence = self._clock() - self._answered[service]
        return silence <= PATIENCE * self._interval + 60
