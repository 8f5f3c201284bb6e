"""Whether a process is alive, and whether it is ready to serve.

Both pages are open to anonymous callers, and give no more than a word for each check.
"""

import time
import types
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
# How long a result is kept, in seconds, whatever the number of requests.
KEPT = 1
# How long all checks may take together, in seconds.
PATIENCE = 2

OK, FAILED, UNKNOWN, WARNING = "ok", "failed", "unknown", "warning"

# The checks by name, in order. A check that raises has failed, for the reason that is
# logged; one that returns False has logged it.
Checks = Mapping[str, Callable[[], object]]
NO_CHECKS: Checks = types.MappingProxyType({})


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
    lesser: Checks = NO_CHECKS,
) -> dict[str, "WSGIApplication"]:
    """Return the pages for probes, by path.

    :param checks: the service cannot work without these; the first that fails is last
    :param lesser: checks that only warn: the service is ready even if they fail
    """
    words = dict.fromkeys([*checks, *lesser], UNKNOWN)

    def run() -> dict[str, str]:
        words.update(dict.fromkeys(words, UNKNOWN))
        for name, check in {**checks, **lesser}.items():
            words[name] = _word(name, check)
            if words[name] == FAILED and name in checks:
                break
            words[name] = WARNING if words[name] == FAILED else OK
        return dict(words)

    def give_up() -> dict[str, str]:
        """Return the results so far; the check that takes too long has failed."""
        results = dict(words)
        slow = next((name for name, word in results.items() if word == UNKNOWN), None)
        if slow:
            results[slow] = FAILED if slow in checks else WARNING
        return results

    recent = Recent(run, lasts=KEPT, patience=PATIENCE, too_late=give_up, clock=clock)

    def ready() -> Text:
        results = recent.get()
        well = set(results.values()) <= {OK, WARNING}
        return Text(
            "".join(f"{name}: {word}\n" for name, word in results.items()),
            HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE,
        )

    return {LIVE: Page(lambda: Text(f"{OK}\n")), READY: Page(ready)}
