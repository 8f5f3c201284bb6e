"""Tables as files: all rows, every character, and no cell that a spreadsheet runs."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client import Client
from tests.console import stage
from tests.console.conftest import Visit

CONSUMER = "6f3d3c1a-90a2-4b4e-8e0e-0d4f6a1f7b01"
RACK = "5c1f0000-0000-4000-8000-000000000017"
# Formulas, quotation marks, separators, lines, and characters of all lengths.
HOST = '=1+1,"größe"; 😀'
DISABLED = "@SUM(1)\u202e"
BARE = '-2+3|"x"'
PROJECT = "+cmd|'/C calc'!A1"
PROJECT_NAME = "=größe, 😀"
RACK_NAME = "@rack\t17"
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
Cloud = tuple[str, Client, str]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """Serve hosts of such names; give the URL, a client and the one that is used."""
    with stage.fresh(tmp_path_factory.mktemp("names")) as (url, client):
        trees = [
            {
                "name": HOST,
                "inventories": {"VCPU": 8, "CUSTOM_CARD": 2},
                "traits": ["CUSTOM_TRUSTED"],
                "aggregates": [RACK_NAME],
            },
            {
                "name": DISABLED,
                "inventories": {"VCPU": 4},
                "traits": ["COMPUTE_STATUS_DISABLED"],
            },
            {"name": BARE},
        ]
        names = {
            "aggregates": {RACK_NAME: RACK},
            "projects": {PROJECT_NAME: PROJECT},
        }
        done = client.call("POST", "/ledger/v1/apply", {"trees": trees, **names})
        host = done.document["trees"][0]["uuid"]
        claimed = client.claim(CONSUMER, {host: {"VCPU": 6}}, project=PROJECT)
        assert claimed.status == 204
        lease = f"/ledger/v1/leases/{CONSUMER}"
        assert client.call("PUT", lease, {"seconds": 3000}).status == 200
        # More is used than there is, and declared was more.
        generation = client.generation(host)
        body = {"resource_provider_generation": generation, "total": 4}
        path = f"/resource_providers/{host}/inventories/VCPU"
        assert client.call("PUT", path, body).status == 200
        audit = {
            "claims": 1,
            "living": 0,
            "not_judged": 0,
            "counts": {"orphan": 1},
            "findings": [{"kind": "orphan", "consumer": CONSUMER, "host": HOST}],
        }
        assert client.call("PUT", "/ledger/v1/audits/file", audit).status == 204
        yield url, client, host


def download(page: Any, label: str) -> bytes:
    with page.expect_download() as downloading:
        page.get_by_role("button", name=label, exact=True).click()
    return Path(downloading.value.path()).read_bytes()


def saved(page: Any, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table that is saved in both ways, which must agree."""
    documents = json.loads(download(page, f"Save {name} as JSON").decode("utf-8"))
    assert documents
    text = download(page, f"Save {name} as CSV").decode("utf-8")
    assert text.endswith("\r\n")
    head, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert head == list(documents[0])
    assert rows == [[cell(each) for each in row.values()] for row in documents]
    return list(documents)


def cell(value: Any) -> str:
    """Return what a value is in CSV: text never begins like a formula."""
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return str(value)


def show(visit: Visit, url: str, fragment: str) -> Any:
    page = visit(url, f"#/{fragment}")
    stage.settled(page)
    return page


def test_hosts(visit: Visit, cloud: Cloud) -> None:
    url, _, host = cloud
    page = show(visit, url, "fleet?as=table&group=aggregate&by=used&of=VCPU")
    rows = {each["name"]: each for each in saved(page, "hosts")}
    assert rows.keys() == {HOST, DISABLED, BARE}
    assert rows[HOST] == {
        "group": RACK,
        "group_name": RACK_NAME,
        "uuid": host,
        "name": HOST,
        "coloured by VCPU used": 1.5,
        "VCPU used": 6,
        "VCPU capacity": 4,
        "CUSTOM_CARD used": 0,
        "CUSTOM_CARD capacity": 2,
    }
    assert rows[BARE]["VCPU used"] is None
    assert rows[BARE]["group_name"] == "in no aggregate"


def test_consumers_and_their_groups(visit: Visit, cloud: Cloud) -> None:
    url, _, _ = cloud
    page = show(visit, url, "consumers?of=VCPU")
    [row] = saved(page, "consumers")
    assert (row["consumer"], row["VCPU"]) == (CONSUMER, 6)
    assert (row["project"], row["project_name"]) == (PROJECT, PROJECT_NAME)
    assert row["hosts"] == HOST
    [group] = saved(page, "by-project")
    assert group == {
        "project": PROJECT,
        "name": PROJECT_NAME,
        "VCPU": 6,
        "consumers": 1,
        "hosts": 1,
    }
    for by, label in (("type", "INSTANCE"), ("age", "up to a day")):
        page = show(visit, url, f"consumers?of=VCPU&by={by}")
        [group] = saved(page, f"by-{by}")
        assert (group[by], group["name"], group["VCPU"]) == (label, None, 6)


def test_candidates_constraints_and_placements(visit: Visit, cloud: Cloud) -> None:
    url, _, host = cloud
    page = visit(url, "#/ask?q=resources=CUSTOM_CARD:2")
    page.wait_for_selector("[aria-label='First candidates']")
    assert saved(page, "candidates") == [
        {
            "candidate": 1,
            "provider": host,
            "name": HOST,
            "class": "CUSTOM_CARD",
            "amount": 2,
        }
    ]
    constraints = saved(page, "constraints")
    assert constraints[0]["before"] == 3
    assert constraints[-1]["after"] == 1
    assert list(constraints[0]) == ["id", "text", "before", "after", "alone", "gain"]
    page.locator("summary:has-text('Place it')").click()
    page.get_by_label("Project of the consumers").fill("web")
    page.get_by_label("User", exact=True).fill("ann")
    page.get_by_role("button", name="Dry run").click()
    page.wait_for_selector("[aria-label=Placements]")
    [row] = saved(page, "placements")
    assert (row["host"], row["name"], row["takes"]) == (host, HOST, "2 CUSTOM_CARD")
    assert row["lease_ends"] is None


def test_what_deserves_attention(visit: Visit, cloud: Cloud) -> None:
    url, _, host = cloud
    found = {}
    for name in ("over", "disabled", "empty", "leases", "drift", "audit-orphan"):
        # A browser asks before a page may save many files.
        page = visit(url, "#/health")
        page.wait_for_selector(f"button[aria-label='Save {name} as CSV']")
        found[name] = saved(page, name)
    assert all(list(rows[0]) == ["uuid", "name", "finding"] for rows in found.values())
    assert found["over"] == [
        {"uuid": host, "name": HOST, "finding": "6 of 4 VCPU used"},
    ]
    assert found["disabled"][0]["name"] == DISABLED
    assert [each["name"] for each in found["empty"]] == [BARE]
    assert found["leases"][0]["uuid"] == CONSUMER
    assert PROJECT_NAME in found["leases"][0]["finding"]
    assert found["drift"][0]["name"] == HOST
    assert found["audit-orphan"][0]["uuid"] == CONSUMER


def test_history(visit: Visit, cloud: Cloud) -> None:
    url, _, host = cloud
    page = visit(url, f"#/history?about=root&of={host}")
    page.wait_for_selector("table.history tbody tr")
    rows = saved(page, "history")
    claim = next(each for each in rows if each["type"] == "allocations.changed")
    assert claim["subject"] == CONSUMER
    assert claim["what"] == f"{HOST}: VCPU 0 → 6"
    assert json.loads(claim["after"]) == {host: {"VCPU": 6}}
    assert claim["request"].startswith("PUT /allocations/")
    created = next(each for each in rows if each["type"] == "provider.created")
    assert json.loads(created["after"])["name"] == HOST
