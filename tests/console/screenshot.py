"""Makes the pictures of the documentation: ``python -m tests.console.screenshot``."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from placement.demonstration import cloud, planting
from placement.objects.ledger import Ledger
from placement_foundation.database.storage import Database
from tests.client import Client
from tests.console import stage

INTO = Path(__file__).parents[2] / "docs" / "console"
HOSTS = 1000
HOSTS_IN_USE = [f"demo-r00-compute0{number}" for number in range(1, 5)]
SIZE = {"width": 1280, "height": 800}
QUESTION = (
    "q=resources%3DVCPU%3A120%2CPGPU%3A1%26required%3DCUSTOM_DEMO_TRUSTED"
    "%2C%21COMPUTE_STATUS_DISABLED"
)
VIEWS = {
    "fleet": "#/fleet?by=used&of=MEMORY_MB&group=prefix:2",
    "host": f"#/host/{cloud.uuid_of('demo-r02-numa03')}",
    "drain": f"#/drain/{cloud.uuid_of(HOSTS_IN_USE[2])}",
    "ask": f"#/ask?{QUESTION}",
    "health": "#/health",
    "history": "#/history?class=VCPU",
    "consumers": "#/consumers",
    "names": "#/names?show=custom",
    "now": "#/now",
}
# The number of seconds over which the plots of Now take readings.
SECONDS = 40


def main() -> None:
    """Take a picture of each view, light and dark."""
    INTO.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as directory,
        stage.filled(Path(directory), _fill) as database,
        _serving(database) as url,
        stage.browsing() as browser,
    ):
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)
            for view, fragment in VIEWS.items():
                _take(page, f"{url}/console/{fragment}", view, scheme)


@contextlib.contextmanager
def _serving(database: Database) -> Iterator[str]:
    """Serve a cloud that has just changed: people see a history, and a lease."""
    names = {("console", "cloud"): "Example", ("console", "region"): "RegionOne"}
    application = stage.build(database, names)
    client = Client(application)
    for number, host in enumerate(HOSTS_IN_USE):
        consumer = cloud.uuid_of(f"{host} of a picture")
        provider = cloud.uuid_of(host)
        client.claim(consumer, {provider: {"VCPU": 1}}, project="demo-web")
        amounts = {provider: {"VCPU": 2 + number, "MEMORY_MB": 4096}}
        client.claim(consumer, amounts, generation=1, project="demo-web")
        client.call("PUT", f"/ledger/v1/leases/{consumer}", {"seconds": 1800})
    with stage.serving(application) as url:
        yield url


def _fill(database: Database) -> None:
    Ledger(database).write(lambda tx: planting.plant(tx, HOSTS))


def _take(page: Any, address: str, view: str, scheme: str) -> None:
    page.goto(address)
    stage.settled(page)
    if view == "now":
        _keep_busy(page)
    page.screenshot(path=INTO / f"{view}-{scheme}.png")
    print(f"{view}-{scheme}.png")


def _keep_busy(page: Any) -> None:
    """Send requests from time to time, so that there is something to see."""
    headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement latest"}
    site = page.url.split("/console/")[0]
    for second in range(SECONDS):
        for _ in range(3 + second % 7):
            question = f"{site}/allocation_candidates?resources=VCPU:1&limit=10"
            page.request.get(question, headers=headers)
        page.wait_for_timeout(1_000)


if __name__ == "__main__":
    main()
