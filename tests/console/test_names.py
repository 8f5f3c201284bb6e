"""Names that operators gave to aggregates and projects."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client import Client
from tests.console import stage
from tests.console.conftest import Cloud, Visit
from tests.console.test_ask import answered
from tests.console.test_views import LOOKS, check

RACK = "5c1f0000-0000-4000-8000-000000000017"
PROJECT = "9f3100000000400080000000000000aa"
CONSUMER = "6f3d3c1a-90a2-4b4e-8e0e-0d4f6a1f7b01"
HOSTILE = "<img src=x onerror=alert(1)> 17 😀"
NAMES = {"aggregates": {HOSTILE: RACK}, "projects": {"Größe": PROJECT}}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """Serve two hosts, one of them in an aggregate and used by a project."""
    with stage.fresh(tmp_path) as (url, client):
        hosts = [client.make_provider(VCPU=8) for _ in range(2)]
        path = f"/resource_providers/{hosts[0]}/aggregates"
        body = {"resource_provider_generation": 1, "aggregates": [RACK]}
        assert client.call("PUT", path, body).status == 200
        claimed = client.claim(CONSUMER, {hosts[0]: {"VCPU": 3}}, project=PROJECT)
        assert claimed.status == 204
        yield url, client, hosts


def give(client: Client, **names: Any) -> None:
    assert client.call("POST", "/ledger/v1/apply", names or NAMES).status == 200


def show(page: Any, url: str, fragment: str) -> str:
    page.goto(f"{url}/console/#/{fragment}")
    stage.settled(page)
    return str(page.locator("main").inner_text())


def test_names_are_shown_and_lead_to_the_uuid(visit: Visit, cloud: Cloud) -> None:
    url, client, [host, _] = cloud
    give(client)
    page = visit(url, f"#/host/{host}")
    rack = page.locator(f"a.token:has-text('{HOSTILE}')")
    rack.wait_for()
    project = page.locator("[aria-label=Consumers] a:has-text('Größe')")
    project.wait_for()
    assert rack.locator(".named").get_attribute("title") == RACK
    check(page)
    rack.click()
    field = page.get_by_label("Aggregate", exact=True)
    field.wait_for()
    assert field.input_value() == RACK
    page.wait_for_selector("text=is in <img")
    check(page)
    page.go_back()
    project.click()
    page.wait_for_selector("h2.title:has-text('Größe')")
    assert page.get_by_label("Project (name or UUID)").input_value() == PROJECT
    check(page)
    text = show(page, url, "consumers")
    assert "Größe" in text
    assert PROJECT not in text
    page.get_by_label("UUID, project or type contains").fill("größe")
    page.wait_for_selector("h2:has-text('1 consumer')")
    text = show(page, url, f"consumers/{CONSUMER}")
    assert "Größe" in text
    assert PROJECT in text
    check(page)
    text = show(page, url, "fleet?group=aggregate&as=table")
    assert HOSTILE in text
    path = f"/ledger/v1/leases/{CONSUMER}"
    assert client.call("PUT", path, {"seconds": 600}).status == 200
    show(page, url, "health")
    page.wait_for_selector("text=INSTANCE of Größe, ends in 10 minutes")


def test_sentences_of_the_service_have_names(visit: Visit, cloud: Cloud) -> None:
    url, client, _ = cloud
    give(client)
    page = visit(url, f"#/ask?q=resources=VCPU:9%26member_of={RACK}")
    page.wait_for_selector(".verdict")
    answered(page)
    said = page.locator("[aria-label='Hosts left after each constraint']").inner_text()
    assert HOSTILE in said
    assert f"is in {HOSTILE}" in page.locator(".tokens").first.inner_text()
    check(page)


def test_a_name_may_be_typed_wherever_an_id_may(visit: Visit, cloud: Cloud) -> None:
    url, client, _ = cloud
    give(client, aggregates={"Rack 17": RACK}, projects={"web shop": PROJECT})
    page = visit(url, '#/fleet?find=aggregate:"rack 17" project:web*&as=table')
    page.wait_for_selector("text=1 of 2 hosts")
    search = page.get_by_label("Find a host, project or aggregate")
    search.fill("WEB shop")
    search.press("Enter")
    page.wait_for_url(f"**/#/project/{PROJECT}")
    page.wait_for_selector("h2.title:has-text('web shop')")
    search.fill("rack 17")
    search.press("Enter")
    page.wait_for_url(f"**/#/fleet?find=aggregate*{RACK}")
    show(page, url, "fleet?by=aggregate")
    field = page.get_by_label("Aggregate", exact=True)
    field.fill("rack 17")
    field.press("Enter")
    page.wait_for_url(f"**of={RACK}*")
    show(page, url, "project")
    field = page.get_by_label("Project (name or UUID)")
    field.fill("web shop")
    field.press("Enter")
    page.wait_for_url(f"**/#/project/{PROJECT}")
    show(page, url, "ask?q=resources=VCPU:1")
    terms = page.get_by_role("group", name="Aggregates")
    terms.get_by_label("Aggregate", exact=True).fill("Rack 17")
    terms.get_by_label("Aggregate", exact=True).press("Enter")
    page.wait_for_url(f"**member_of%3D{RACK}")
    answered(page)
    page.locator("summary:has-text('Place it')").click()
    page.get_by_label("Project of the consumers").fill("web shop")
    page.get_by_label("User", exact=True).fill("ann")
    page.get_by_role("button", name="Dry run").click()
    page.get_by_role("button", name="Place 1 consumer").click()
    page.wait_for_selector("text=1 consumer placed")
    usages = client.get(f"/usages?project_id={PROJECT}")["usages"]
    assert usages["INSTANCE"]["VCPU"] == 4


@pytest.mark.parametrize("look", LOOKS)
def test_names_are_accessible_and_fit_a_phone(
    visit: Visit, cloud: Cloud, look: str
) -> None:
    url, client, [host, _] = cloud
    give(client, aggregates={"x" * 100: RACK}, projects={"y_" * 80: PROJECT})
    audit = {"claims": 1, "living": 0, "not_judged": 0, "counts": {"orphan": 1}}
    finding = {"kind": "orphan", "consumer": CONSUMER, "project_id": PROJECT}
    recorded = {**audit, "findings": [finding]}
    assert client.call("PUT", "/ledger/v1/audits/nova", recorded).status == 204
    page = visit(url, "#/nowhere", **LOOKS[look])
    for fragment, shown in (
        (f"host/{host}", ".named"),
        ("consumers", ".named"),
        ("fleet?group=aggregate&as=table", "td:has-text('xxx')"),
        (f"project/{PROJECT}", "h2.title"),
        ("health", "h2:has-text('Orphans')"),
    ):
        show(page, url, fragment)
        page.wait_for_selector(shown)
        check(page)
        width = stage.run(page, "document.documentElement.scrollWidth - innerWidth")
        assert width <= 0, fragment


@pytest.mark.parametrize("status", [403, 404, 503])
def test_without_names_there_are_uuids(visit: Visit, cloud: Cloud, status: int) -> None:
    url, _, [host, _] = cloud
    page = visit(url, "#/nowhere")
    page.witness.expects_failures = True
    page.route("**/ledger/v1/names", lambda route: route.fulfill(status=status))
    page.goto("about:blank")
    page.goto(f"{url}/console/#/host/{host}")
    page.wait_for_selector(f"[aria-label=Consumers] a:has-text('{PROJECT}')")
    page.wait_for_selector(f"a.token:has-text('{RACK[:8]}')")
