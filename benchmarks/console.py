"""How long it takes to draw the fleet: ``python -m benchmarks.console``.

The service with a flat cloud runs next to Chromium, which is restarted for each look.
The time is measured from the request for the page until the cells are on the screen.
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

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


def main() -> None:
    """Print how long each look took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=10_000)
    hosts = parser.parse_args().hosts
    with (
        tempfile.TemporaryDirectory() as directory,
        stage.filled(
            Path(directory), lambda each: cloud.plant(each, cloud.flat(hosts))
        ) as database,
        stage.serving(stage.build(database)) as url,
        stage.browsing() as browser,
    ):
        looks = sorted(_look(browser, url) for _ in range(TIMES))
    print(
        f"{hosts} hosts are drawn after {statistics.median(looks):.2f} s "
        f"({looks[0]:.2f} to {looks[-1]:.2f})"
    )


def _look(browser: Any, url: str) -> float:
    """Return the seconds until the fleet is drawn."""
    context = browser.new_context(viewport={"width": 1920, "height": 1080})
    try:
        page = context.new_page()
        page.add_init_script(WATCH)
        page.goto(f"{url}/console/")
        page.wait_for_selector("canvas", timeout=120_000)
        page.wait_for_timeout(200)
        return float(stage.run(page, "window.drawn")) / 1000
    finally:
        context.close()


if __name__ == "__main__":
    main()
