"""Whether a process is alive, and whether it is ready to serve.

Both pages are open to anonymous callers, and give no more than a word for each check.
"""

import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

from oslo_log import log

from placement_foundation.database import trouble
from placement_foundation.http.page import Page, Text
from placement_foundation.observing.recent import Recent

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LOG = log.getLogger(__name__)

LIVE = "/livez"
READY = "/readyz"
# How long a result is kept, however many requests ask for it, in seconds.
KEPT = 1
# How long all checks may take together, in seconds.
PATIENCE = 2

OK, FAILED, UNKNOWN, WARNING = "ok", "failed", "unknown", "warning"

# The checks by name, in order. A check that raises has failed, for the reason that is
# logged; one that returns False has logged it.
Checks = Mapping[str, Callable[[], object]]


class Health:
    """Runs checks in order, up to the first that fails.

    :param checks: without these the service cannot work
    :param lesser: without these it works, but lacks something; they come last
    """

    def __init__(
        self, checks: Checks, lesser: Checks, clock: Callable[[], float]
    ) -> None:
        self._checks = {**checks, **lesser}
        self._lesser = lesser
        self._results: dict[str, str] = {}
        self._recent = Recent(
            self._run,
            lasts=KEPT,
            patience=PATIENCE,
            too_late=self._give_up,
            clock=clock,
        )

    def get(self) -> Mapping[str, str]:
        """Return a word for each check."""
        return self._recent.get()

    def _run(self) -> dict[str, str]:
        results = dict.fromkeys(self._checks, UNKNOWN)
        self._results = results
        for name, check in self._checks.items():
            results[name] = _word(name, check)
            if results[name] != OK:
                if name not in self._lesser:
                    break
                results[name] = WARNING
        return results

    def _give_up(self) -> dict[str, str]:
        """Return the results so far; the check that takes too long has failed."""
        results = dict(self._results) or dict.fromkeys(self._checks, UNKNOWN)
        slow = next((name for name, word in results.items() if word == UNKNOWN), None)
        if slow is None:
            return results
        return {**results, slow: WARNING if slow in self._lesser else FAILED}


def _word(name: str, check: Callable[[], object]) -> str:
    try:
        return FAILED if check() is False else OK
    except Exception as exc:
        LOG.warning("not ready: %s: %s", name, trouble.describe(exc))
        return FAILED


def pages(
    checks: Checks,
    clock: Callable[[], float] = time.monotonic,
    *,
    lesser: Checks | None = None,
) -> dict[str, "WSGIApplication"]:
    """Return the pages for probes, by path.

    :param lesser: checks that only warn: the service is ready even if they fail
    """
    health = Health(checks, lesser or {}, clock)

    def live() -> Text:
        return Text(f"{OK}\n")

    def ready() -> Text:
        results = health.get()
        well = set(results.values()) <= {OK, WARNING}
        return Text(
            "".join(f"{name}: {word}\n" for name, word in results.items()),
            HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE,
        )

    return {LIVE: Page(live), READY: Page(ready)}
