"""The fleet follows what changes: by the feed, or by reading it again."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.client import Client, new_uuid
from tests.console import stage
from tests.console.conftest import Cloud, Visit
from tests.console.test_views import check

CHANGED = ".caption:has-text('changed in the last minute')"


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """Serve three hosts that a test may change; give the URL, a client and UUIDs."""
    with stage.fresh(tmp_path) as (url, client):
        # The page sorts numbers in names by their values; letters come first here.
        hosts = [first + new_uuid()[1:] for first in "abc"]
        for each in hosts:
            client.make_provider_again(each, VCPU=8)
        # The first reader of the feed numbers what there is.
        assert client.call("GET", "/ledger/v1/changes?since=oldest").status == 200
        yield url, client, hosts


def used(page: Any) -> str:
    return str(page.locator(".total").first.inner_text()).replace("\n", " ")


def test_a_claim_is_seen_at_once_and_marked(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    page = visit(url, "#/fleet?as=table")
    page.wait_for_selector("text=live, as of")
    assert "0 of 24" in used(page)
    page.witness.requests.clear()
    assert client.claim(str(uuid.uuid4()), {hosts[1]: {"VCPU": 5}}).status == 204
    page.wait_for_selector(CHANGED)
    assert "5 of 24" in used(page)
    row = page.locator("tbody tr", has_text=hosts[1])
    assert "changed at" in row.inner_text()
    assert page.locator("tbody tr:has-text('changed at')").count() == 1
    # Only the tree that changed was read.
    read = [each for each in page.witness.requests if "/ledger/v1/fleet" in each]
    assert read
    assert all(f"in_tree={hosts[1]}" in each for each in read)
    check(page)
    # The mark of one stays when another changes.
    assert client.claim(str(uuid.uuid4()), {hosts[2]: {"VCPU": 1}}).status == 204
    page.wait_for_selector(".total:has-text('6 of 24')")
    assert page.locator("tbody tr:has-text('changed at')").count() == 2


def test_new_and_deleted_hosts_come_and_go(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    page = visit(url, "#/fleet")
    page.wait_for_selector("text=live, as of")
    page.wait_for_selector(".caption:has-text('3 hosts')")
    client.make_provider(VCPU=8)
    page.wait_for_selector(".caption:has-text('4 hosts')")
    assert client.call("DELETE", f"/resource_providers/{hosts[0]}").status == 204
    page.wait_for_selector(".caption strong:text-is('3 hosts')")


def test_the_keys_stay_with_their_host(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    page = visit(url, "#/fleet")
    page.wait_for_selector("text=live, as of")
    page.locator(".map").focus()
    page.keyboard.press("End")
    last = max(hosts)
    said = page.locator(f".map [role=status]:has-text('{last}:')")
    said.wait_for(state="attached")
    gone = min(hosts)
    assert client.call("DELETE", f"/resource_providers/{gone}").status == 204
    page.wait_for_selector(".caption:has-text('2 hosts')")
    said.wait_for(state="attached")
    page.keyboard.press("Enter")
    page.wait_for_selector(f".title:has-text('{last}')")


def share(client: Client, host: str, pool: str) -> None:
    """Let a pool share with a host, by an aggregate."""
    aggregate = new_uuid()
    for provider, kind, value in (
        (pool, "traits", "MISC_SHARES_VIA_AGGREGATE"),
        (pool, "aggregates", aggregate),
        (host, "aggregates", aggregate),
    ):
        body = {
            "resource_provider_generation": client.generation(provider),
            kind: [value],
        }
        path = f"/resource_providers/{provider}/{kind}"
        assert client.call("PUT", path, body).status == 200


def test_a_host_is_followed_from_its_link_on(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    pool = client.make_provider(DISK_GB=1000)
    share(client, hosts[1], pool)
    page = visit(url, f"#/host/{hosts[1]}")
    page.wait_for_selector("text=live, as of")
    page.wait_for_selector(".sharing .stock-line:has-text('0\u202f%')")
    assert client.claim(str(uuid.uuid4()), {pool: {"DISK_GB": 600}}).status == 204
    page.wait_for_selector(".sharing .stock-line:has-text('60\u202f%')")
    consumer = str(uuid.uuid4())
    assert client.claim(consumer, {hosts[1]: {"VCPU": 5}}).status == 204
    page.wait_for_selector(".stock-line:has-text('5 of 8')")
    page.wait_for_selector(".history:has-text('VCPU 0 \u2192 5')")
    # All UUIDs are known here, with or without their dashes.
    for wanted, title in ((consumer, "Consumer"), (hosts[0], hosts[0])):
        page.get_by_label("Find a host, project").fill(wanted.replace("-", ""))
        page.keyboard.press("Enter")
        page.wait_for_selector(f".title:has-text('{title}')")


def test_a_consumer_and_a_project_are_followed(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    consumer = str(uuid.uuid4())
    held = {hosts[1]: {"VCPU": 5}}
    assert client.claim(consumer, held, project="shop").status == 204
    page = visit(url, "#/project/shop")
    page.wait_for_selector("text=live, as of")
    page.wait_for_selector("[aria-label^=Usage] :text-is('5')")
    more = {hosts[0]: {"VCPU": 2}}
    assert client.claim(str(uuid.uuid4()), more, project="shop").status == 204
    page.wait_for_selector("[aria-label^=Usage] :text-is('7')")
    page.goto(f"{url}/console/#/consumers/{consumer}")
    page.wait_for_selector(".title:text-is('Consumer')")
    assert client.call("DELETE", f"/allocations/{consumer}").status == 204
    page.wait_for_selector("text=has nothing")


def test_how_often_a_question_fits_is_counted_again(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    counted = "**/ledger/v1/capacity*"
    query = urlencode({"by": "question", "question": "resources=VCPU:8"})
    page = visit(url, "#/nowhere")
    page.witness.expects_failures = True
    page.route(counted, lambda route: route.fulfill(status=500))
    page.goto(f"{url}/console/#/fleet?as=table&{query}")
    failed = page.locator(".failed")
    failed.wait_for()
    # Nothing is said of hosts for which nothing was counted.
    assert page.locator("tbody tr").count() == 0
    page.unroute(counted)
    failed.get_by_role("button", name="Try again").click()
    row = page.locator("tbody tr", has_text=hosts[1])
    row.filter(has_text="fits 1 time").wait_for()
    page.wait_for_selector("text=live, as of")
    assert client.claim(str(uuid.uuid4()), {hosts[1]: {"VCPU": 1}}).status == 204
    row.filter(has_text="does not fit").wait_for()
    page.route(counted, lambda route: route.fulfill(status=500))
    assert client.claim(str(uuid.uuid4()), {hosts[2]: {"VCPU": 1}}).status == 204
    page.wait_for_selector(".stale:has-text('State of the count at')")
    assert page.locator("tbody tr").count() == 3
    # It is counted again by itself.
    page.unroute(counted)
    last = page.locator("tbody tr", has_text=hosts[2])
    last.filter(has_text="does not fit").wait_for()


def test_a_pause_holds_the_picture(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    page = visit(url, "#/fleet")
    page.wait_for_selector("text=live, as of")
    pause = page.get_by_role("button", name="Pause")
    pause.click()
    page.wait_for_selector("text=paused, as of")
    page.witness.requests.clear()
    assert client.claim(str(uuid.uuid4()), {hosts[1]: {"VCPU": 5}}).status == 204
    page.wait_for_timeout(2_000)
    assert page.witness.requests == []
    assert "0 of 24" in used(page)
    page.reload()
    # The pause outlives a reload, which shows the fleet as it is.
    page.wait_for_selector("text=paused, as of")
    assert "5 of 24" in used(page)
    assert client.claim(str(uuid.uuid4()), {hosts[2]: {"VCPU": 1}}).status == 204
    pause.click()
    page.wait_for_selector(CHANGED)
    assert "6 of 24" in used(page)
    check(page)


def test_without_a_journal_it_is_read_again(visit: Visit, cloud: Cloud) -> None:
    url, client, hosts = cloud
    page = visit(url, "#/nowhere")
    page.clock.install()

    def without_cursor(route: Any) -> None:
        lines = route.fetch().text().splitlines()
        kept = [line for line in lines if "cursor" not in json.loads(line)]
        route.fulfill(body="\n".join(kept), content_type="application/x-ndjson")

    page.route("**/ledger/v1/fleet*", without_cursor)
    page.goto(f"{url}/console/#/fleet")
    page.wait_for_selector("canvas")
    page.clock.run_for(1_000)
    page.wait_for_selector("text=read again every 30 seconds")
    assert client.claim(str(uuid.uuid4()), {hosts[1]: {"VCPU": 5}}).status == 204
    page.clock.run_for(31_000)
    page.wait_for_selector(CHANGED)
    assert "5 of 24" in used(page)
    assert not [each for each in page.witness.requests if "changes" in each]


def test_a_service_that_knows_neither_feed_nor_fleet_is_left_alone(
    visit: Visit, cloud: Cloud
) -> None:
    url, _, _ = cloud
    page = visit(url, "#/nowhere")
    page.witness.expects_failures = True
    asked: list[str] = []

    def fail(route: Any) -> None:
        asked.append(route.request.url)
        route.fulfill(status=410 if "changes" in route.request.url else 500)

    page.goto(f"{url}/console/#/fleet?as=table")
    page.wait_for_selector("[aria-label=Hosts] tbody tr")
    page.get_by_role("button", name="Pause").click()
    for path in ("changes", "fleet"):
        page.route(f"**/ledger/v1/{path}?*", fail)
    page.get_by_role("button", name="Pause").click()
    page.wait_for_selector(".stale")
    page.wait_for_timeout(2_000)
    assert len(asked) <= 4


@pytest.mark.parametrize("status", [410, 404, 500])
def test_a_feed_that_fails_leaves_no_wrong_picture(
    visit: Visit, cloud: Cloud, status: int
) -> None:
    url, client, hosts = cloud
    page = visit(url, "#/nowhere")
    page.witness.expects_failures = True
    answers = [status]

    def fail(route: Any) -> None:
        route.fulfill(status=answers.pop()) if answers else route.continue_()

    page.route("**/ledger/v1/changes*", fail)
    page.goto(f"{url}/console/#/fleet")
    page.wait_for_selector("canvas")
    expected = {
        410: "live, as of",
        404: "read again every 30 seconds",
        500: "live, as of",
    }
    page.wait_for_selector(f"text={expected[status]}")
    if status != 404:
        assert client.claim(str(uuid.uuid4()), {hosts[1]: {"VCPU": 5}}).status == 204
        page.wait_for_selector(".total:has-text('5 of 24')")
