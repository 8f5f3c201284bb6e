"""Allocations in databases that others have written, or that compare in their way."""

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from placement.db import models
from placement_foundation.database.storage import Database
from tests.backends import KIND
from tests.client import Client, new_uuid, wants

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def leave_without_allocations(database: Database, consumer: str) -> None:
    """Remove what a consumer uses, and leave its record with generation 0."""

    def work(connection: sa.Connection) -> None:
        taken = sa.delete(models.Allocation)
        connection.execute(taken.where(models.Allocation.consumer_id == consumer))
        record = sa.update(models.Consumer).values(generation=0)
        connection.execute(record.where(models.Consumer.uuid == consumer))

    database.write(work)


def count_consumers(database: Database) -> int:
    query = sa.select(sa.func.count()).select_from(models.Consumer)
    return database.read(lambda connection: connection.scalars(query).one())


def test_a_record_without_allocations_counts_for_generations(
    client: Client, database: Database
) -> None:
    provider, consumer = client.make_provider(VCPU=10), new_uuid()
    one = {provider: {"VCPU": 1}}
    assert client.claim(consumer, one).status == 204
    leave_without_allocations(database, consumer)
    assert client.get(f"/allocations/{consumer}") == {"allocations": {}}
    refused = client.claim(consumer, one)
    assert refused.status == 409
    assert "expected 0 but got None" in refused.detail
    assert client.claim(consumer, one, generation=0).status == 204
    assert client.get(f"/allocations/{consumer}")["consumer_generation"] == 1


def test_writing_no_allocations_removes_a_record_without_any(
    client: Client, database: Database
) -> None:
    provider, consumer = client.make_provider(VCPU=10), new_uuid()
    assert client.claim(consumer, {provider: {"VCPU": 1}}).status == 204
    leave_without_allocations(database, consumer)
    assert client.claim(consumer, {}, generation=0).status == 204
    assert count_consumers(database) == 0
    assert client.generation(provider) == 2


def test_refused_writes_leave_no_row_of_any_kind(
    client: Client, database: Database
) -> None:
    provider, other = client.make_provider(VCPU=10), new_uuid()
    about = {"project": "new", "user": "new", "consumer_type": "NEW"}
    for amounts, status in [
        ({provider: {"VCPU": 11}}, 409),
        ({provider: {"COWS": 1}}, 400),
        ({other: {"VCPU": 1}}, 400),
        ({}, 204),
    ]:
        assert client.claim(new_uuid(), amounts, **about).status == status
    for table in (
        models.Consumer,
        models.Project,
        models.User,
        models.ConsumerType,
        models.Allocation,
    ):
        count = sa.select(sa.func.count()).select_from(table)
        assert database.read(lambda connection: connection.scalars(count).one()) == 0  # noqa: B023


def test_allocations_without_a_time_are_of_now(
    client: Client, database: Database, application: "WSGIApplication"
) -> None:
    provider, consumer = client.make_provider(VCPU=10), new_uuid()
    assert client.claim(consumer, {provider: {"VCPU": 1}}).status == 204
    update = sa.update(models.Allocation).values(created_at=None)
    database.write(lambda connection: connection.execute(update))
    assert client.get(f"/allocations/{consumer}")["allocations"][provider]
    assert client.get(f"/resource_providers/{provider}/allocations")["allocations"]


def test_allocations_of_a_consumer_without_a_user_count_and_are_hidden(
    client: Client, database: Database
) -> None:
    provider, consumer = client.make_provider(VCPU=10), new_uuid()
    assert client.claim(consumer, {provider: {"VCPU": 6}}, user="lost").status == 204
    database.write(lambda connection: connection.execute(sa.delete(models.User)))
    assert client.get(f"/allocations/{consumer}") == {"allocations": {}}
    path = f"/resource_providers/{provider}/allocations"
    assert client.get(path)["allocations"] == {}
    assert client.usages(provider) == {"VCPU": 6}
    assert client.claim(new_uuid(), {provider: {"VCPU": 5}}).status == 409
    assert client.claim(consumer, {provider: {"VCPU": 5}}, generation=1).status == 204
    assert client.get(f"/allocations/{consumer}")["user_id"] == "robot-7"


def leave_without_record(client: Client, database: Database, provider: str) -> str:
    """Let a consumer use 6 VCPU, remove its record, and return its UUID."""
    consumer = new_uuid()
    assert client.claim(consumer, {provider: {"VCPU": 6}}).status == 204
    database.write(lambda connection: connection.execute(sa.delete(models.Consumer)))
    assert client.get(f"/allocations/{consumer}") == {"allocations": {}}
    assert client.usages(provider) == {"VCPU": 6}
    return consumer


def test_allocations_of_a_consumer_without_a_record_are_replaced(
    client: Client, database: Database
) -> None:
    provider = client.make_provider(VCPU=10)
    consumer = leave_without_record(client, database, provider)
    assert client.claim(consumer, {provider: {"VCPU": 11}}).status == 409
    assert client.usages(provider) == {"VCPU": 6}
    # There is room for that only where the old amount is given back.
    assert client.claim(consumer, {provider: {"VCPU": 7}}).status == 204
    assert client.usages(provider) == {"VCPU": 7}
    document = client.get(f"/allocations/{consumer}")
    assert document["allocations"][provider]["resources"] == {"VCPU": 7}
    assert document["consumer_generation"] == 1


def test_writing_none_removes_allocations_without_a_record(
    client: Client, database: Database
) -> None:
    provider = client.make_provider(VCPU=10)
    consumer = leave_without_record(client, database, provider)
    assert client.call("DELETE", f"/allocations/{consumer}").status == 404
    assert client.usages(provider) == {"VCPU": 6}
    assert client.claim(consumer, {}).status == 204
    assert client.usages(provider) == {"VCPU": 0}
    assert client.generation(provider) == 3


@pytest.mark.parametrize("name", ["TEAM-BLUE", "team-blue ", "team-blüe"])
def test_names_that_differ_a_little_are_never_mixed_up(
    client: Client, name: str
) -> None:
    provider = client.make_provider(VCPU=10)
    first, second = new_uuid(), new_uuid()
    assert (
        client.claim(first, {provider: {"VCPU": 1}}, project="team-blue").status == 204
    )
    answer = client.claim(second, {provider: {"VCPU": 2}}, project=name)
    if answer.status == 409:
        assert KIND == "mysql"
        assert "cannot distinguish" in answer.detail
        assert client.usages(provider) == {"VCPU": 1}
    else:
        assert answer.status == 204
        assert client.get(f"/allocations/{second}")["project_id"] == name
    assert client.get(f"/allocations/{first}")["project_id"] == "team-blue"


def test_consumers_that_differ_by_case_are_never_mixed_up(client: Client) -> None:
    provider, lower = client.make_provider(VCPU=10), f"abcdef{new_uuid()[6:]}"
    upper = lower.upper()
    assert client.claim(lower, {provider: {"VCPU": 1}}).status == 204
    claims = {upper: wants({provider: {"VCPU": 2}})}
    answer = client.call("POST", "/allocations", claims)
    if answer.status == 409:
        assert KIND == "mysql"
        assert answer.code == "placement.undefined_code"
        assert f"cannot distinguish '{upper}'" in answer.detail
        assert client.usages(provider) == {"VCPU": 1}
    else:
        assert answer.status == 204
        assert client.usages(provider) == {"VCPU": 3}
    assert client.call("DELETE", f"/allocations/{lower}").status == 204


def test_consumers_of_one_request_that_differ_by_case_are_not_mixed_up(
    client: Client,
) -> None:
    provider, lower = client.make_provider(VCPU=10), f"abcdef{new_uuid()[6:]}"
    body = wants({provider: {"VCPU": 1}})
    answer = client.call("POST", "/allocations", {lower: body, lower.upper(): body})
    if answer.status == 409:
        assert KIND == "mysql"
        assert answer.code == "placement.undefined_code"
        assert "cannot distinguish" in answer.detail
        assert client.usages(provider) == {"VCPU": 0}
    else:
        assert answer.status == 204
        assert client.usages(provider) == {"VCPU": 2}


@pytest.mark.parametrize("ratio", [1.23456789, 1.0000001])
def test_a_reshape_lets_in_what_fits_the_ratio_as_it_is_stored(
    client: Client, ratio: float
) -> None:
    provider, consumer = client.make_provider(VCPU=1), new_uuid()

    def reshape(amount: int) -> int:
        inventory = {"total": 1_000_000_000, "allocation_ratio": ratio}
        shape = {
            "resource_provider_generation": client.generation(provider),
            "inventories": {"VCPU": inventory},
        }
        body = {
            "inventories": {provider: shape},
            "allocations": {consumer: wants({provider: {"VCPU": amount}})},
        }
        return client.call("POST", "/reshaper", body).status

    assert reshape(1) == 204
    assert client.claim(consumer, {}, generation=1).status == 204
    query = "/allocation_candidates?resources=VCPU:1"
    summary = client.get(query)["provider_summaries"][provider]
    capacity = summary["resources"]["VCPU"]["capacity"]
    assert reshape(capacity + 1) == 409
    assert reshape(capacity) == 204
