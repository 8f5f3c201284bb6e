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


def test_a_lease_ends_in_time_and_not_before(tmp_path: Path) -> None:
    with walkthrough.serving(tmp_path, "placement-api") as address:

        def call(method: str, path: str, body: Any = None) -> Any:
            answer = requests.request(
                method,
                f"http://{address}{path}",
                json=body,
                headers=HEADERS,
                timeout=30,
            )
            answer.raise_for_status()
            return answer.json() if answer.content else None

        host, consumer = new_uuid(), new_uuid()
        call("POST", "/resource_providers", {"name": "host", "uuid": host})
        body = {
            "resource_provider_generation": 0,
            "inventories": {"VCPU": {"total": 4}},
        }
        call("PUT", f"/resource_providers/{host}/inventories", body)
        began = time.monotonic()
        order = {
            "query": "resources=VCPU:1",
            "consumers": [consumer],
            "project_id": "blue",
            "user_id": "ann",
            "consumer_type": "INSTANCE",
            "lease_seconds": SECONDS,
        }
        call("POST", "/ledger/v1/placements", order)
        placed = time.monotonic()
        while call("GET", f"/allocations/{consumer}")["allocations"]:
            assert time.monotonic() < placed + SECONDS + GRACE
            time.sleep(0.2)
        assert time.monotonic() >= began + SECONDS
        assert call("GET", "/ledger/v1/leases")["leases"] == []
