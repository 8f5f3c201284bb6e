"""Each operation that changes something leaves entries, and these say what it was."""

import collections
import datetime
import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
import webob

from placement.db import models
from placement.demonstration import planting
from placement.model.journal import Document
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
from placement_foundation.database.storage import Database
from tests import backends
from tests.client import Client, new_uuid, wants
from tests.property.cloud import Writer
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


class Replica:
    """A cloud as the entries of the journal tell it."""

    def __init__(self) -> None:
        self.providers: dict[str, Any] = {}
        self.inventories = collections.defaultdict[str, dict[str, Any]](dict)
        self.traits = collections.defaultdict[str, set[str]](set)
        self.aggregates = collections.defaultdict[str, set[str]](set)
        self.allocations: dict[str, Any] = {}
        self.owners: dict[str, Any] = {}
        self.names: dict[str, set[str]] = {"trait": set(), "resource_class": set()}

    def follow(self, entry: Document) -> None:
        """Make a change; what was there before must be what the entry says."""
        room = entry["type"].partition(".")[0]
        uuid, before, after = (entry[each] for each in ("subject", "before", "after"))
        if room == "provider":
            assert self.providers.pop(uuid, None) == before
            if after:
                self.providers[uuid] = after
            else:
                for kept in (self.inventories, self.traits, self.aggregates):
                    kept.pop(uuid, None)
        elif room == "inventory":
            here = self.inventories[uuid]
            assert before == {name: here.pop(name) for name in before}
            assert here.keys().isdisjoint(after)
            here.update(after)
        elif room in ("traits", "aggregates"):
            members: set[str] = getattr(self, room)[uuid]
            assert members.issuperset(after["removed"])
            assert members.isdisjoint(after["added"])
            members.difference_update(after["removed"])
            members.update(after["added"])
        elif room == "consumer":
            assert self.owners[uuid] == before
            self.owners[uuid] = after
        elif room == "allocations":
            assert self.allocations.pop(uuid, {}) == before
            assert self.owners.setdefault(uuid, entry["consumer"]) == entry["consumer"]
            if after:
                self.allocations[uuid] = after
            else:
                del self.owners[uuid]
        else:
            self.name(self.names[room], entry)

    def name(self, names: set[str], entry: Document) -> None:
        name, new = entry["subject"], entry["after"] and entry["after"]["name"]
        if entry["type"].endswith(".created"):
            assert name not in names
            names.add(name)
            return
        names.remove(name)
        if new:
            names.add(new)
            for amounts in (*self.inventories.values(), *self.amounts()):
                if name in amounts:
                    amounts[new] = amounts.pop(name)

    def amounts(self) -> Iterator[dict[str, Any]]:
        for allocations in self.allocations.values():
            yield from allocations.values()

    def check(self, client: Client) -> None:
        """Check that the service says the same."""
        listed = client.get("/resource_providers")["resource_providers"]
        assert self.providers == {
            each["uuid"]: {
                "name": each["name"],
                "parent": each["parent_provider_uuid"],
                "root": each["root_provider_uuid"],
            }
            for each in listed
        }
        for uuid in self.providers:
            path = f"/resource_providers/{uuid}"
            found = client.get(f"{path}/inventories")["inventories"]
            assert found == self.inventories[uuid]
            assert set(client.get(f"{path}/traits")["traits"]) == self.traits[uuid]
            found = client.get(f"{path}/aggregates")["aggregates"]
            assert set(found) == self.aggregates[uuid]
        for uuid, amounts in self.allocations.items():
            document = client.get(f"/allocations/{uuid}")
            found = document["allocations"]
            assert {each: found[each]["resources"] for each in found} == amounts
            owner = self.owners[uuid]
            assert {name: document[name] for name in owner} == owner
        found = client.get("/traits?name=startswith:CUSTOM_")["traits"]
        assert set(found) == self.names["trait"]
        found = client.get("/resource_classes")["resource_classes"]
        custom = {each["name"] for each in found if each["name"][:7] == "CUSTOM_"}
        assert custom == self.names["resource_class"]


def write_a_part(writer: Writer) -> None:
    """Write one inventory, or remove what a provider has."""
    path = f"/resource_providers/{(provider := writer.pick())}"
    generation = writer.generation(provider)
    body = {"total": writer.rng.choice([4, 8]), "allocation_ratio": 1.23456789}
    guarded = {**body, "resource_provider_generation": generation}
    one = f"{path}/inventories/VCPU"
    method, path, sent = writer.rng.choice(
        [
            ("POST", f"{path}/inventories", {**body, "resource_class": "VCPU"}),
            ("PUT", one, guarded),
            ("DELETE", one, None),
            ("DELETE", f"{path}/inventories", None),
            ("DELETE", f"{path}/traits", None),
        ]
    )
    writer.call(method, path, sent)


def test_a_replica_that_follows_the_journal_is_what_the_service_says(
    client: Client,
) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    writer, replica = Writer(random.Random(seed), [client]), Replica()
    cursor, more, kinds = "oldest", False, set()
    for step in range(150):
        act = writer.write()
        write_a_part(writer)
        more = True
        while more:
            page = client.get(f"{CHANGES}?since={cursor}")
            cursor, more = page["cursor"], page["more"]
            for entry in page["changes"]:
                replica.follow(entry)
                assert entry["request_id"].startswith("req-")
                assert (entry["user_id"], entry["time"][-1]) == ("admin", "Z"), act
                kinds.add(entry["type"])
        if not step % 10:
            replica.check(client)
    replica.check(client)
    assert len(kinds) > 8, kinds


# Each story changes something through one operation, and returns what its entries are.
Story = Callable[[Scene], list[Short]]


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


def replace_traits(scene: Scene) -> list[Short]:
    path = f"/resource_providers/{scene.provider}/traits"
    generation = scene.client.generation(scene.provider)
    body = {"traits": ["CUSTOM_OLD"], "resource_provider_generation": generation}
    scene.ok("PUT", path, body)
    after = {"added": ["CUSTOM_OLD"], "removed": []}
    return [("traits.changed", scene.provider, None, after)]


def claim(scene: Scene) -> list[Short]:
    amounts = {scene.provider: {"VCPU": 2}, scene.other: {"VCPU": 1}}
    scene.ok("PUT", f"/allocations/{scene.consumer}", wants(amounts))
    return [("allocations.changed", scene.consumer, {}, amounts)]


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


@pytest.mark.parametrize(
    "story", [place, grant_lease, renew_lease, confirm_lease, declare]
)
def test_an_operation_of_the_ledger_leaves_these_entries(
    scene: Scene, story: Story
) -> None:
    expected = story(scene)
    found = scene.entries()
    short = [(e["type"], e["subject"], e["before"], e["after"]) for e in found]
    assert sorted(short, key=repr) == sorted(expected, key=repr)
    assert all("/ledger/v1/" in entry["request"] for entry in found)


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
        connection.execute(sa.update(models.LEASES).values(expires_at=1))
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
    assert checking.repair(tx)


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
        (uproot, ["journal.gap", *["provider.deleted"] * 4]),
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
