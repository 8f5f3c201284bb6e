"""What is read of one provider: dates, order, and what others have changed."""

import datetime
import email.utils
from typing import Any

import sqlalchemy as sa

from placement.db import models
from tests.client import new_uuid
from tests.instances import Instances, ask

CREATED = datetime.datetime(2018, 5, 30, 12, 30, 15)
UPDATED = datetime.datetime(2018, 6, 1, 8, 0, 1)


def test_the_date_is_that_of_the_newest_row(instances: Instances) -> None:
    one = instances.start(keeps=False)
    host = one.client.make_provider(VCPU=8, DISK_GB=8)

    def date_of(model: Any, path: str, first: Any, last: Any) -> Any:
        ids = sa.select(sa.func.min(model.id)).scalar_subquery()
        with one.database.engine.begin() as connection:
            times = {"created_at": CREATED, "updated_at": first}
            connection.execute(sa.update(model).values(times))
            is_last = model.id != ids
            connection.execute(sa.update(model).where(is_last).values(updated_at=last))
        shown = one.client.send("GET", f"/resource_providers/{host}{path}")
        return email.utils.parsedate_to_datetime(shown.headers["last-modified"])

    for path, model in (
        ("", models.ResourceProvider),
        ("/inventories", models.Inventory),
        ("/inventories/VCPU", models.Inventory),
    ):
        for date in (None, UPDATED):
            shown = (date or CREATED).replace(tzinfo=datetime.UTC)
            assert date_of(model, path, date, date) == shown
    newest = date_of(models.Inventory, "/inventories", None, UPDATED)
    assert newest == UPDATED.replace(tzinfo=datetime.UTC)


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
