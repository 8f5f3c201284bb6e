"""Bodies with more in them than one SQL statement can compare with."""

from tests.client import Client, new_uuid, wants

# SQLite takes 32766 parameters, PostgreSQL 65535.
MANY = 66000


def test_a_body_may_name_very_many_consumers(client: Client) -> None:
    claims = {new_uuid(): wants({}) for _ in range(MANY)}
    assert client.call("POST", "/allocations", claims).status == 204


def test_a_body_may_name_very_many_unknown_providers(
    client: Client,
) -> None:
    amounts = {new_uuid(): {"VCPU": 1} for _ in range(MANY)}
    answer = client.claim(new_uuid(), amounts)
    assert answer.status == 400
    assert next(iter(amounts)) in answer.detail


def test_a_body_may_name_very_many_unknown_classes(client: Client) -> None:
    provider = client.make_provider(VCPU=1)
    amounts = {provider: {f"CUSTOM_{number}": 1 for number in range(MANY)}}
    answer = client.claim(new_uuid(), amounts)
    assert answer.status == 400
    assert "No such resource class CUSTOM_0." in answer.detail


def test_very_many_consumers_may_come_change_and_go(client: Client) -> None:
    provider = client.make_provider(VCPU=100000)
    consumers = [new_uuid() for _ in range(7000)]
    one = {provider: {"VCPU": 1}}
    turns = [
        {consumer: wants(one) for consumer in consumers},
        {
            consumer: wants(one, 1, project=f"team-{number}")
            for number, consumer in enumerate(consumers)
        },
        {consumer: wants({}, 2) for consumer in consumers},
    ]
    for used, claims in zip([7000, 7000, 0], turns, strict=True):
        answer = client.call("POST", "/allocations", claims)
        assert answer.status == 204, answer
        assert client.usages(provider) == {"VCPU": used}
