"""Placing from Ask, leases, and what Health finds beside the fleet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.console import stage
from tests.console.conftest import Cloud, Visit
from tests.console.test_ask import answered, verdict
from tests.console.test_views import check

CONSUMER = "6f3d3c1a-90a2-4b4e-8e0e-0d4f6a1f7b01"


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """Serve three hosts that a test may change; give the URL, a client and UUIDs."""
    with stage.fresh(tmp_path) as (url, client):
        hosts = [client.make_provider(VCPU=8) for _ in range(3)]
        yield url, client, hosts


def ask(visit: Visit, url: str, query: str, **more: Any) -> Any:
    page = visit(url, f"#/ask?{urlencode({'q': query, **more}, doseq=True)}")
    page.wait_for_selector(".verdict")
    answered(page)
    return page


def fill(page: Any, number: int) -> None:
    page.locator("summary:has-text('Place it')").click()
    page.get_by_label("How many consumers").fill(str(number))
    page.get_by_label("Project of the consumers").fill("web")
    page.get_by_label("User", exact=True).fill("ann")


def test_a_dry_run_writes_nothing_and_placing_does(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    page = ask(visit, url, "resources=VCPU:2")
    fill(page, 3)
    page.get_by_label("Spread").select_option("host")
    page.get_by_label("How long").select_option("3600")
    page.get_by_role("button", name="Dry run").click()
    page.wait_for_selector("text=3 consumers would be placed")
    rows = page.locator("[aria-label=Placements] tbody tr")
    said = rows.all_inner_texts()
    assert {host for host in hosts if any(host in row for row in said)} == set(hosts)
    assert client.call("GET", "/usages?project_id=web").document == {"usages": {}}
    check(page)
    page.get_by_role("button", name="Place 3 consumers").click()
    page.wait_for_selector("text=3 consumers placed")
    written = client.call("GET", "/ledger/v1/leases?project_id=web").document["leases"]
    shown = set(
        page.locator("[aria-label=Placements] a.mono, td.mono a").all_inner_texts()
    )
    assert {each["consumer"] for each in written} == shown
    check(page)
    # The consumer's page says until when it is kept.
    page.locator("td.mono a").first.click()
    page.wait_for_selector("dd:has-text('unless it is renewed or confirmed')")


def test_placing_over_aggregates_is_undone(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    racks = [CONSUMER, CONSUMER.replace("6f3d", "7f3d")]
    for host, rack in zip(hosts, racks, strict=False):
        path = f"/resource_providers/{host}/aggregates"
        body = {"resource_provider_generation": 1, "aggregates": [rack]}
        assert client.call("PUT", path, body).status == 200
    page = ask(visit, url, "resources=VCPU:2")
    fill(page, 3)
    page.get_by_label("Spread").select_option("aggregates")
    page.get_by_role("button", name="Dry run").click()
    page.wait_for_selector(".failed:has-text('The aggregates are missing')")
    page.get_by_label("Aggregates, with commas").fill(", ".join(racks))
    page.get_by_label("At least").fill("2")
    page.get_by_label("Prefer").fill(f"host={hosts[0]}")
    page.get_by_role("button", name="Dry run").click()
    page.wait_for_selector("text=2 consumers would be placed, 1 not: there is no room")
    page.get_by_role("button", name="Place 3 consumers").click()
    page.wait_for_selector("text=2 consumers placed")
    used = client.get("/usages?project_id=web")["usages"]
    assert used == {"INSTANCE": {"VCPU": 4, "consumer_count": 2}}
    check(page)
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("text=Undone")
    assert client.call("GET", "/usages?project_id=web").document == {"usages": {}}


def test_no_room_is_said_and_nothing_is_written(visit: Visit, cloud: Cloud) -> None:
    url, client, _ = cloud
    page = ask(visit, url, "resources=VCPU:8")
    page.witness.expects_failures = True
    fill(page, 4)
    page.get_by_role("button", name="Dry run").click()
    page.wait_for_selector(".failed:has-text('status 409')")
    assert page.get_by_role("button", name="Place 4 consumers").count() == 0
    assert client.call("GET", "/usages?project_id=web").document == {"usages": {}}


def dry_run(page: Any) -> None:
    page.get_by_role("button", name="Dry run").click()
    page.get_by_role("button", name="Place 1 consumer").wait_for()


def test_an_answer_that_is_lost_places_nothing_twice(
    visit: Visit, cloud: Cloud
) -> None:
    url, client, _ = cloud
    page = ask(visit, url, "resources=VCPU:2")
    page.witness.expects_failures = True
    fill(page, 1)
    dry_run(page)
    place = page.get_by_role("button", name="Place 1 consumer")

    def lose(route: Any) -> None:
        route.fetch()
        route.abort()

    page.route("**/ledger/v1/placements", lose)
    place.click()
    page.wait_for_selector(".failed:has-text('The service does not answer.')")
    page.unroute("**/ledger/v1/placements")
    place.click()
    page.wait_for_selector("text=1 consumer placed")
    used = client.get("/usages?project_id=web")["usages"]
    assert used == {"INSTANCE": {"VCPU": 2, "consumer_count": 1}}


def test_a_dry_run_of_other_wishes_is_not_offered(visit: Visit, cloud: Cloud) -> None:
    url, _, _ = cloud
    page = ask(visit, url, "resources=VCPU:2")
    fill(page, 1)
    waiting: list[Any] = []

    def hold(route: Any) -> None:
        if waiting:
            route.continue_()
        else:
            waiting.append(route)

    page.route("**/ledger/v1/placements", hold)
    page.get_by_role("button", name="Dry run").click()
    while not waiting:
        page.wait_for_timeout(50)
    page.get_by_label("Project of the consumers").fill("shop")
    waiting[0].continue_()
    page.wait_for_selector("button:text('Dry run'):enabled")
    assert page.get_by_role("button", name="Place 1 consumer").count() == 0
    dry_run(page)


def test_who_may_not_place_is_told_and_not_asked_again(
    visit: Visit, cloud: Cloud
) -> None:
    url, _, _ = cloud
    page = ask(visit, url, "resources=VCPU:2")
    page.witness.expects_failures = True
    error = {
        "status": 403,
        "title": "Forbidden",
        "detail": "Policy does not allow placement:ledger:placements to be performed.",
    }
    page.route(
        "**/ledger/v1/placements",
        lambda route: route.fulfill(status=403, json={"errors": [error]}),
    )
    fill(page, 1)
    page.get_by_role("button", name="Dry run").click()
    told = page.locator(".failed")
    told.wait_for()
    assert "placement:ledger:placements" in told.inner_text()
    assert page.locator("summary:has-text('Place it')").count() == 0
    page.goto(f"{url}/console/#/ask?{urlencode({'q': 'resources=VCPU:3'})}")
    answered(page)
    assert page.locator("summary:has-text('Place it')").count() == 0


def test_the_search_finds_projects_and_any_uuid(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    project, rack = CONSUMER.replace("6f3d", "7f3d"), CONSUMER.replace("6f3d", "8f3d")
    claimed = client.claim(CONSUMER, {hosts[0]: {"VCPU": 1}}, project=project)
    assert claimed.status == 204
    path = f"/resource_providers/{hosts[1]}/aggregates"
    body = {"resource_provider_generation": 1, "aggregates": [rack]}
    assert client.call("PUT", path, body).status == 200
    page = visit(url)
    for text, fragment in (
        (project, f"project/{project}"),
        (project.replace("-", ""), f"project/{project}"),
        (CONSUMER.upper(), f"consumers/{CONSUMER}"),
        (rack, f"fleet?find=aggregate%3A{rack}"),
        (hosts[2], f"host/{hosts[2]}"),
        ("req-1", "history?about=request_id&of=req-1"),
    ):
        page.wait_for_selector("text=live, as of")
        page.get_by_label("Find a host, project").fill(text)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/#/{fragment}")


def test_the_leases_of_a_host_and_those_that_end_soon(
    visit: Visit, cloud: Cloud
) -> None:
    url, client, hosts = cloud
    assert client.claim(CONSUMER, {hosts[0]: {"VCPU": 3}}, project="web").status == 204
    page = visit(url, f"#/host/{hosts[0]}")
    page.wait_for_selector("[aria-label=Consumers] tbody tr")
    assert page.locator("th:has-text('Lease ends')").count() == 0
    path = f"/ledger/v1/leases/{CONSUMER}"
    assert client.call("PUT", path, {"seconds": 600}).status == 200
    page.reload()
    page.wait_for_selector("th:has-text('Lease ends')")
    check(page)
    page.goto(f"{url}/console/#/health")
    page.wait_for_selector("h2:has-text('Leases about to end')")
    text = page.locator("main").inner_text()
    assert "INSTANCE of web, ends in 10 minutes" in text
    check(page)
    # One that ends after the hour does not deserve attention.
    assert client.call("PUT", path, {"seconds": 36_000}).status == 200
    page.reload()
    page.wait_for_selector("p:has-text('not found')")
    page.wait_for_selector("p:has-text('leases about to end')")
    assert page.locator("h2:has-text('Leases about to end')").count() == 0


def test_what_health_could_not_read_is_said_and_what_it_knew_stays(
    visit: Visit, cloud: Cloud
) -> None:
    url, client, hosts = cloud
    assert client.claim(CONSUMER, {hosts[0]: {"VCPU": 3}}, project="web").status == 204
    lease = f"/ledger/v1/leases/{CONSUMER}"
    assert client.call("PUT", lease, {"seconds": 1800}).status == 200
    page = visit(url, "#/nowhere")
    page.witness.expects_failures = True
    for name in ("leases", "declared", "audits"):
        page.route(
            f"**/ledger/v1/{name}*", lambda route: route.fulfill(status=500, body="")
        )
    page.clock.install()
    page.goto(f"{url}/console/#/health")
    for what in ("leases", "drift from the declared file", "audits"):
        page.wait_for_selector(f".stale:has-text('Not checked: {what}.')")
    # Nothing is claimed of what was not read.
    text = page.locator("main").inner_text()
    assert "placement-audit" not in text
    assert "leases about to end" not in text
    check(page)
    for name in ("leases", "declared", "audits"):
        page.unroute(f"**/ledger/v1/{name}*")
        page.locator(".stale button").first.click()
    page.wait_for_selector("h2:has-text('Leases about to end')")
    page.wait_for_selector("p:has-text('with --record it shows them here')")
    page.wait_for_selector(".stale", state="detached")
    page.route("**/ledger/v1/leases*", lambda route: route.fulfill(status=500, body=""))
    page.clock.fast_forward(61_000)
    page.get_by_role("button", name="Refresh").click()
    page.wait_for_selector(".stale:has-text('State of the list of leases at')")
    assert page.locator("h2:has-text('Leases about to end')").count() == 1


def test_drift_from_what_was_declared_is_found(visit: Visit, cloud: Cloud) -> None:
    url, client, _ = cloud
    tree = {"name": "declared-1", "inventories": {"VCPU": 8}}
    assert client.call("POST", "/ledger/v1/apply", {"trees": [tree]}).status == 200
    page = visit(url, "#/health")
    page.wait_for_selector("p:has-text('drift from the declared file')")
    [uuid] = [
        each["uuid"]
        for each in client.call("GET", "/resource_providers").document[
            "resource_providers"
        ]
        if each["name"] == "declared-1"
    ]
    path = f"/resource_providers/{uuid}/inventories/VCPU"
    generation = client.call("GET", path).document["resource_provider_generation"]
    body = {"resource_provider_generation": generation, "total": 4}
    assert client.call("PUT", path, body).status == 200
    page.reload()
    page.wait_for_selector("h2:has-text('Drift from the declared file')")
    text = page.locator("[aria-label='Drift from the declared file']").inner_text()
    assert "declared-1/inventories/VCPU: declared total 8" in text
    assert "is total 4" in text
    check(page)


def test_what_audits_found_is_shown(visit: Visit, cloud: Cloud) -> None:
    url, client, _ = cloud
    page = visit(url, "#/health")
    page.wait_for_selector("p:has-text('with --record it shows them here')")
    audit = {"claims": 7, "living": 6, "not_judged": 0}
    hostile = "<img src=x onerror=alert(1)>"
    finding = {"kind": "orphan", "consumer": CONSUMER, "host": hostile}
    found = {**audit, "counts": {"orphan": 3}, "findings": [finding]}
    nothing = {**audit, "counts": {"orphan": 0}, "findings": []}
    for name, body in (("nova", found), ("ironic", nothing)):
        path = f"/ledger/v1/audits/{name}"
        assert client.call("PUT", path, body).status == 204
    page.reload()
    page.wait_for_selector("h2:has-text('Orphans')")
    said = page.locator("main").inner_text()
    assert f"claims nothing on {hostile}" not in said
    assert "2 more are in the report of placement-audit" in said
    assert "nova: last run" in said
    assert "7 claims compared with 6 consumers that live; found 3" in said
    assert "ironic: last run" in said
    assert "found nothing" in said
    assert "found by nova" in said
    assert page.locator(f"[aria-label=Orphans] a[href$='{CONSUMER}']").count() == 1
    check(page)


def test_hosts_are_imagined_away(visit: Visit, cloud: Cloud) -> None:
    url, _, _ = cloud
    page = ask(visit, url, "resources=VCPU:2")
    assert verdict(page) == "3 of 3 hosts serve it"
    away = page.get_by_role("button", name="were not there")
    away.first.click()
    page.wait_for_selector("strong:has-text('2 of 2 hosts serve it')")
    assert "were not there" in page.locator(".what-if").inner_text()
    # What is imagined cannot be placed.
    assert page.locator("summary:has-text('Place it')").count() == 0
    check(page)
    page.locator(".what-if button").click()
    page.wait_for_selector("strong:has-text('3 of 3 hosts serve it')")
