"""Each operation that changes something leaves entries, and these say what it was."""

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
import webob

from placement.db import models
from placement.demonstration import planting
from placement.model.journal import Document
from placement.model.lease import BATON
from placement.objects import (
    clock,
    leasing,
    online_migration,
    standard_name,
)
from placement.objects.journal import filing
from placement.objects.ledger import Ledger
from placement.objects.soundness import checking
from placement.objects.transaction import Transaction
from placement.routes import ROUTES
from placement_foundation.database.storage import Database
from tests import backends
from tests.client import Client, new_uuid, wants
from tests.witness import Witness

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

CHANGES = "/ledger/v1/changes"
# What a list of entries is compared by.
Short = tuple[str, str | None, Any, Any]


class Scene:
    """A service, the entries that it writes, and some things to begin with."""

    def __init__(self, client: Client, database: Database) -> None:
        self.client = client
        self._database = database
        self.provider = client.make_provider(VCPU=16, MEMORY_MB=1024)
        self.other = client.make_provider(VCPU=16)
        self.consumer = new_uuid()
        self.ok("PUT", "/traits/CUSTOM_OLD")
        self.ok("PUT", "/resource_classes/CUSTOM_OLD")
        self.entries()

    def ok(self, method: str, path: str, body: Any = None, version: str = "") -> None:
        answer = self.client.call(method, path, body, version or "latest")
        assert answer.status < 300, answer

    def entries(self) -> list[Document]:
        """Return the entries since the last call, the oldest first."""
        found = self._database.read(filing.list_waiting)
        filing.file_all(self._database)
        return found

    def claim(self, **amounts: int) -> None:
        about = wants({self.provider: amounts})
        self.ok("PUT", f"/allocations/{self.consumer}", about)
        self.entries()

    def inventories(self, **totals: int) -> Any:
        return {
            "resource_provider_generation": self.client.generation(self.provider),
            "inventories": {name: {"total": total} for name, total in totals.items()},
        }

    def place(self, root: str | None = None, parent: str | None = None) -> Any:
        return {
            "name": self.provider,
            "parent": parent,
            "root": root or self.provider,
        }


def record(total: int) -> Any:
    return {
        "total": total,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": 2147483647,
        "step_size": 1,
        "allocation_ratio": 1.0,
    }


@pytest.fixture
def scene(application: "WSGIApplication", database: Database) -> Scene:
    return Scene(Client(application), database)


# Each story changes something through one operation, and returns what its entries are.
Story = Callable[[Scene], list[Short]]


def create_provider(scene: Scene) -> list[Short]:
    uuid = new_uuid()
    scene.ok("POST", "/resource_providers", {"uuid": uuid, "name": "one"})
    after = {"name": "one", "parent": None, "root": uuid}
    return [("provider.created", uuid, None, after)]


def rename_and_move(scene: Scene) -> list[Short]:
    child = new_uuid()
    below = {"uuid": child, "name": "child", "parent_provider_uuid": scene.provider}
    scene.ok("POST", "/resource_providers", below)
    scene.entries()
    body = {"name": "new name", "parent_provider_uuid": scene.other}
    scene.ok("PUT", f"/resource_providers/{scene.provider}", body)
    moved = {"name": "new name", "parent": scene.other, "root": scene.other}
    before = {"name": "child", "parent": scene.provider, "root": scene.provider}
    return [
        ("provider.updated", scene.provider, scene.place(), moved),
        ("provider.updated", child, before, {**before, "root": scene.other}),
    ]


def delete_provider(scene: Scene) -> list[Short]:
    scene.ok("DELETE", f"/resource_providers/{scene.provider}")
    return [("provider.deleted", scene.provider, scene.place(), None)]


def create_inventory(scene: Scene) -> list[Short]:
    body = {"resource_class": "DISK_GB", "total": 7}
    scene.ok("POST", f"/resource_providers/{scene.provider}/inventories", body)
    return [("inventory.changed", scene.provider, {}, {"DISK_GB": record(7)})]


def replace_inventories(scene: Scene) -> list[Short]:
    body = scene.inventories(MEMORY_MB=1024, DISK_GB=7)
    scene.ok("PUT", f"/resource_providers/{scene.provider}/inventories", body)
    return [
        (
            "inventory.changed",
            scene.provider,
            {"VCPU": record(16)},
            {"DISK_GB": record(7)},
        )
    ]


def delete_inventories(scene: Scene) -> list[Short]:
    scene.ok("DELETE", f"/resource_providers/{scene.provider}/inventories")
    before = {"VCPU": record(16), "MEMORY_MB": record(1024)}
    return [("inventory.changed", scene.provider, before, {})]


def update_inventory(scene: Scene) -> list[Short]:
    generation = scene.client.generation(scene.provider)
    body = {"resource_provider_generation": generation, "total": 8}
    scene.ok("PUT", f"/resource_providers/{scene.provider}/inventories/VCPU", body)
    before, after = {"VCPU": record(16)}, {"VCPU": record(8)}
    return [("inventory.changed", scene.provider, before, after)]


def delete_inventory(scene: Scene) -> list[Short]:
    scene.ok("DELETE", f"/resource_providers/{scene.provider}/inventories/VCPU")
    return [("inventory.changed", scene.provider, {"VCPU": record(16)}, {})]


def replace_aggregates(scene: Scene) -> list[Short]:
    path, old, new = f"/resource_providers/{scene.provider}/aggregates", *two()
    scene.ok("PUT", path, [old], "1.1")
    scene.entries()
    scene.ok("PUT", path, [new], "1.1")
    after = {"added": [new], "removed": [old]}
    return [("aggregates.changed", scene.provider, None, after)]


def two() -> list[str]:
    return [new_uuid(), new_uuid()]


def replace_traits(scene: Scene) -> list[Short]:
    path = f"/resource_providers/{scene.provider}/traits"
    generation = scene.client.generation(scene.provider)
    body = {"traits": ["CUSTOM_OLD"], "resource_provider_generation": generation}
    scene.ok("PUT", path, body)
    after = {"added": ["CUSTOM_OLD"], "removed": []}
    return [("traits.changed", scene.provider, None, after)]


def delete_traits(scene: Scene) -> list[Short]:
    replace_traits(scene)
    scene.entries()
    scene.ok("DELETE", f"/resource_providers/{scene.provider}/traits")
    after = {"added": [], "removed": ["CUSTOM_OLD"]}
    return [("traits.changed", scene.provider, None, after)]


def claim(scene: Scene) -> list[Short]:
    amounts = {scene.provider: {"VCPU": 2}, scene.other: {"VCPU": 1}}
    scene.ok("PUT", f"/allocations/{scene.consumer}", wants(amounts))
    return [("allocations.changed", scene.consumer, {}, amounts)]


def claim_for_another_project(scene: Scene) -> list[Short]:
    scene.claim(VCPU=2)
    body = wants({scene.provider: {"VCPU": 3}}, 1, project="team-red")
    scene.ok("POST", "/allocations", {scene.consumer: body})
    owner = {
        "project_id": "team-blue",
        "user_id": "robot-7",
        "consumer_type": "INSTANCE",
    }
    before, after = {scene.provider: {"VCPU": 2}}, {scene.provider: {"VCPU": 3}}
    new_owner = {**owner, "project_id": "team-red"}
    return [
        ("consumer.changed", scene.consumer, owner, new_owner),
        ("allocations.changed", scene.consumer, before, after),
    ]


def delete_allocations(scene: Scene) -> list[Short]:
    scene.claim(VCPU=2)
    scene.ok("DELETE", f"/allocations/{scene.consumer}")
    before = {scene.provider: {"VCPU": 2}}
    return [("allocations.changed", scene.consumer, before, {})]


def reshape(scene: Scene) -> list[Short]:
    scene.claim(VCPU=2)
    inventories = {scene.provider: scene.inventories(MEMORY_MB=1024, PCPU=4)}
    claims = {scene.consumer: wants({scene.provider: {"PCPU": 2}}, 1)}
    body = {"inventories": inventories, "allocations": claims}
    scene.ok("POST", "/reshaper", body)
    old, new = {scene.provider: {"VCPU": 2}}, {scene.provider: {"PCPU": 2}}
    return [
        ("allocations.changed", scene.consumer, old, new),
        (
            "inventory.changed",
            scene.provider,
            {"VCPU": record(16)},
            {"PCPU": record(4)},
        ),
    ]


def create_trait(scene: Scene) -> list[Short]:
    scene.ok("PUT", "/traits/CUSTOM_NEW")
    return [("trait.created", "CUSTOM_NEW", None, None)]


def delete_trait(scene: Scene) -> list[Short]:
    scene.ok("DELETE", "/traits/CUSTOM_OLD")
    return [("trait.deleted", "CUSTOM_OLD", None, None)]


def create_class(scene: Scene) -> list[Short]:
    scene.ok("POST", "/resource_classes", {"name": "CUSTOM_NEW"})
    return [("resource_class.created", "CUSTOM_NEW", None, None)]


def ensure_class(scene: Scene) -> list[Short]:
    scene.ok("PUT", "/resource_classes/CUSTOM_NEW")
    return [("resource_class.created", "CUSTOM_NEW", None, None)]


def rename_class(scene: Scene) -> list[Short]:
    body = {"name": "CUSTOM_NEW"}
    scene.ok("PUT", "/resource_classes/CUSTOM_OLD", body, "1.2")
    return [("resource_class.renamed", "CUSTOM_OLD", None, body)]


def delete_class(scene: Scene) -> list[Short]:
    scene.ok("DELETE", "/resource_classes/CUSTOM_OLD")
    return [("resource_class.deleted", "CUSTOM_OLD", None, None)]


def place(scene: Scene) -> list[Short]:
    body = {
        "query": "resources=VCPU:2,MEMORY_MB:8",
        "consumers": [scene.consumer],
        "project_id": "blue",
        "user_id": "ann",
        "consumer_type": "INSTANCE",
    }
    scene.ok("POST", "/ledger/v1/placements", body)
    after = {scene.provider: {"VCPU": 2, "MEMORY_MB": 8}}
    return [("allocations.changed", scene.consumer, {}, after)]


def lease(scene: Scene) -> str:
    """Give the consumer a lease, and return when it ends."""
    path = f"/ledger/v1/leases/{scene.consumer}"
    scene.ok("PUT", path, {"seconds": 300})
    return str(scene.client.get(path)["expires_at"])


def grant_lease(scene: Scene) -> list[Short]:
    scene.claim(VCPU=2)
    ends = lease(scene)
    return [("lease.granted", scene.consumer, None, {"expires_at": ends})]


def renew_lease(scene: Scene) -> list[Short]:
    scene.claim(VCPU=2)
    before = lease(scene)
    scene.entries()
    ends = {"expires_at": lease(scene)}
    return [("lease.renewed", scene.consumer, {"expires_at": before}, ends)]


def confirm_lease(scene: Scene) -> list[Short]:
    scene.claim(VCPU=2)
    ends = lease(scene)
    scene.entries()
    scene.ok("DELETE", f"/ledger/v1/leases/{scene.consumer}")
    return [("lease.confirmed", scene.consumer, {"expires_at": ends}, None)]


def declare(scene: Scene) -> list[Short]:
    uuid = new_uuid()
    tree = {
        "name": "declared",
        "uuid": uuid,
        "inventories": {"VCPU": {"total": 4}},
        "traits": ["CUSTOM_OLD"],
    }
    scene.ok("POST", "/ledger/v1/apply", {"trees": [tree]})
    after = {"name": "declared", "parent": None, "root": uuid}
    traits = {"added": ["CUSTOM_OLD"], "removed": []}
    return [
        ("provider.created", uuid, None, after),
        ("inventory.changed", uuid, {}, {"VCPU": record(4)}),
        ("traits.changed", uuid, None, traits),
    ]


PROVIDER = "/resource_providers/{uuid}"
STORIES: dict[tuple[str, str], list[Story]] = {
    ("POST", "/allocations"): [claim_for_another_project],
    ("PUT", "/allocations/{consumer_uuid}"): [claim],
    ("DELETE", "/allocations/{consumer_uuid}"): [delete_allocations],
    ("POST", "/reshaper"): [reshape],
    ("POST", "/ledger/v1/placements"): [place],
    ("PUT", "/ledger/v1/leases/{consumer_uuid}"): [grant_lease, renew_lease],
    ("DELETE", "/ledger/v1/leases/{consumer_uuid}"): [confirm_lease],
    ("POST", "/ledger/v1/apply"): [declare],
    ("POST", "/resource_classes"): [create_class],
    ("PUT", "/resource_classes/{name}"): [ensure_class, rename_class],
    ("DELETE", "/resource_classes/{name}"): [delete_class],
    ("POST", "/resource_providers"): [create_provider],
    ("PUT", PROVIDER): [rename_and_move],
    ("DELETE", PROVIDER): [delete_provider],
    ("POST", f"{PROVIDER}/inventories"): [create_inventory],
    ("PUT", f"{PROVIDER}/inventories"): [replace_inventories],
    ("DELETE", f"{PROVIDER}/inventories"): [delete_inventories],
    ("PUT", PROVIDER + "/inventories/{resource_class}"): [update_inventory],
    ("DELETE", PROVIDER + "/inventories/{resource_class}"): [delete_inventory],
    ("PUT", f"{PROVIDER}/aggregates"): [replace_aggregates],
    ("PUT", f"{PROVIDER}/traits"): [replace_traits],
    ("DELETE", f"{PROVIDER}/traits"): [delete_traits],
    ("PUT", "/traits/{name}"): [create_trait],
    ("DELETE", "/traits/{name}"): [delete_trait],
}
# Operations that change nothing that the journal is about.
BESIDE = {
    # It changes nothing.
    ("POST", "/ledger/v1/what-if"),
    # What an audit has found is a note about the ledger.
    ("PUT", "/ledger/v1/audits/{name}"),
    ("DELETE", "/ledger/v1/audits/{name}"),
}


def test_every_operation_that_writes_has_a_story() -> None:
    writing = {
        (method, path)
        for path, methods in ROUTES.items()
        for method, operation in methods.items()
        if method != "GET"
    }
    assert writing == STORIES.keys() | BESIDE


@pytest.mark.parametrize(
    ("row", "story"),
    [(row, story) for row, stories in STORIES.items() for story in stories],
    ids=lambda value: value.__name__ if callable(value) else " ".join(value),
)
def test_an_operation_leaves_these_entries(
    scene: Scene, row: tuple[str, str], story: Story
) -> None:
    expected = story(scene)
    found = scene.entries()
    short = [(e["type"], e["subject"], e["before"], e["after"]) for e in found]
    assert sorted(short, key=repr) == sorted(expected, key=repr)
    for entry in found:
        assert entry["request"].partition(" ")[0] == row[0]
        assert entry["request_id"].startswith("req-")
        assert entry["user_id"] == "admin"
        assert entry["time"].endswith("Z")


def test_an_entry_says_everything_about_a_claim(scene: Scene) -> None:
    claim(scene)
    [entry] = scene.entries()
    assert entry["generation"] == 1
    assert entry["root"] is None
    assert sorted(entry["roots"]) == sorted([scene.provider, scene.other])
    assert entry["names"] == {each: each for each in (scene.provider, scene.other)}
    assert entry["consumer"]["project_id"] == "team-blue"
    assert entry["request"] == f"PUT /allocations/{scene.consumer}"


def test_an_entry_says_who_has_asked_and_names_what_it_mentions(
    application: "WSGIApplication", scene: Scene
) -> None:
    host, consumer = new_uuid(), new_uuid()
    below = {"name": "compute-7", "uuid": host, "inventories": {"VCPU": {"total": 4}}}
    scene.ok("POST", "/ledger/v1/apply", {"trees": [below]})
    scene.entries()
    known = f"req-{new_uuid()}"
    request = webob.Request.blank(f"/allocations/{consumer}", method="PUT")
    request.headers.update(
        {
            "x-auth-token": "admin:ops",
            "x-user-name": "Ann",
            "x-project-name": "operations",
            "x-openstack-request-id": known,
            "openstack-api-version": "placement latest",
        }
    )
    request.content_type = "application/json"
    request.json = wants({host: {"VCPU": 2}}, project="blue")
    answer = request.get_response(application)
    assert answer.status_int == 204
    [entry] = scene.entries()
    assert entry["names"] == {host: "compute-7"}
    assert entry["root"] == host
    assert (entry["user_id"], entry["user_name"]) == ("admin", "Ann")
    assert (entry["project_id"], entry["project_name"]) == ("ops", "operations")
    assert entry["consumer"]["project_id"] == "blue"
    assert entry["global_request_id"] == known
    assert entry["request_id"] == answer.headers["x-openstack-request-id"] != known


def test_the_time_is_that_of_the_database(
    scene: Scene, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backends.KIND == "sqlite":
        pytest.skip("its clock is that of this process")
    long_ago = datetime.datetime(2001, 1, 1)
    monkeypatch.setattr(clock, "now", lambda: long_ago)
    claim(scene)
    [entry] = scene.entries()
    told = datetime.datetime.fromisoformat(entry["time"]).timestamp()
    assert abs(told - database.read(clock.load_milliseconds) / 1000) < 60


def test_what_changes_nothing_leaves_no_entry(scene: Scene) -> None:
    replace_traits(scene)
    scene.claim(VCPU=2)
    path = f"/resource_providers/{scene.provider}"
    again = {"traits": ["CUSTOM_OLD"], "resource_provider_generation": 4}
    again["resource_provider_generation"] = scene.client.generation(scene.provider)
    scene.ok("PUT", f"{path}/traits", again)
    same = scene.inventories(VCPU=16, MEMORY_MB=1024)
    scene.ok("PUT", f"{path}/inventories", same)
    scene.ok("PUT", path, {"name": scene.provider})
    scene.ok("PUT", "/traits/CUSTOM_OLD")
    scene.ok("PUT", "/resource_classes/CUSTOM_OLD")
    amounts = {scene.provider: {"VCPU": 2}}
    scene.ok("PUT", f"/allocations/{scene.consumer}", wants(amounts, 1))
    assert scene.entries() == []


def test_a_ratio_of_many_digits_is_recorded_once_and_as_it_is_stored(
    scene: Scene,
) -> None:
    path = f"/resource_providers/{scene.provider}/inventories/VCPU"
    body: Any = {"total": 16, "allocation_ratio": 1.23456789}
    for _ in range(2):
        generation = scene.client.generation(scene.provider)
        scene.ok("PUT", path, {**body, "resource_provider_generation": generation})
    [entry] = scene.entries()
    stored = scene.client.get(path)["allocation_ratio"]
    assert entry["after"]["VCPU"]["allocation_ratio"] == stored


def test_a_refused_write_leaves_no_entry(scene: Scene) -> None:
    body = wants({scene.provider: {"VCPU": 99}})
    answer = scene.client.call("PUT", f"/allocations/{scene.consumer}", body)
    assert answer.status == 409
    assert scene.entries() == []


def test_the_generation_is_that_after_the_change(scene: Scene) -> None:
    replace_inventories(scene)
    [entry] = scene.entries()
    assert entry["generation"] == scene.client.generation(scene.provider)


# What is written without a request, each story on a scene with one claim.
Work = Callable[[Scene, Ledger], None]


def expire_lease(scene: Scene, ledger: Ledger) -> None:
    lease(scene)
    scene.entries()
    with ledger.database.engine.begin() as connection:
        is_it = models.LEASES.c.consumer_id != BATON
        connection.execute(sa.update(models.LEASES).where(is_it).values(expires_at=1))
    leasing.end_all_due(ledger)


def repair(scene: Scene, ledger: Ledger) -> None:
    with ledger.database.engine.begin() as connection:
        connection.execute(
            sa.update(models.ResourceProvider).values(root_provider_id=None)
        )
        connection.execute(
            sa.update(models.Allocation).values(consumer_id=new_uuid().upper())
        )
        connection.execute(sa.delete(models.FOREST_STAMPS))

    ledger.write(mend)


def mend(tx: Transaction) -> None:
    assert checking.repair(tx, list(checking.check(tx.connection)))


@pytest.mark.damage
def test_a_repair_says_which_roots_it_has_set(scene: Scene, ledger: Ledger) -> None:
    lost = sa.update(models.ResourceProvider).values(root_provider_id=None)
    with ledger.database.engine.begin() as connection:
        connection.execute(lost)
    ledger.write(mend)
    *mended, gap = scene.entries()
    assert gap["type"] == "journal.gap"
    assert [each["type"] for each in mended] == ["provider.updated"] * 2
    for each, provider in zip(mended, (scene.provider, scene.other), strict=True):
        after = {"name": provider, "parent": None, "root": provider}
        assert each["subject"] == each["root"] == provider
        assert (each["before"], each["after"]) == ({**after, "root": None}, after)
        assert each["generation"] == scene.client.generation(provider)


def set_roots(scene: Scene, ledger: Ledger) -> None:
    provider = models.ResourceProvider
    with ledger.database.engine.begin() as connection:
        connection.execute(sa.update(provider).values(root_provider_id=None))
    assert ledger.write(lambda tx: online_migration.set_root_provider_ids(tx, 50))


def create_consumers(scene: Scene, ledger: Ledger) -> None:
    with ledger.database.engine.begin() as connection:
        connection.execute(sa.delete(models.Consumer))
    assert ledger.write(
        lambda tx: online_migration.create_incomplete_consumers(
            tx, 50, project="p", user="u"
        )
    )


def add_standard_names(scene: Scene, ledger: Ledger) -> None:
    with ledger.database.engine.begin() as connection:
        for model, name in (
            (models.Trait, "HW_CPU_X86_AVX"),
            (models.ResourceClass, "VGPU"),
        ):
            connection.execute(sa.delete(model).where(model.name == name))
    standard_name.synchronise(ledger)


def plant(scene: Scene, ledger: Ledger) -> None:
    ledger.database.write(backends.empty_placement)
    ledger.write(lambda tx: planting.plant(tx, 1))


def uproot(scene: Scene, ledger: Ledger) -> None:
    plant(scene, ledger)
    scene.entries()
    ledger.write(planting.remove)


def copy(scene: Scene, ledger: Ledger) -> None:
    """Fill the database with a copy of itself, by way of another one."""
    with backends.embedded() as other:
        backends.copy(ledger.database, other)
        ledger.database.write(backends.empty_placement)
        backends.copy(other, ledger.database)


@pytest.mark.damage
@pytest.mark.parametrize(
    ("work", "kinds"),
    [
        (expire_lease, ["allocations.changed", "lease.expired"]),
        (repair, ["journal.gap", "provider.updated", "provider.updated"]),
        (set_roots, ["journal.gap"]),
        (create_consumers, ["journal.gap"]),
        (add_standard_names, ["resource_class.created", "trait.created"]),
        (plant, ["journal.gap", "resource_class.created"]),
        (uproot, ["journal.gap"]),
    ],
)
def test_work_without_a_request_leaves_entries_as_well(
    work: Work, kinds: list[str], scene: Scene, ledger: Ledger
) -> None:
    scene.claim(VCPU=2)
    work(scene, ledger)
    assert sorted(each["type"] for each in scene.entries()) == kinds


def test_a_forgotten_entry_is_noticed(
    scene: Scene, watched: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Transaction, "record", lambda *unused: None)
    claim(scene)
    found, watched.missing = watched.missing, []
    assert any("changed allocations" in each for each in found), found


def test_a_copy_is_another_journal(scene: Scene, ledger: Ledger) -> None:
    scene.claim(VCPU=2)
    cursor = scene.client.get(f"{CHANGES}?since=now")["cursor"]
    copy(scene, ledger)
    gone = scene.client.call("GET", f"{CHANGES}?since={cursor}")
    assert (gone.status, gone.code) == (410, "placement.cursor_gone")
