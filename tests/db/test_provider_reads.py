"""What is read of one provider is what its rows say, at any instance.

Two instances keep the forest and one keeps nothing. The rows are read here by SQL that
the service has no part in.
"""

import datetime
import email.utils
import random
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
import webob

from placement.db import models
from tests.client import new_uuid
from tests.instances import NOTICED_AFTER, Instance, Instances, ask
from tests.property.cloud import READS, Writer

FIELDS = (
    "total",
    "reserved",
    "min_unit",
    "max_unit",
    "step_size",
    "allocation_ratio",
)


def read(instance: Instance, path: str, version: str) -> tuple[int, Any, str | None]:
    """Return status, document and date of an answer."""
    request = webob.Request.blank(path)
    request.headers["x-auth-token"] = "admin"
    request.headers["openstack-api-version"] = f"placement {version}"
    response = request.get_response(instance.client._application)
    assert response.status_int < 500, response.body
    if response.status_int == 404:
        detail = response.json["errors"][0]["detail"]
        return 404, detail.partition("\n\n")[2].strip(), None
    return response.status_int, response.json, response.headers.get("last-modified")


def keeps(instance: Instance) -> bool:
    return instance.keeper.is_keeping


class Rows:
    """The rows of one provider."""

    def __init__(self, instance: Instance, uuid: str) -> None:
        self.uuid = uuid
        with instance.database.engine.connect() as self.connection:
            row = models.ResourceProvider
            self.provider = self.first(sa.select(row.__table__).where(row.uuid == uuid))
            if self.provider:
                self.inventories = self.having(
                    models.Inventory, models.ResourceClass, "resource_class_id"
                )
                self.traits = self.having(
                    models.ResourceProviderTrait, models.Trait, "trait_id"
                )
                self.aggregates = self.having(
                    models.ResourceProviderAggregate, models.Aggregate, "aggregate_id"
                )
                self.used = self.sums()
                self.parent = self.uuid_of(self.provider.parent_provider_id)
                self.root = self.uuid_of(self.provider.root_provider_id)

    def first(self, query: Any) -> Any:
        return self.connection.execute(query).first()

    def having(self, model: Any, named: Any, key: str) -> list[Any]:
        """Return what the provider has, each with the name of it, by its id."""
        query = (
            sa.select(model.__table__, named.__table__.columns.values()[-1])
            .join(named, named.id == getattr(model, key))
            .where(model.resource_provider_id == self.provider.id)
            .order_by(named.id)
        )
        return list(self.connection.execute(query))

    def sums(self) -> dict[int, int]:
        row = models.Allocation
        used: dict[int, int] = {}
        query = sa.select(row.resource_class_id, row.used).where(
            row.resource_provider_id == self.provider.id
        )
        for class_id, amount in self.connection.execute(query):
            used[class_id] = used.get(class_id, 0) + amount
        return used

    def uuid_of(self, provider_id: int | None) -> str | None:
        row = models.ResourceProvider
        found = self.first(sa.select(row.uuid).where(row.id == provider_id))
        return found and str(found.uuid)


def show(rows: Rows) -> tuple[Any, list[Any]]:
    base = f"/resource_providers/{rows.uuid}"
    links = ("", "inventories", "usages", "aggregates", "traits", "allocations")
    document = {
        "uuid": rows.uuid,
        "name": rows.provider.name,
        "generation": rows.provider.generation,
        "parent_provider_uuid": rows.parent,
        "root_provider_uuid": rows.root,
        "links": [
            {"rel": link or "self", "href": f"{base}/{link}".rstrip("/")}
            for link in links
        ],
    }
    document["links"].sort(key=lambda link: link["rel"])
    return document, [rows.provider]


def inventories(rows: Rows) -> tuple[Any, list[Any]]:
    records = {
        row[-1]: {field: getattr(row, field) for field in FIELDS}
        for row in rows.inventories
    }
    return {
        "resource_provider_generation": rows.provider.generation,
        "inventories": records,
    }, rows.inventories


def inventory(rows: Rows) -> tuple[Any, list[Any]]:
    for row in rows.inventories:
        if row[-1] == "VCPU":
            record = {field: getattr(row, field) for field in FIELDS}
            generation = rows.provider.generation
            return {**record, "resource_provider_generation": generation}, [row]
    return f"No inventory of class VCPU for {rows.uuid}", []


def traits(rows: Rows) -> tuple[Any, list[Any]]:
    return {
        "traits": [row[-1] for row in rows.traits],
        "resource_provider_generation": rows.provider.generation,
    }, []


def aggregates(rows: Rows) -> tuple[Any, list[Any]]:
    return {
        "aggregates": [row[-1] for row in rows.aggregates],
        "resource_provider_generation": rows.provider.generation,
    }, []


def usages(rows: Rows) -> tuple[Any, list[Any]]:
    return {
        "resource_provider_generation": rows.provider.generation,
        "usages": {
            row[-1]: rows.used.get(row.resource_class_id, 0) for row in rows.inventories
        },
    }, []


ANSWERS: dict[str, Callable[[Rows], tuple[Any, list[Any]]]] = dict(
    zip(READS, (show, inventories, inventory, traits, aggregates, usages), strict=True)
)


def check(instances: list[Instance], uuid: str, about: object) -> None:
    """Check that all instances answer every read with what the rows say."""
    rows = Rows(instances[0], uuid)
    for path, answer in ANSWERS.items():
        url = f"/resource_providers/{uuid}{path}"
        found = [read(each, url, "1.39") for each in instances]
        if not rows.provider:
            missing = f"No resource provider with uuid {uuid} found"
            assert {each[:2] for each in found} == {(404, missing)}, about
            continue
        document, dated = answer(rows)
        status = 200 if isinstance(document, dict) else 404
        for each in found:
            if "links" in each[1]:
                each[1]["links"].sort(key=lambda link: link["rel"])
            assert each[:2] == (status, document), (path, about)
            if dated:
                assert each[2] == newest(dated), (path, about)
        if not path and rows.provider:
            check_listed(instances, document, about)
        # Older documents have other members; where nothing is kept they are the same.
        old = {str(read(each, url, "1.14")) for each in instances}
        assert len(old) == 1, (path, about)


def check_listed(instances: list[Instance], shown: Any, about: object) -> None:
    """Check that lists, of all and of the tree, have a provider as it is shown."""
    uuid = shown["uuid"]
    for each in instances:
        for query in ("", f"?in_tree={uuid}", f"?uuid={uuid}"):
            document = read(each, f"/resource_providers{query}", "1.39")[1]
            [found] = [
                listed
                for listed in document["resource_providers"]
                if listed["uuid"] == uuid
            ]
            found["links"].sort(key=lambda link: link["rel"])
            assert found == shown, (query, about)


def newest(rows: list[Any]) -> str:
    last = max(row.updated_at or row.created_at for row in rows)
    return email.utils.format_datetime(
        last.replace(microsecond=0, tzinfo=datetime.UTC), usegmt=True
    )


def test_every_read_says_what_the_rows_say(instances: Instances) -> None:
    one, other = instances.start(), instances.start()
    plain = instances.start(keeps=False)
    seed = random.randrange(10**6)
    print("seed", seed)
    writer = Writer(random.Random(seed), [one.client, other.client, plain.client])
    for step in range(60):
        act = writer.write()
        # The next request checks whether others write, unless that is done ahead of it.
        for each in (one, other):
            each.clock.now += 2 * NOTICED_AFTER
            if step % 2:
                each.keeper.watch(each.database)
        for uuid in (writer.pick(), new_uuid()):
            check([one, other, plain], uuid, (seed, step, act))
    assert one.keeper.is_keeping
    assert other.keeper.is_keeping


def test_the_order_is_that_of_creation(instances: Instances) -> None:
    one, other = instances.start(), instances.start()
    client = one.client
    for name in ("CUSTOM_B", "CUSTOM_A", "CUSTOM_C"):
        assert client.call("PUT", f"/traits/{name}").status == 201
    first, second = sorted([new_uuid(), new_uuid()], reverse=True)
    host, witness = client.make_provider(VCPU=8), client.make_provider(VCPU=8)
    for provider, listed in ((witness, [first]), (host, [second, first])):
        path = f"/resource_providers/{provider}"
        body: Any = {"resource_provider_generation": 1, "aggregates": listed}
        assert client.call("PUT", f"{path}/aggregates", body).status == 200
        body = {
            "resource_provider_generation": 2,
            "traits": ["CUSTOM_A", "HW_CPU_X86_AVX", "CUSTOM_B"],
        }
        assert client.call("PUT", f"{path}/traits", body).status == 200
    path = f"/resource_providers/{host}"
    for each in (one, other):
        assert each.client.get(f"{path}/aggregates")["aggregates"] == [first, second]
        assert each.client.get(f"{path}/traits")["traits"] == [
            "HW_CPU_X86_AVX",
            "CUSTOM_B",
            "CUSTOM_A",
        ]


def test_a_list_of_one_host_may_depend_on_others(instances: Instances) -> None:
    # Whether there is any host with the trait decides whether the class is looked at.
    one, other = instances.start(), instances.start()
    host, elsewhere = (other.client.make_provider(VCPU=8) for _ in range(2))
    other.client.call("PUT", "/traits/CUSTOM_RARE")
    query = f"uuid={host}&required=CUSTOM_RARE&resources=CUSTOM_MISSING:1"
    assert ask(one, f"/resource_providers?{query}") == {"resource_providers": []}
    body = {"resource_provider_generation": 1, "traits": ["CUSTOM_RARE"]}
    path = f"/resource_providers/{elsewhere}/traits"
    assert other.client.call("PUT", path, body).status == 200
    assert "CUSTOM_MISSING" in ask(one, f"/resource_providers?{query}")


def test_a_name_that_changes_is_seen_in_what_has_not_changed(
    instances: Instances,
) -> None:
    one, other = instances.start(), instances.start()
    assert other.client.call("PUT", "/resource_classes/CUSTOM_OLD").status == 201
    host = other.client.make_provider(CUSTOM_OLD=8)
    path = f"/resource_providers/{host}/usages"
    assert one.client.get(path)["usages"] == {"CUSTOM_OLD": 0}
    renamed = {"name": "CUSTOM_NEW"}
    answer = other.client.call("PUT", "/resource_classes/CUSTOM_OLD", renamed, "1.6")
    assert answer.status == 200
    assert one.client.get(path)["usages"] == {"CUSTOM_NEW": 0}
