"""In which order capacity lists hosts."""

from tests.client import Client


def test_the_most_comes_first_then_the_name(client: Client) -> None:
    # The name of each is its UUID.
    few = [client.make_provider(VCPU=4) for _ in range(6)]
    many = [client.make_provider(VCPU=8) for _ in range(2)]
    client.make_provider(VCPU=1)
    counted = client.get("/ledger/v1/capacity?resources=VCPU:2&most_hosts=5")
    assert counted["total"] == 6 * 2 + 2 * 4
    assert [(each["uuid"], each["count"]) for each in counted["hosts"]] == [
        *((host, 4) for host in sorted(many)),
        *((host, 2) for host in sorted(few)[:3]),
    ]
