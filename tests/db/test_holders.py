"""Who holds most of what a host lacks."""

import random
from typing import Any

from tests.client import Client, new_uuid

QUERY = "resources=VCPU:50"


def unmet(document: dict[str, Any], host: str) -> dict[str, Any]:
    [near] = [each for each in document["near"] if each["uuid"] == host]
    [lack] = [each for each in near["unmet"] if each["id"] == "room:VCPU"]
    return dict(lack)


def test_the_ten_that_hold_most_are_listed_the_largest_first(
    client: Client,
) -> None:
    host = client.make_provider(VCPU=100, MEMORY_MB=100)
    other = client.make_provider(VCPU=100)
    amounts = list(range(1, 13))
    random.Random(1).shuffle(amounts)
    consumers = {}
    for amount in amounts:
        consumers[amount] = new_uuid()
        # What else they hold does not count.
        held = {host: {"VCPU": amount, "MEMORY_MB": 13 - amount}}
        claimed = client.claim(consumers[amount], held, project=f"project{amount}")
        assert claimed.status == 204
    assert client.claim(new_uuid(), {other: {"VCPU": 60}}).status == 204
    path = f"/ledger/v1/explanation?{QUERY}&in_tree={host}&holders=true"
    told = client.get(path)
    expected = [
        {
            "consumer": consumers[amount],
            "amount": amount,
            "type": "INSTANCE",
            "project": f"project{amount}",
        }
        for amount in range(12, 2, -1)
    ]
    assert unmet(told, host)["holders"] == expected
    assert "holders" not in unmet(client.get(path.replace("&holders=true", "")), host)
    # Those that are imagined away hold nothing.
    body = {
        "query": f"{QUERY}&in_tree={host}&holders=true",
        "ask": "explanation",
        "ignore_consumers": [consumers[12], consumers[1]],
        "providers": {host: {"inventories": {"VCPU": {"total": 60}}}},
    }
    told = client.call("POST", "/ledger/v1/what-if", body).document
    left = [each["amount"] for each in unmet(told, host)["holders"]]
    assert left == [*range(11, 1, -1)]
