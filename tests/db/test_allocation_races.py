"""Concurrent writers of allocations: a claim that fits does not conflict."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from placement.db import models
from placement.model.entry import Ownership
from placement.objects import locking, replacing, resource_class
from placement.objects.ledger import Ledger
from placement.objects.transaction import Transaction
from placement.schemas import allocation as wire
from placement_foundation.database.storage import Database
from tests.backends import KIND
from tests.client import Answer, Client, new_uuid, wants
from tests.threads import at_once, statuses

WRITERS = 8


def test_claims_succeed_while_there_is_room_and_take_no_more_than_there_is(
    client: Client,
) -> None:
    provider = client.make_provider(VCPU=5)
    answers = at_once(
        [
            lambda: client.claim(new_uuid(), {provider: {"VCPU": 1}})
            for _ in range(WRITERS)
        ]
    )
    assert statuses(answers) == {204: 5, 409: WRITERS - 5}
    refused = [answer for answer in answers if answer.status == 409]
    assert all("would exceed the capacity" in answer.detail for answer in refused)
    assert client.usages(provider) == {"VCPU": 5}
    assert client.generation(provider) == 6


def test_of_writers_with_the_same_generation_one_wins(client: Client) -> None:
    provider = client.make_provider(VCPU=100)
    consumer = new_uuid()
    assert client.claim(consumer, {provider: {"VCPU": 1}}).status == 204
    answers = at_once(
        [
            partial(client.claim, consumer, {provider: {"VCPU": amount}}, generation=1)
            for amount in range(1, WRITERS + 1)
        ]
    )
    assert statuses(answers) == {204: 1, 409: WRITERS - 1}
    assert {answer.code for answer in answers if answer.status == 409} == {
        "placement.concurrent_update"
    }
    winner = [answer.status for answer in answers].index(204)
    assert client.usages(provider) == {"VCPU": winner + 1}
    document = client.get(f"/allocations/{consumer}")
    assert document["consumer_generation"] == 2


def test_of_writers_that_create_the_same_consumer_one_wins_and_the_others_leave_nothing(
    client: Client, database: Database
) -> None:
    provider = client.make_provider(VCPU=WRITERS)
    consumer = new_uuid()
    everything = {provider: {"VCPU": WRITERS}}
    # There is room for one only: the losers are to hear of the consumer all the same.
    answers = at_once(
        [
            partial(
                client.claim,
                consumer,
                everything,
                project=f"team-{number}",
                consumer_type=f"TYPE_{number}",
            )
            for number in range(WRITERS)
        ]
    )
    assert statuses(answers) == {204: 1, 409: WRITERS - 1}
    losers = [answer for answer in answers if answer.status == 409]
    assert {answer.code for answer in losers} == {"placement.concurrent_update"}
    assert all(
        "consumer generation conflict - expected 1 but got None" in answer.detail
        for answer in losers
    )
    document = client.get(f"/allocations/{consumer}")
    winner = [answer.status for answer in answers].index(204)
    assert document["project_id"] == f"team-{winner}"
    assert document["consumer_type"] == f"TYPE_{winner}"
    assert document["consumer_generation"] == 1
    names = sa.select(models.ConsumerType.name)
    types = database.read(lambda connection: connection.scalars(names).all())
    assert types == [f"TYPE_{winner}"]


def test_a_refused_writer_removes_nothing_written_meanwhile(
    client: Client,
) -> None:
    provider = client.make_provider(VCPU=10)
    for _ in range(5):
        consumer = new_uuid()
        refused, written = at_once(
            [
                partial(client.claim, consumer, {provider: {"VCPU": 11}}),
                partial(client.claim, consumer, {provider: {"VCPU": 1}}),
            ]
        )
        assert (refused.status, written.status) == (409, 204)
        assert client.get(f"/allocations/{consumer}")["consumer_generation"] == 1


def test_without_generations_all_writers_of_one_consumer_succeed(
    client: Client,
) -> None:
    provider = client.make_provider(VCPU=100)
    consumer = new_uuid()
    body = {
        "allocations": {provider: {"resources": {"VCPU": 1}}},
        "project_id": "team-blue",
        "user_id": "robot-7",
    }
    answers = at_once(
        [partial(client.call, "PUT", f"/allocations/{consumer}", body, "1.27")]
        * WRITERS
    )
    assert statuses(answers) == {204: WRITERS}
    assert client.usages(provider) == {"VCPU": 1}
    document = client.get(f"/allocations/{consumer}")
    assert document["consumer_generation"] == WRITERS


@pytest.mark.parametrize("method", ["PUT", "POST", "reshaper"])
def test_the_same_new_project_user_and_type_are_made_once(
    client: Client, method: str
) -> None:
    providers = [client.make_provider(VCPU=1) for _ in range(WRITERS)]

    def claim(provider: str) -> Answer:
        consumer = new_uuid()
        claims = {
            consumer: wants(
                {provider: {"VCPU": 1}}, project="new", user="new", consumer_type="NEW"
            )
        }
        if method == "PUT":
            return client.call("PUT", f"/allocations/{consumer}", claims[consumer])
        if method == "POST":
            return client.call("POST", "/allocations", claims)
        inventories = {"VCPU": {"total": 1}}
        shape = {"resource_provider_generation": 1, "inventories": inventories}
        body = {"inventories": {provider: shape}, "allocations": claims}
        return client.call("POST", "/reshaper", body)

    answers = at_once([partial(claim, provider) for provider in providers])
    assert statuses(answers) == {204: WRITERS}
    usages = client.get("/usages?project_id=new&user_id=new")["usages"]
    assert usages == {"NEW": {"consumer_count": WRITERS, "VCPU": WRITERS}}


def test_claims_that_cross_all_succeed(client: Client) -> None:
    """Each names the same providers and consumers in another order."""
    providers = [client.make_provider(VCPU=1000) for _ in range(4)]
    consumers = [new_uuid() for _ in range(4)]

    def claim(turn: int) -> Answer:
        order = providers[turn % 4 :] + providers[: turn % 4]
        if turn % 2:
            order.reverse()
        amounts = {provider: {"VCPU": 1} for provider in order}
        body = {
            consumer: {
                "allocations": wants(amounts)["allocations"],
                "project_id": f"team-{turn % 3}",
                "user_id": f"robot-{turn % 2}",
            }
            for consumer in (consumers if turn % 3 else reversed(consumers))
        }
        return client.call("POST", "/allocations", body, "1.13")

    for _ in range(3):
        answers = at_once([partial(claim, turn) for turn in range(WRITERS)])
        assert statuses(answers) == {204: WRITERS}
    for provider in providers:
        assert client.usages(provider) == {"VCPU": 4}
        assert client.generation(provider) == 1 + 3 * WRITERS


@pytest.mark.skipif(KIND == "sqlite", reason="it has one writer at a time")
def test_writers_of_other_consumers_and_providers_do_not_wait(
    client: Client, database: Database
) -> None:
    """MariaDB would rather read all of a small table, and wait for rows on the way."""
    here, there = (client.make_provider(VCPU=100) for _ in range(2))
    ours, theirs = ([new_uuid() for _ in range(4)] for _ in range(2))

    def claims(
        consumers: list[str], provider: str, amount: int, generation: int | None
    ) -> dict[str, object]:
        amounts = {provider: {"VCPU": amount}} if amount else {}
        return {consumer: wants(amounts, generation) for consumer in consumers}

    def reshape(generation: int) -> Answer:
        inventories = {"VCPU": {"total": 100}, "DISK_GB": {"total": 1}}
        shape = {"resource_provider_generation": 3, "inventories": inventories}
        body = {
            "inventories": {there: shape},
            "allocations": claims(theirs, there, 3, generation),
        }
        return client.call("POST", "/reshaper", body)

    post = partial(client.call, "POST", "/allocations")
    for consumers, provider in ((ours, here), (theirs, there)):
        assert post(claims(consumers, provider, 1, None)).status == 204

    def meet(tx: Transaction) -> list[Answer]:
        mine = wire.parse_claims(claims(ours, here, 2, 1))
        replacing.replace_all(tx, mine, attempts=1)
        return [
            pool.submit(call).result(timeout=10)
            for call in (
                partial(post, claims(theirs, there, 2, 1)),
                partial(reshape, 2),
                partial(post, claims(theirs, there, 0, 3)),
                partial(client.claim, new_uuid(), {there: {"VCPU": 1}}),
            )
        ]

    with ThreadPoolExecutor(1) as pool:
        answers = Ledger(database).write(meet)
    assert statuses(answers) == {204: 4}
    assert client.usages(here) == {"VCPU": 8}


def test_swaps_on_a_full_provider_succeed(client: Client) -> None:
    provider = client.make_provider(VCPU=10)
    pairs = [(new_uuid(), new_uuid()) for _ in range(5)]
    for one, other in pairs:
        body = {each: wants({provider: {"VCPU": 1}}) for each in (one, other)}
        assert client.call("POST", "/allocations", body).status == 204

    def hand_over(one: str, other: str) -> Answer:
        body = {
            one: wants({}, generation=1),
            other: wants({provider: {"VCPU": 2}}, generation=1),
        }
        return client.call("POST", "/allocations", body)

    answers = at_once([partial(hand_over, *pair) for pair in pairs])
    assert statuses(answers) == {204: 5}
    assert client.usages(provider) == {"VCPU": 10}


def test_a_claim_and_a_smaller_inventory_take_turns(client: Client) -> None:
    """The second of the two sees what the first has done."""
    provider = client.make_provider(VCPU=10)
    path = f"/resource_providers/{provider}/inventories/VCPU"
    shrink = {"resource_provider_generation": 1, "total": 5}

    def remove() -> Answer:
        return client.call("PUT", path, shrink)

    def claim() -> Answer:
        return client.claim(new_uuid(), {provider: {"VCPU": 10}})

    claimed, shrunk = at_once([claim, remove])
    # Shrinking after the claim sees a new generation; before it, there is no room.
    assert (claimed.status, shrunk.status) in [(204, 409), (409, 200)]


def test_a_consumer_is_deleted_and_written_in_turns(client: Client) -> None:
    provider = client.make_provider(VCPU=100)
    for _ in range(5):
        consumer = new_uuid()
        assert client.claim(consumer, {provider: {"VCPU": 1}}).status == 204
        written, deleted = at_once(
            [
                partial(client.claim, consumer, {provider: {"VCPU": 2}}, generation=1),
                partial(client.call, "DELETE", f"/allocations/{consumer}"),
            ]
        )
        assert deleted.status == 204
        # Written first and then deleted, or deleted first and so unknown.
        assert written.status in (204, 409)
        assert client.get(f"/allocations/{consumer}") == {"allocations": {}}
        if written.status == 409:
            assert "expected null but got 1" in written.detail
    assert client.usages(provider) == {"VCPU": 0}


def test_taking_everything_and_making_the_same_consumer_take_turns(
    client: Client,
) -> None:
    """Emptying a consumer that is not there must not empty one that just came."""
    provider = client.make_provider(VCPU=100)
    for _ in range(10):
        consumer = new_uuid()
        path = f"/allocations/{consumer}"
        made, emptied = at_once(
            [
                partial(client.claim, consumer, {provider: {"VCPU": 1}}),
                partial(client.call, "PUT", path, wants({})),
            ]
        )
        assert made.status == 204
        assert emptied.status in (204, 409)
        assert client.get(path)["consumer_generation"] == 1


def test_reshapers_of_one_provider_take_turns(client: Client) -> None:
    provider = client.make_provider(VCPU=10)
    consumer = new_uuid()
    assert client.claim(consumer, {provider: {"VCPU": 1}}).status == 204

    def reshape(total: int) -> Answer:
        shape = {
            "resource_provider_generation": 2,
            "inventories": {"VCPU": {"total": total}},
        }
        claims = {consumer: wants({provider: {"VCPU": 1}}, generation=1)}
        body = {"inventories": {provider: shape}, "allocations": claims}
        return client.call("POST", "/reshaper", body)

    answers = at_once([partial(reshape, total) for total in range(11, 11 + WRITERS)])
    assert statuses(answers) == {204: 1, 409: WRITERS - 1}
    assert {answer.code for answer in answers if answer.status == 409} == {
        "placement.concurrent_update"
    }
    assert client.generation(provider) == 5


def test_claims_and_reshapers_that_cross_never_fail_otherwise_than_by_generation(
    client: Client,
) -> None:
    providers = [client.make_provider(VCPU=1000) for _ in range(3)]

    def claim() -> Answer:
        amounts = {provider: {"VCPU": 1} for provider in reversed(providers)}
        return client.claim(new_uuid(), amounts)

    def reshape() -> Answer:
        body = {
            "inventories": {
                provider: {
                    "resource_provider_generation": client.generation(provider),
                    "inventories": {"VCPU": {"total": 1000}},
                }
                for provider in providers
            },
            "allocations": {
                new_uuid(): wants({provider: {"VCPU": 1}}) for provider in providers
            },
        }
        return client.call("POST", "/reshaper", body)

    for _ in range(3):
        answers = at_once([claim, reshape] * (WRITERS // 2))
        assert statuses(answers[::2]) == {204: WRITERS // 2}
        for answer in answers[1::2]:
            assert answer.status == 204 or (
                "resource provider generation conflict" in answer.detail
            )


@pytest.mark.parametrize("method", ["PUT", "POST", "reshaper"])
def test_a_claim_is_not_written_for_a_class_that_got_the_id_of_another(
    client: Client, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    assert client.call("PUT", "/resource_classes/CUSTOM_A").status == 201
    provider = client.make_provider(CUSTOM_A=4)
    hold = locking.hold
    held: list[Any] = []

    def hold_later(tx: Transaction, *args: Any, **options: Any) -> Any:
        # What others may do while the locks are waited for. It is taken back with the
        # attempt that it misleads.
        if not held:
            row = models.ResourceClass
            renaming = sa.update(row).where(row.name == "CUSTOM_A")
            tx.connection.execute(renaming.values(name="CUSTOM_B"))
            tx.connection.execute(sa.insert(row).values(name="CUSTOM_A"))
        held.append(args)
        return hold(tx, *args, **options)

    monkeypatch.setattr(locking, "hold", hold_later)
    uuid = new_uuid()
    claims = {uuid: wants({provider: {"CUSTOM_A": 1}})}
    if method == "PUT":
        answer = client.call("PUT", f"/allocations/{uuid}", claims[uuid])
    elif method == "POST":
        answer = client.call("POST", "/allocations", claims)
    else:
        shape = {
            "resource_provider_generation": 1,
            "inventories": {"CUSTOM_A": {"total": 4}},
        }
        body = {"inventories": {provider: shape}, "allocations": claims}
        answer = client.call("POST", "/reshaper", body)
    assert answer.status == 204
    assert len(held) == 2
    assert client.usages(provider) == {"CUSTOM_A": 1}


def test_inventories_are_not_written_for_a_class_that_got_the_id_of_another(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.call("PUT", "/resource_classes/CUSTOM_A").status == 201
    provider = new_uuid()
    ids_by_name = resource_class.ids_by_name
    asked: list[Any] = []

    def ids_before(connection: sa.Connection, names: Any) -> dict[str, int]:
        ids = ids_by_name(connection, names)
        if not asked:
            row = models.ResourceClass
            renaming = sa.update(row).where(row.name == "CUSTOM_A")
            connection.execute(renaming.values(name="CUSTOM_B"))
        asked.append(names)
        return ids

    monkeypatch.setattr(resource_class, "ids_by_name", ids_before)
    client.make_provider_again(provider, CUSTOM_A=4)
    assert len(asked) == 2
    assert client.usages(provider) == {"CUSTOM_A": 0}


def test_a_consumer_that_gets_a_new_owner_while_its_lock_is_waited_for_has_it(
    client: Client, database: Database
) -> None:
    provider = client.make_provider(VCPU=4)
    uuid = new_uuid()
    assert client.claim(uuid, {provider: {"VCPU": 1}}).status == 204
    is_changed, may_commit = threading.Event(), threading.Event()

    def give_away(tx: Transaction) -> None:
        [record] = locking.lock_consumers(tx, [uuid]).values()
        row = models.Consumer
        for table, column, name in (
            (models.Project, row.project_id, models.Project.external_id),
            (models.User, row.user_id, models.User.external_id),
            (models.ConsumerType, row.consumer_type_id, models.ConsumerType.name),
        ):
            tx.connection.execute(sa.insert(table).values({name: "NEW"}))
            made = sa.select(table.id).where(name == "NEW").scalar_subquery()
            change = sa.update(row).where(row.id == record.id)
            tx.connection.execute(change.values({column: made}))
        is_changed.set()
        may_commit.wait(30)

    def read(tx: Transaction) -> Ownership:
        return locking.lock_consumers(tx, [uuid])[uuid].owner

    with ThreadPoolExecutor(1) as pool:
        given = pool.submit(Ledger(database).write, give_away)
        assert is_changed.wait(30)
        # By then the other one waits; if it does not yet, it sees all.
        threading.Timer(0.5, may_commit.set).start()
        owner = Ledger(database).write(read)
        given.result()
    assert owner == Ownership("NEW", "NEW", "NEW")
