"""The script on the page about the journal, run to the letter."""

import re
import subprocess
import sys
import textwrap
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.client import Client, new_uuid, wants
from tests.serving import Served

PAGE = Path(__file__).parents[3] / "docs/journal.rst"
AMOUNT = 36_000_000


def script() -> str:
    found = re.search(
        r"\.\. code-block:: python\n\n((?:    .*\n|\n)+)", PAGE.read_text()
    )
    assert found
    return textwrap.dedent(found[1])


def hours_of(service: Served, path: Path, since: datetime) -> dict[str, float]:
    path.write_text(script())
    call = [sys.executable, str(path), service.url, since.isoformat()]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
    return {name: float(amount) for name, amount in lines}


def test_the_bill_is_right(service: Served, application: Any, tmp_path: Path) -> None:
    client = Client(application)
    provider = client.make_provider(VCPU=2_000_000_000)
    kept, moved = new_uuid(), new_uuid()

    def claim(consumer: str, amount: int, generation: int | None, project: str) -> None:
        body = wants({provider: {"VCPU": amount}}, generation, project=project)
        path = f"/allocations/{consumer}"
        assert client.call("PUT", path, body).status == 204

    claim(kept, AMOUNT, None, "blue")
    began = time.time()
    since = datetime.now(UTC)
    claim(moved, AMOUNT, None, "red")
    time.sleep(0.5)
    claim(moved, 2 * AMOUNT, 1, "red")
    halfway = time.time()
    time.sleep(0.5)
    assert client.call("DELETE", f"/allocations/{moved}").status == 204
    ended = time.time()
    hours = hours_of(service, tmp_path / "bill.py", since)
    finished = time.time()
    each = AMOUNT / 3600
    assert (ended - began) * each <= hours["blue VCPU"] <= (finished - began) * each
    least = (0.5 + 2 * 0.5) * each
    most = ((halfway - began) + 2 * (ended - halfway) + 0.2) * each
    assert least <= hours["red VCPU"] <= most
