"""Values that take a while to compute, and so are computed only now and then."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """A value that is computed on demand, and then kept for a while.

    One thread computes it for all callers, and none waits for it beyond a limit.

    :param find_out: returns the current value; it must not raise
    :param lasts: how long the value is kept, in seconds
    :param patience: how long a caller waits for it, in seconds
    :param too_late: returns the value for a caller that has waited that long
    """

    def __init__(
        self,
        find_out: Callable[[], T],
        *,
        lasts: float,
        patience: float,
        too_late: Callable[[], T],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find_out = find_out
        self._lasts = lasts
        self._patience = patience
        self._too_late = too_late
        self._clock = clock
        self._lock = threading.Lock()
        self._finding: threading.Thread | None = None
        self._found: tuple[float, T] | None = None

    def get(self) -> T:
        """Return the value, computed again if it is too old."""
        with self._lock:
            if self._found and self._clock() - self._found[0] < self._lasts:
                return self._found[1]
            finding = self._begin()
        finding.join(self._patience)
        with self._lock:
            if finding.is_alive() or self._found is None:
                self._found = self._clock(), self._too_late()
            return self._found[1]

    def _begin(self) -> threading.Thread:
        """Return the thread that computes the value."""
        if self._finding is None or not self._finding.is_alive():
            self._finding = threading.Thread(target=self._run, daemon=True)
            self._finding.start()
        return self._finding

    def _run(self) -> None:
        value = self._find_out()
        with self._lock:
            self._found = self._clock(), value
