"""How long it takes to draw the fleet: ``python -m benchmarks.console``.

The service with a flat cloud runs next to Chromium, which is restarted for each look.
Like a server, it has loaded the forest before.
The times are measured from the request for the page until cells are on the screen, and
until all hosts are there; then the memory of the page is read, and the time until hosts
are coloured by consumers and until a question is explained.
"""

import argparse
import dataclasses
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib import request

from benchmarks import cloud
from tests.console import stage

TIMES = 5
# Runs before anything else in the page, and records when the first picture is drawn.
WATCH = """
new MutationObserver((_, observer) => {
    if (!document.querySelector("canvas")) return;
    observer.disconnect();
    const note = () => { window.drawn = performance.now(); };
    requestAnimationFrame(() => setTimeout(note));
}).observe(document, { childList: true, subtree: true });
"""


@dataclasses.dataclass(frozen=True)
class Look:
    """Seconds until something is on the screen, and MB of memory that the page uses."""

    drawn: float
    complete: float
    memory: float
    consumers: float
    explained: float


def main() -> None:
    """Print how long each look took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=TIMES)
    options = parser.parse_args()
    hosts = options.hosts
    with (
        # A request that waits for changes may read the files until it times out.
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
        stage.filled(
            Path(directory), lambda each: cloud.plant(each, cloud.flat(hosts))
        ) as database,
        stage.serving(stage.build(database)) as url,
        stage.browsing() as browser,
    ):
        _load(url)
        looks = [_look(browser, url) for _ in range(options.times)]
    print(f"{hosts} hosts, median of {options.times}:")
    for field in dataclasses.fields(Look):
        values = [getattr(look, field.name) for look in looks]
        unit = "MB" if field.name == "memory" else "s"
        print(f"  {field.name:10} {statistics.median(values):8.2f} {unit}")


def _load(url: str) -> None:
    """Make the service load the forest, by a query that finds no provider."""
    headers = {"X-Auth-Token": "admin"}
    arguments = request.Request(f"{url}/ledger/v1/fleet?name=none", headers=headers)
    request.urlopen(arguments).close()


def _look(browser: Any, url: str) -> Look:
    """Return the times of one look at the fleet, and the memory of its page."""
    context = browser.new_context(viewport={"width": 1920, "height": 1080})
    context.set_default_timeout(240_000)
    try:
        page = context.new_page()
        page.add_init_script(WATCH)
        begun = time.perf_counter()
        page.goto(f"{url}/console/")
        page.wait_for_selector("canvas")
        page.wait_for_selector(".moment:has-text('as of')")
        complete = time.perf_counter() - begun
        drawn = float(stage.run(page, "window.drawn")) / 1000
        memory = _memory(page)
        begun = time.perf_counter()
        page.get_by_label("Colour by").select_option("consumers")
        page.wait_for_selector(".legend")
        page.wait_for_selector(".moment:has-text('as of')")
        consumers = time.perf_counter() - begun
        begun = time.perf_counter()
        page.goto(f"{url}/console/#/ask?q=resources%3DVCPU%3A1000")
        page.wait_for_selector(".verdict")
        explained = time.perf_counter() - begun
        return Look(drawn, complete, memory, consumers, explained)
    finally:
        context.close()


def _memory(page: Any) -> float:
    inspector = page.context.new_cdp_session(page)
    inspector.send("HeapProfiler.collectGarbage")
    used = inspector.send("Runtime.getHeapUsage")["usedSize"]
    inspector.detach()
    return float(used) / 1_000_000


if __name__ == "__main__":
    main()
