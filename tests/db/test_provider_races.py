"""Concurrent writers of providers, and of what belongs to them."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from placement.db import models
from placement_foundation.database.storage import Database
from tests.backends import KIND
from tests.client import Answer, Client, new_uuid
from tests.threads import at_once, statuses

WRITERS = 8
ROUNDS = 6

PROVIDERS = "/resource_providers"


def add(client: Client, uuid: str, parent: str | None = None, **other: Any) -> Answer:
    body = {"uuid": uuid, "name": uuid, "parent_provider_uuid": parent, **other}
    return client.call("POST", PROVIDERS, body)


def move(client: Client, uuid: str, parent: str | None) -> Answer:
    body = {"name": uuid, "parent_provider_uuid": parent}
    return client.call("PUT", f"{PROVIDERS}/{uuid}", body)


def grow(client: Client, *parents: str | None) -> list[str]:
    """Make providers, one for each parent: None, or the place of an earlier one."""
    made: list[str] = []
    for parent in parents:
        uuid = new_uuid()
        assert add(client, uuid, parent and made[int(parent)]).status == 200
        made.append(uuid)
    return made


def check_trees(client: Client) -> None:
    """Check that each provider has the root that its parents lead to."""
    listed = client.get(PROVIDERS)["resource_providers"]
    parents = {each["uuid"]: each["parent_provider_uuid"] for each in listed}
    for each in listed:
        uuid, steps = each["uuid"], 0
        while parents[uuid] is not None:
            uuid, steps = parents[uuid], steps + 1
            assert steps <= len(parents), "a loop"
        assert each["root_provider_uuid"] == uuid


def put_inventories(client: Client, provider: str, total: int) -> Answer:
    body = {
        "resource_provider_generation": 0,
        "inventories": {"VCPU": {"total": total}},
    }
    return client.call("PUT", f"{PROVIDERS}/{provider}/inventories", body)


def put_traits(client: Client, provider: str, number: int) -> Answer:
    traits = ["HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_CPU_X86_SGX", "HW_NUMA_ROOT"]
    body = {"resource_provider_generation": 0, "traits": [traits[number % 4]]}
    return client.call("PUT", f"{PROVIDERS}/{provider}/traits", body)


def put_aggregates(client: Client, provider: str, number: int) -> Answer:
    body = {"resource_provider_generation": 0, "aggregates": [new_uuid()]}
    return client.call("PUT", f"{PROVIDERS}/{provider}/aggregates", body)


@pytest.mark.parametrize("put", [put_inventories, put_traits, put_aggregates])
def test_of_writers_with_the_same_generation_one_wins(
    client: Client, put: Callable[[Client, str, int], Answer]
) -> None:
    (provider,) = grow(client, None)
    answers = at_once(
        [partial(put, client, provider, number) for number in range(1, WRITERS + 1)]
    )
    assert statuses(answers) == {200: 1, 409: WRITERS - 1}
    codes = {answer.code for answer in answers if answer.status == 409}
    assert codes == {"placement.concurrent_update"}
    assert client.generation(provider) == 1


def test_writers_of_different_things_share_the_generations(client: Client) -> None:
    (provider,) = grow(client, None)
    answers = at_once(
        [
            partial(put, client, provider, 1)
            for put in (put_inventories, put_traits, put_aggregates)
        ]
    )
    assert statuses(answers) == {200: 1, 409: 2}
    assert client.generation(provider) == 1


def test_writers_that_send_no_generation_all_win(client: Client) -> None:
    (provider,) = grow(client, None)
    classes = ["VCPU", "MEMORY_MB", "DISK_GB", "VGPU", "PCPU", "FPGA", "PGPU"]
    path = f"{PROVIDERS}/{provider}/inventories"
    answers = at_once(
        [
            partial(client.call, "POST", path, {"resource_class": name, "total": 1})
            for name in classes
        ]
    )
    assert statuses(answers) == {201: len(classes)}
    assert client.generation(provider) == len(classes)
    generations = {each.document["resource_provider_generation"] for each in answers}
    assert generations == set(range(1, len(classes) + 1))


NEW = new_uuid()
# A request, what the first of several gets, and what all others.
ONCE: dict[str, tuple[str, str, Any, int, int]] = {
    "inventory": (
        "POST",
        PROVIDERS + "/{provider}/inventories",
        {"resource_class": "VCPU", "total": 1},
        201,
        409,
    ),
    "provider": ("POST", PROVIDERS, {"uuid": NEW, "name": NEW}, 200, 409),
    "name": ("POST", PROVIDERS, {"name": "the one"}, 200, 409),
    "provider deleted": ("DELETE", PROVIDERS + "/{provider}", None, 204, 404),
    "class": ("PUT", "/resource_classes/CUSTOM_BOARD", None, 201, 204),
    "class posted": ("POST", "/resource_classes", {"name": "CUSTOM_BOARD"}, 201, 409),
    "class deleted": ("DELETE", "/resource_classes/CUSTOM_OLD", None, 204, 404),
    "trait": ("PUT", "/traits/CUSTOM_BLUE", None, 201, 204),
    "trait deleted": ("DELETE", "/traits/CUSTOM_OLD", None, 204, 404),
}


@pytest.mark.parametrize("what", ONCE)
def test_what_several_do_at_once_is_done_once(client: Client, what: str) -> None:
    method, path, body, done, refused = ONCE[what]
    (provider,) = grow(client, None)
    for old in ("/resource_classes/CUSTOM_OLD", "/traits/CUSTOM_OLD"):
        assert client.call("PUT", old).status == 201
    path = path.format(provider=provider)
    answers = at_once([partial(client.call, method, path, body)] * WRITERS)
    assert statuses(answers) == {done: 1, refused: WRITERS - 1}
    if path == PROVIDERS:
        codes = {answer.code for answer in answers if answer.status == refused}
        assert codes == {"placement.duplicate_name"}
    check_trees(client)


def test_a_name_is_given_once_to_old_providers(client: Client) -> None:
    providers = grow(client, *[None] * WRITERS)
    answers = at_once(
        [
            partial(client.call, "PUT", f"{PROVIDERS}/{uuid}", {"name": "the one"})
            for uuid in providers
        ]
    )
    assert statuses(answers) == {200: 1, 409: WRITERS - 1}
    details = {answer.detail for answer in answers if answer.status == 409}
    assert all("provider the one already exists." in detail for detail in details)


def test_classes_get_ids_of_their_own(client: Client, database: Database) -> None:
    names = [f"CUSTOM_BOARD{number}" for number in range(2 * WRITERS)]
    answers = at_once(
        [partial(client.call, "PUT", f"/resource_classes/{name}") for name in names]
    )
    assert statuses(answers) == {201: len(names)}
    custom = sa.select(models.ResourceClass.id).where(models.ResourceClass.id >= 10000)
    found = {class_id for (class_id,) in rows(database, custom)}
    assert found == set(range(10000, 10000 + len(names)))


@pytest.mark.parametrize("version", ["1.18", "latest"])
def test_new_aggregates_are_shared(client: Client, version: str) -> None:
    providers = grow(client, *[None] * WRITERS)
    aggregates = [new_uuid() for _ in range(WRITERS)]
    bodies: list[Any] = [random.sample(aggregates, len(aggregates)) for _ in providers]
    if version == "latest":
        bodies = [
            {"aggregates": body, "resource_provider_generation": 0} for body in bodies
        ]
    answers = at_once(
        [
            partial(client.call, "PUT", f"{PROVIDERS}/{uuid}/aggregates", body, version)
            for uuid, body in zip(providers, bodies, strict=True)
        ]
    )
    assert statuses(answers) == {200: WRITERS}
    listed = client.get(f"{PROVIDERS}?member_of={aggregates[0]}")["resource_providers"]
    assert len(listed) == WRITERS


def test_two_trees_do_not_grow_into_each_other(client: Client) -> None:
    for _ in range(ROUNDS):
        one, one_below, other, other_below = grow(client, None, "0", None, "2")
        answers = at_once(
            [
                partial(move, client, one, other_below),
                partial(move, client, other, one_below),
            ]
        )
        assert statuses(answers) == {200: 1, 400: 1}
        refused = next(answer for answer in answers if answer.status == 400)
        assert "creating loop in the provider tree is not allowed." in refused.detail
    check_trees(client)


def test_moves_of_many_leave_trees(client: Client) -> None:
    providers = grow(client, None, "0", "1", "2", None, "4", "4", "6")

    def wander(seed: int) -> set[int]:
        chance = random.Random(seed)
        answers = [
            move(client, chance.choice(providers), chance.choice([*providers, None]))
            for _ in range(2 * ROUNDS)
        ]
        return {answer.status for answer in answers}

    seen = at_once([partial(wander, seed) for seed in range(4)])
    assert set().union(*seen) <= {200, 400}
    check_trees(client)


def test_a_child_of_a_moving_provider_finds_its_root(client: Client) -> None:
    for _ in range(ROUNDS):
        _, moving, _, there = grow(client, None, "0", "1", None)
        children = [new_uuid() for _ in range(3)]
        answers = at_once(
            [
                partial(move, client, moving, there),
                *[partial(add, client, child, moving) for child in children],
            ]
        )
        assert statuses(answers) == {200: 4}
        for child in children:
            found = client.get(f"{PROVIDERS}/{child}")
            assert found["root_provider_uuid"] == there
    check_trees(client)


def test_a_tree_is_moved_while_it_grows(client: Client) -> None:
    moving, there = grow(client, None, None)
    moved = threading.Event()

    def keep_growing() -> set[int]:
        seen = {add(client, new_uuid(), moving).status}
        while not moved.is_set():
            seen.add(add(client, new_uuid(), moving).status)
        return seen

    def move_twice() -> set[int]:
        try:
            return {move(client, moving, parent).status for parent in (there, None)}
        finally:
            moved.set()

    assert at_once([move_twice, *[keep_growing] * 3]) == [{200}] * 4
    check_trees(client)


@pytest.mark.skipif(KIND == "sqlite", reason="it has one writer at a time")
@pytest.mark.parametrize("is_older", [True, False])
def test_a_tree_that_moves_while_its_members_are_looked_up_is_found(
    client: Client, database: Database, is_older: bool
) -> None:
    first, second = grow(client, None, None)
    moving, there = (first, second) if is_older else (second, first)
    own_thread = threading.get_ident()
    moved: list[int] = []

    def move_meanwhile(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        is_own = threading.get_ident() == own_thread
        is_lookup = ".uuid IN" in statement and "FOR " not in statement
        if is_own and is_lookup and "root_provider_id" in statement and not moved:
            moved.append(0)
            with ThreadPoolExecutor(1) as pool:
                moved[0] = pool.submit(move, client, moving, there).result().status

    sa.event.listen(database.engine, "after_cursor_execute", move_meanwhile)
    try:
        answer = move(client, moving, None)
    finally:
        sa.event.remove(database.engine, "after_cursor_execute", move_meanwhile)
    assert (moved, answer.status) == ([200], 200)
    check_trees(client)


def delete(client: Client, path: str) -> Callable[[], Answer]:
    return partial(client.call, "DELETE", path)


# Two requests that exclude each other, by a number that is in names.
Pair = list[Callable[[], Answer]]


def rename_or_delete_a_class(client: Client, number: int) -> Pair:
    path = f"/resource_classes/CUSTOM_OLD{number}"
    client.call("PUT", path)
    new = {"name": f"CUSTOM_NEW{number}"}
    return [partial(client.call, "PUT", path, new, "1.6"), delete(client, path)]


def delete_a_parent_or_add_a_child(client: Client, number: int) -> Pair:
    _, parent = grow(client, None, "0")
    child = partial(add, client, new_uuid(), parent)
    return [delete(client, f"{PROVIDERS}/{parent}"), child]


def move_below_a_provider_or_delete_it(client: Client, number: int) -> Pair:
    _, moving, there = grow(client, None, "0", None)
    away = partial(move, client, moving, there)
    return [away, delete(client, f"{PROVIDERS}/{there}")]


def delete_or_use_a_provider(client: Client, number: int, of_it: str = "") -> Pair:
    provider = client.make_provider(VCPU=1)
    claim = partial(client.claim, new_uuid(), {provider: {"VCPU": 1}})
    return [delete(client, f"{PROVIDERS}/{provider}{of_it}"), claim]


def delete_or_use_a_class(client: Client, number: int) -> Pair:
    (provider,) = grow(client, None)
    name = f"CUSTOM_BOARD{number}"
    client.call("PUT", f"/resource_classes/{name}")
    path, body = f"{PROVIDERS}/{provider}/inventories", {"resource_class": name}
    use = partial(client.call, "POST", path, {**body, "total": 1})
    return [delete(client, f"/resource_classes/{name}"), use]


def delete_or_use_a_trait(client: Client, number: int) -> Pair:
    (provider,) = grow(client, None)
    name = f"CUSTOM_BLUE{number}"
    client.call("PUT", f"/traits/{name}")
    body = {"resource_provider_generation": 0, "traits": [name]}
    use = partial(client.call, "PUT", f"{PROVIDERS}/{provider}/traits", body)
    return [delete(client, f"/traits/{name}"), use]


@pytest.mark.parametrize(
    ("pair", "outcomes"),
    [
        (rename_or_delete_a_class, [(200, 404), (404, 204)]),
        (delete_a_parent_or_add_a_child, [(204, 400), (409, 200)]),
        (move_below_a_provider_or_delete_it, [(200, 409), (400, 204)]),
        (delete_or_use_a_provider, [(204, 400), (409, 204)]),
        (
            partial(delete_or_use_a_provider, of_it="/inventories"),
            [(204, 409), (409, 204)],
        ),
        (
            partial(delete_or_use_a_provider, of_it="/inventories/VCPU"),
            [(204, 409), (409, 204)],
        ),
        (delete_or_use_a_class, [(204, 400), (409, 201)]),
        (delete_or_use_a_trait, [(204, 400), (409, 200)]),
    ],
)
def test_of_two_requests_that_exclude_each_other_one_is_refused(
    client: Client,
    database: Database,
    pair: Callable[[Client, int], Pair],
    outcomes: list[tuple[int, int]],
) -> None:
    for number in range(ROUNDS):
        first, second = at_once(pair(client, number))
        assert (first.status, second.status) in outcomes
    check_trees(client)
    check_nothing_hangs(database)


def check_nothing_hangs(database: Database) -> None:
    """Check that rows refer to rows that are there."""
    provider, kind = models.ResourceProvider.id, models.ResourceClass.id
    references: list[tuple[Any, Any]] = [
        (models.Inventory.resource_provider_id, provider),
        (models.Inventory.resource_class_id, kind),
        (models.Allocation.resource_provider_id, provider),
        (models.Allocation.consumer_id, models.Consumer.uuid),
        (models.ResourceProviderTrait.resource_provider_id, provider),
        (models.ResourceProviderTrait.trait_id, models.Trait.id),
        (models.ResourceProviderAggregate.resource_provider_id, provider),
    ]
    for column, target in references:
        hanging = sa.select(column).where(column.not_in(sa.select(target)))
        assert rows(database, hanging) == [], str(column)
    with_inventories = sa.select(
        models.Inventory.resource_provider_id, models.Inventory.resource_class_id
    )
    used = sa.tuple_(
        models.Allocation.resource_provider_id, models.Allocation.resource_class_id
    )
    hanging = sa.select(models.Allocation.id).where(used.not_in(with_inventories))
    assert rows(database, hanging) == []


def rows(database: Database, query: Any) -> list[Any]:
    return database.read(lambda connection: list(connection.execute(query)))
