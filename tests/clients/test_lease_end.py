"""A lease ends by itself, in real seconds, in a service that is started as usual."""

import time
from pathlib import Path
from typing import Any

import pytest
import requests

from tests import walkthrough
from tests.client import new_uuid

pytestmark = pytest.mark.client

HEADERS = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement latest"}
# The time of the lease, and how much later its end may be.
SECONDS = 3
GRACE = 10


def call(address: str, method: str, path: str, body: Any = None) -> Any:
    answer = requests.request(
        method, f"http://{address}{path}", json=body, headers=HEADERS, timeout=30
    )
    answer.raise_for_status()
    return answer.json() if answer.content else None


def place(address: str, seconds: int) -> str:
    """Place a consumer on a new host, with a lease."""
    host, consumer = new_uuid(), new_uuid()
    call(address, "POST", "/resource_providers", {"name": "host", "uuid": host})
    body = {
        "resource_provider_generation": 0,
        "inventories": {"VCPU": {"total": 4}},
    }
    call(address, "PUT", f"/resource_providers/{host}/inventories", body)
    order = {
        "query": "resources=VCPU:1",
        "consumers": [consumer],
        "project_id": "blue",
        "user_id": "ann",
        "consumer_type": "INSTANCE",
        "lease_seconds": seconds,
    }
    call(address, "POST", "/ledger/v1/placements", order)
    return consumer


def wait_until_gone(address: str, consumer: str, until: float) -> None:
    while call(address, "GET", f"/allocations/{consumer}")["allocations"]:
        assert time.monotonic() < until
        time.sleep(0.2)
    assert call(address, "GET", "/ledger/v1/leases")["leases"] == []


def test_a_lease_ends_in_time_and_not_before(tmp_path: Path) -> None:
    with walkthrough.serving(tmp_path, "placement-api") as address:
        began = time.monotonic()
        consumer = place(address, SECONDS)
        wait_until_gone(address, consumer, time.monotonic() + SECONDS + GRACE)
        assert time.monotonic() >= began + SECONDS


def test_a_lease_that_ran_out_while_no_service_ran_ends_when_one_does(
    tmp_path: Path,
) -> None:
    with walkthrough.serving(tmp_path, "placement-api") as address:
        consumer = place(address, SECONDS)
    time.sleep(SECONDS)
    with walkthrough.serving(tmp_path, "placement-api") as address:
        wait_until_gone(address, consumer, time.monotonic() + GRACE)
