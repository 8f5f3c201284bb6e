"""History: of everything, a host, a consumer, a project; and levels over days."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console import stage
from tests.console.conftest import Cloud, Visit
from tests.console.test_views import check

CONSUMER = "6f3d3c1a-90a2-4b4e-8e0e-0d4f6a1f7b01"
ROWS = "table.history tbody tr"


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """Serve two hosts, of which one is used; give the URL, a client and UUIDs."""
    with stage.fresh(tmp_path) as (url, client):
        hosts = [client.make_provider(VCPU=8) for _ in range(2)]
        claimed = client.claim(CONSUMER, {hosts[0]: {"VCPU": 3}}, project="web")
        assert claimed.status == 204
        yield url, client, hosts


def rows(page: Any) -> list[str]:
    page.wait_for_selector(ROWS)
    return [str(each) for each in page.locator(ROWS).all_inner_texts()]


def test_who_changed_what_when_and_what_was_before(visit: Visit, cloud: Cloud) -> None:
    url, _, hosts = cloud
    page = visit(url, "#/history")
    said = rows(page)
    # Two hosts, their inventories, and a claim: the newest first.
    assert len(said) == 5
    assert f"{hosts[0]}: VCPU 0 \u2192 3" in said[0]
    assert "of web" in said[0]
    assert "admin" in said[0]
    assert "PUT /allocations/" in said[0]
    assert "VCPU: new inventory of 8" in said[1]
    assert f"created: {hosts[1]}" in said[2]
    check(page)
    # All that one request changed.
    page.locator(ROWS).first.locator("a[title^='req-']").click()
    page.wait_for_selector(f"{ROWS}:nth-child(2)", state="detached")
    assert len(rows(page)) == 1


def test_the_history_of_a_host_a_consumer_and_a_project(
    visit: Visit, cloud: Cloud
) -> None:
    url, client, hosts = cloud
    page = visit(url, f"#/host/{hosts[0]}")
    assert len(rows(page)) == 3
    page.goto(f"{url}/console/#/host/{hosts[1]}")
    page.wait_for_selector(f".title:has-text('{hosts[1]}')")
    page.wait_for_selector(f"{ROWS}:nth-child(3)", state="detached")
    assert len(rows(page)) == 2
    page.goto(f"{url}/console/#/project/web")
    assert len(rows(page)) == 1
    page.goto(f"{url}/console/#/consumers/{CONSUMER}")
    page.wait_for_selector(".title:has-text('Consumer')")
    assert "VCPU 0 \u2192 3" in rows(page)[0]
    # What has gone still has a history.
    assert client.call("DELETE", f"/allocations/{CONSUMER}").status == 204
    page.reload()
    page.wait_for_selector("text=has nothing")
    assert "VCPU 3 \u2192 0" in rows(page)[0]
    check(page)


def test_what_happens_is_shown_as_it_happens(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    page = visit(url, "#/history?type=allocations")
    assert len(rows(page)) == 1
    page.wait_for_selector("text=live, as of")
    assert client.claim(str(uuid.uuid4()), {hosts[1]: {"VCPU": 2}}).status == 204
    page.wait_for_selector(f"{ROWS}:has-text('VCPU 0 \u2192 2')")
    assert len(rows(page)) == 2


def test_a_link_means_the_same_time_everywhere(visit: Visit, cloud: Cloud) -> None:
    url, _, _ = cloud
    page = visit(url, "#/history", timezone_id="Europe/Berlin")
    page.get_by_label("From (").fill("2026-01-28T10:00")
    page.wait_for_url("**/#/history?from=*")
    fragment = page.url.partition("/console/")[2]
    assert page.get_by_label("From (").input_value() == "2026-01-28T10:00"
    with page.expect_request("**/history?from=2026-01-28T09%3A00%3A00.000Z*"):
        page.reload()
    page = visit(url, fragment, timezone_id="America/New_York")
    assert page.get_by_label("From (").input_value() == "2026-01-28T04:00"
    assert page.get_by_label("From (America/New_York)").count() == 1
    page.get_by_role("button", name="Last hour").click()
    # Each time is labelled with its zone.
    assert all(each.split("\t")[0].endswith(("EST", "EDT")) for each in rows(page))
    page.get_by_role("button", name="Any time").click()
    page.wait_for_url(lambda url: "from=" not in url)


def test_a_placement_of_many_is_one_row_that_opens(visit: Visit, cloud: Cloud) -> None:
    url, client, _ = cloud
    body = {
        "query": "resources=VCPU:1",
        "consumers": [str(uuid.uuid4()) for _ in range(10)],
        "project_id": "web",
        "user_id": "ann",
        "consumer_type": "INSTANCE",
    }
    assert client.call("POST", "/ledger/v1/placements", body).status == 201
    page = visit(url, "#/history")
    first, *others = rows(page)
    assert "10 consumers: +10 VCPU" in first
    assert len(others) == 5
    page.locator(ROWS).first.locator("summary").click()
    assert page.locator(f"{ROWS} li").count() == 10
    check(page)


def test_long_histories_come_in_pages(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    for _ in range(4):
        held = str(uuid.uuid4())
        assert client.claim(held, {hosts[1]: {"VCPU": 2}}).status == 204
        assert client.call("DELETE", f"/allocations/{held}").status == 204
        assert client.claim(held, {hosts[1]: {"VCPU": 1}}).status == 204
    page = visit(url, f"#/host/{hosts[1]}")
    assert len(rows(page)) == 10
    page.get_by_role("button", name="Show earlier").click()
    page.wait_for_selector(f"{ROWS}:nth-child(14)")
    assert len(rows(page)) == 14


def test_what_was_used_and_free_over_days(visit: Visit, cloud: Cloud) -> None:
    url, _, _ = cloud
    page = visit(url, "#/history?days=1")
    plot = page.locator(".plot")
    plot.wait_for()
    said = dict(
        zip(
            plot.locator("dt").all_inner_texts(),
            plot.locator("dd").all_inner_texts(),
            strict=True,
        )
    )
    assert said == {"used": "3", "free": "13"}
    # Before anything was there, it was zero: the line begins at the bottom.
    used = str(plot.locator("path.line-0").first.get_attribute("d"))
    heights = [float(step.split()[1].split("h")[0]) for step in used.split("L")]
    assert heights[0] == max(heights)
    assert heights[-1] == min(heights)
    page.locator("label:has-text('Over') select").select_option("30")
    page.wait_for_selector("text=over 30 days")
    check(page)


def test_without_a_journal_the_reason_is_shown(visit: Visit, cloud: Cloud) -> None:
    url, _, _ = cloud
    page = visit(url, "#/nowhere")
    page.witness.expects_failures = True
    error = {"status": 404, "title": "Not Found", "detail": "The journal is off."}
    page.route(
        "**/ledger/v1/history*",
        lambda route: route.fulfill(status=404, json={"errors": [error]}),
    )
    page.goto(f"{url}/console/#/history")
    page.wait_for_selector("p.state:has-text('The journal is off.')")
    check(page)
