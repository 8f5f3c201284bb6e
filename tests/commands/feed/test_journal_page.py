"""The scripts and the calls on the page about the journal."""

import base64
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from placement_clients.feed import signature, target
from tests import walkthrough
from tests.client import Client, new_uuid, wants
from tests.serving import Served

PAGE = Path(__file__).parents[3] / "docs/journal.rst"
AMOUNT = 36_000_000


FILES = walkthrough.files(PAGE)


def hours_of(service: Served, path: Path, since: datetime) -> dict[str, float]:
    path.write_text(FILES["bill.py"])
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


def test_the_check_of_a_receiver_believes_what_is_signed_and_nothing_else() -> None:
    names: dict[str, Any] = {}
    exec(FILES["genuine.py"], names)
    is_genuine, key = names["is_genuine"], os.urandom(32)
    secret = f"whsec_{base64.b64encode(key).decode()}\n"
    body, now = b'{"data": {}}', int(time.time())
    hook = target.Webhook(
        "http://here", lambda: "there", signature.parse_secret(secret)
    )
    headers = hook._headers("some-id", body)
    assert is_genuine(secret, headers, body)
    assert is_genuine(secret.removeprefix("whsec_"), headers, body)
    both = f"v1,bm90aGluZw== {headers['webhook-signature']}"
    assert is_genuine(secret, {**headers, "webhook-signature": both}, body)
    assert not is_genuine(secret, headers, body + b" ")
    assert not is_genuine(secret, {**headers, "webhook-id": "other"}, body)
    later = {**headers, "webhook-timestamp": str(now + 1000)}
    assert not is_genuine(secret, later, body)
    other = f"whsec_{base64.b64encode(bytes(32)).decode()}"
    assert not is_genuine(other, headers, body)
    old = target.Webhook(
        "http://here", lambda: "there", key, clock=lambda: now - 1000.0
    )
    assert not is_genuine(secret, old._headers("some-id", body), body)
