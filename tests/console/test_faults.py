"""What must not happen: crashes, untrue offers, lost places, too wide pages."""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from benchmarks.cloud import uuid_of
from placement.demonstration import cloud as demonstration
from tests.console import stage
from tests.console.conftest import Site, Visit
from tests.console.test_ask import answered, verdict
from tests.console.test_states import guarded, server, sign_in  # noqa: F401
from tests.console.test_views import check
from tests.functional.identity import IdentityServer

PHONE = {"width": 360, "height": 780}


@pytest.mark.parametrize("group", ["prefix:1", "aggregate", "trait:CUSTOM_DEMO_SSD"])
def test_few_hosts_in_groups_are_drawn(
    visit: Visit, tmp_path: Path, group: str
) -> None:
    with stage.fresh(tmp_path) as (url, client):
        for name in ("rack1-a", "rack1-b", "rack2-a"):
            provider = client.make_provider(VCPU=8)
            body = {"name": name, "parent_provider_uuid": None}
            path = f"/resource_providers/{provider}"
            assert client.call("PUT", path, body).status == 200
        page = visit(url, f"#/fleet?{urlencode({'group': group})}")
        page.wait_for_selector("canvas")
        assert page.locator(".caption").inner_text().startswith("3 hosts")
        # From another view, the map mounts again.
        page.goto(f"{url}/console/#/names")
        page.wait_for_selector("h1:has-text('Names')", state="attached")
        page.go_back()
        page.wait_for_selector("canvas")


def test_a_fault_of_a_view_is_a_sentence_and_a_way_on(visit: Visit, site: Site) -> None:
    page = visit(site("flat"), "#/nowhere")
    page.witness.expects_failures = True
    # A document that no service sends: an aggregate that is a number.
    broken = '{"uuid": "u", "name": "u", "aggregates": [17], "inventories": {}}'
    page.route(
        "**/ledger/v1/fleet*",
        lambda route: route.fulfill(
            status=200, body=broken, content_type="application/x-ndjson"
        ),
    )
    page.goto(f"{site('flat')}/console/#/fleet?group=aggregate")
    page.wait_for_selector("text=This view cannot be shown")
    assert page.locator("canvas").count() == 0
    check(page)
    page.unroute("**/ledger/v1/fleet*")
    page.get_by_role("button", name="Refresh").click()
    page.get_by_role("link", name="Go to the fleet without filters").click()
    page.wait_for_selector("canvas")


def test_an_answer_that_is_not_understood_is_reported(visit: Visit, site: Site) -> None:
    page = visit(site("flat"), "#/nowhere")
    page.route(
        "**/ledger/v1/fleet*", lambda route: route.fulfill(status=200, body="<html>")
    )
    page.goto(f"{site('flat')}/console/#/fleet")
    page.wait_for_selector(".failed:has-text('could not be understood')")


GPU_HOST = demonstration.uuid_of("demo-r04-gpu00")
ZONES = [demonstration.uuid_of(f"demo-zone{zone}") for zone in range(3)]
# What is asked in vain, and the kinds of constraints of which changes are offered.
NONE_SERVES = {
    "resources=VCPU:2000": {"inventory"},
    "resources=VCPU:125,PGPU:1&required=CUSTOM_DEMO_TRUSTED": {"room"},
    "resources=VCPU:1,PGPU:1&required=CUSTOM_DEMO_RETIRED": {"required"},
    "resources=VCPU:1&root_required=CUSTOM_DEMO_RETIRED": {"root_required"},
    "resources=PGPU:1&root_required=!CUSTOM_DEMO_TRUSTED": {"root_forbidden"},
    f"resources=VCPU:1&in_tree={GPU_HOST}&required=!CUSTOM_DEMO_TRUSTED": {
        "in_tree",
        "forbidden",
    },
    f"resources=VCPU:1&member_of={uuid_of('no aggregate')}": {"member_of"},
    f"resources=PCPU:1&in_tree={demonstration.uuid_of('demo-r02-numa03')}"
    f"&member_of=!in:{','.join(ZONES)}": {"not_member_of"},
    "resources1=PGPU:1&resources2=PGPU:1&required1=CUSTOM_DEMO_RETIRED"
    "&group_policy=isolate": {"required1"},
    "resources1=PCPU:1&resources2=PCPU:1&group_policy=isolate&same_subtree=1,2": {
        "isolate",
        "same_subtree",
    },
}
SAYS = re.compile(r"(?:; for (\d+))?: (\d+) hosts? serves?")


@pytest.mark.parametrize("query", NONE_SERVES)
def test_each_offer_asks_what_it_says(visit: Visit, site: Site, query: str) -> None:
    page = visit(site("demo"), "#/nowhere")

    def is_answer(response: Any) -> bool:
        return "/ledger/v1/explanation?" in response.url and bool(response.ok)

    with page.expect_response(is_answer) as answer:
        page.goto(f"{site('demo')}/console/#/ask?{urlencode({'q': query})}")
    changes = answer.value.json()["changes"]
    kinds = {each["text"]: each["drop"] for each in changes}
    answered(page)
    assert verdict(page) == "No host serves it"
    buttons = page.locator(".remedies button")
    tried: set[str] = set()
    promises: set[tuple[str, str]] = set()
    done: set[tuple[str, str]] = set()
    for number in range(buttons.count()):
        button = buttons.nth(number)
        said = str(button.get_attribute("aria-label"))
        promised = {amount: int(hosts) for amount, hosts in SAYS.findall(said)}
        which, text = said.removeprefix("Try ").split(": ", 1)
        which = "" if which == "it" else which
        expected = promised[which]
        promises |= {(text, amount) for amount in promised}
        button.click()
        page.wait_for_selector(".what-if")
        page.wait_for_selector("strong:has-text('serve')")
        answered(page)
        assert verdict(page).split(" of ")[0] == str(expected), said
        tried |= {each.split(":")[0] for each in kinds[text]}
        done.add((text, which))
        page.go_back()
        page.wait_for_selector("strong:has-text('No host')")
        answered(page)
    assert tried >= NONE_SERVES[query]
    assert done == promises


def test_the_explanation_does_not_wait_for_the_count(visit: Visit, site: Site) -> None:
    page = visit(site("demo"), "#/nowhere")
    waiting: list[Any] = []
    page.route("**/ledger/v1/capacity*", lambda route: waiting.append(route))
    query = urlencode({"q": "resources=VCPU:1"})
    page.goto(f"{site('demo')}/console/#/ask?{query}")
    page.wait_for_selector(".funnel")
    page.wait_for_selector("text=counting how often it fits")
    while not waiting:
        page.wait_for_timeout(50)
    # What has arrived can be read as well as it will be later.
    check(page)
    waiting[0].continue_()
    answered(page)
    assert "fits" in page.locator(".number-line").inner_text()


def test_a_failed_refresh_keeps_the_last_picture(visit: Visit, site: Site) -> None:
    page = visit(site("flat"), "#/fleet")
    page.wait_for_selector("canvas")
    page.witness.expects_failures = True
    page.route("**/ledger/v1/fleet*", lambda route: route.abort())
    page.get_by_role("button", name="Refresh").click()
    told = page.locator(".stale")
    told.wait_for()
    assert "State of the fleet at" in told.inner_text()
    assert "The service does not answer." in told.inner_text()
    assert page.locator("canvas").count() == 1
    check(page)
    page.unroute("**/ledger/v1/fleet*")
    page.get_by_role("button", name="Try again").click()
    told.wait_for(state="detached")


def test_a_refresh_reads_new_names_at_once(visit: Visit, tmp_path: Path) -> None:
    with stage.fresh(tmp_path) as (url, client):
        client.make_provider(VCPU=8)
        page = visit(url, "#/names?show=all&find=CUSTOM")
        page.wait_for_selector("text=No trait matches.")
        assert client.call("PUT", "/traits/CUSTOM_FRESH").status == 201
        page.get_by_role("button", name="Refresh").click()
        page.wait_for_selector("td:has-text('CUSTOM_FRESH')")


def test_a_reader_is_told_which_rule_and_what_else_there_is(
    visit: Visit,
    guarded: str,  # noqa: F811
    server: IdentityServer,  # noqa: F811
) -> None:
    page = visit(guarded)
    page.witness.expects_failures = True
    sign_in(page, "bob", "secret of bob")
    told = page.locator(".failed")
    told.wait_for()
    text = told.inner_text()
    assert "placement:ledger:fleet" in text
    assert "the role admin or service" in text
    assert "the roles reader" in text
    # Each is asked for by itself.
    for view in ("Ask", "History", "Names"):
        page.wait_for_selector(f"nav a:text('{view}')", state="detached")
    assert page.locator("nav a").all_inner_texts() == ["Project"]
    check(page)
    page.get_by_role("link", name="show what the project uses").click()
    page.wait_for_selector("text=The project uses nothing.")
    check(page)


def test_what_another_project_uses_hides_nothing(
    visit: Visit,
    guarded: str,  # noqa: F811
) -> None:
    page = visit(guarded, "#/project/another")
    page.witness.expects_failures = True
    sign_in(page, "bob", "secret of bob")
    page.wait_for_selector(".failed:has-text('placement:usages')")
    for view in ("Fleet", "Ask", "History", "Names"):
        page.wait_for_selector(f"nav a:text('{view}')", state="detached")
    page.get_by_role("link", name="Project", exact=True).click()
    page.wait_for_selector("text=The project uses nothing.")


LONG = {
    "host": "x" * 200,
    "host in parts": "-".join(["a-rather-long-name"] * 10),
}
LONG_CLASS = "CUSTOM_" + "_".join(["RATHER_LONG"] * 20)
LONG_TRAIT = "CUSTOM_" + "Y" * 200


@pytest.fixture(scope="module")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Serve hosts with long names, classes and traits; give the URL and a UUID."""
    directory = tmp_path_factory.mktemp("long")
    with stage.fresh(directory) as (url, client):
        assert client.call("PUT", f"/traits/{LONG_TRAIT}").status == 201
        assert client.call("PUT", f"/resource_classes/{LONG_CLASS}").status == 201
        for name in LONG.values():
            provider = client.make_provider(VCPU=8, **{LONG_CLASS: 8})
            body = {"name": name, "parent_provider_uuid": None}
            path = f"/resource_providers/{provider}"
            assert client.call("PUT", path, body).status == 200
            generation = client.call("GET", path).document["generation"]
            traits = [LONG_TRAIT, "COMPUTE_STATUS_DISABLED"]
            having = {"resource_provider_generation": generation, "traits": traits}
            assert client.call("PUT", f"{path}/traits", having).status == 200
            amounts = {provider: {"VCPU": 1, LONG_CLASS: 1}}
            claimed = client.claim(str(uuid.uuid4()), amounts, project="p" * 255)
            assert claimed.status == 204
        yield url, provider


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1400, "height": 900}])
def test_long_names_do_not_widen_the_page(
    visit: Visit, long_names: tuple[str, str], viewport: dict[str, int]
) -> None:
    url, provider = long_names
    query = quote(f"resources=VCPU:1,{LONG_CLASS}:99&required={LONG_TRAIT}")
    page = visit(url, "#/nowhere", viewport=viewport)
    for fragment in (
        "#/fleet",
        "#/fleet?as=table&group=prefix:1",
        f"#/host/{provider}",
        f"#/ask?q={query}",
        "#/consumers",
        "#/names",
        "#/names?kind=classes",
    ):
        page.goto(f"{url}/console/{fragment}")
        stage.settled(page)
        wide = stage.run(page, "document.documentElement.scrollWidth")
        assert wide <= viewport["width"], fragment


def test_the_keys_go_on_after_a_host(visit: Visit, site: Site) -> None:
    page = visit(site("flat"))
    stage.settled(page)
    page.locator(".map").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    page.wait_for_selector(".title:has-text('host48')")
    assert stage.run(page, "document.activeElement.id") == "main"
    page.go_back()
    said = page.locator(".map [role=status]:has-text('host48:')")
    said.wait_for(state="attached")
    page.keyboard.press("ArrowRight")
    page.locator(".map [role=status]:has-text('host49:')").wait_for(state="attached")


def test_the_place_in_a_table_is_kept(visit: Visit, site: Site) -> None:
    size = {"width": 1400, "height": 500}
    page = visit(site("flat"), "#/fleet?as=table", viewport=size)
    stage.settled(page)
    page.get_by_role("link", name="host31", exact=True).click()
    page.wait_for_selector(".title:has-text('host31')")
    # What follows is read from its beginning.
    assert stage.run(page, "scrollY") == 0
    page.go_back()
    page.wait_for_selector("tbody tr")
    page.wait_for_function("document.activeElement.textContent === 'host31'")
    assert stage.run(page, "scrollY") > 0


# How much of the map has the colour of what is wrong.
MARKED = """(() => {
    const canvas = document.querySelector("canvas");
    const bad = getComputedStyle(canvas).getPropertyValue("--bad").trim();
    const wanted = [1, 3, 5].map((each) => parseInt(bad.slice(each, each + 2), 16));
    const { data } = canvas.getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height);
    let found = 0;
    for (let at = 0; at < data.length; at += 4) {
        if (wanted.every((value, part) => data[at + part] === value)) found += 1;
    }
    return found;
})()"""


def test_more_used_than_there_is_is_seen(visit: Visit, tmp_path: Path) -> None:
    with stage.fresh(tmp_path) as (url, client):
        hosts = [client.make_provider(VCPU=8) for _ in range(2)]
        for host in hosts:
            assert client.claim(str(uuid.uuid4()), {host: {"VCPU": 8}}).status == 204
        path = f"/resource_providers/{hosts[0]}/inventories/VCPU"
        generation = client.call("GET", path).document["resource_provider_generation"]
        body = {"resource_provider_generation": generation, "total": 4}
        assert client.call("PUT", path, body).status == 200
        page = visit(url, "#/fleet?by=used&of=VCPU")
        page.wait_for_selector("canvas")
        over = page.locator(".legend button", has_text="over 100")
        assert over.locator(".bin-count").inner_text() == "1"
        assert page.locator(".badge").inner_text().split() == [
            "1",
            "to",
            "be",
            "mended",
        ]
        page.wait_for_selector(".total .bar-over")
        assert stage.run(page, MARKED) > 20
        page.goto(f"{url}/console/#/fleet?by=used&of=VCPU&as=table")
        page.wait_for_selector("td:has-text('over capacity')")
        page.goto(f"{url}/console/#/host/{hosts[0]}")
        page.wait_for_selector("text=4 over capacity")
        check(page)


def test_a_count_that_was_stopped_says_so(visit: Visit, site: Site) -> None:
    page = visit(site("demo"), "#/nowhere")
    asked: list[str] = []

    def stop(route: Any) -> None:
        asked.append(route.request.url)
        found = route.fetch().json()
        complete = "seconds=30" in route.request.url
        route.fulfill(json={**found, "complete": complete})

    page.route("**/ledger/v1/capacity*", stop)
    query = urlencode({"q": "resources=VCPU:1"})
    page.goto(f"{site('demo')}/console/#/ask?{query}")
    told = page.locator(".stale:has-text('was stopped')")
    told.wait_for()
    assert "fits at least" in page.locator(".number-line").inner_text()
    check(page)
    page.get_by_role("button", name="Count for up to 30 seconds").click()
    told.wait_for(state="detached")
    answered(page)
    assert "at least" not in page.locator(".number-line").inner_text()
    assert len(asked) == 2


def test_a_busy_service_is_asked_again(visit: Visit, site: Site) -> None:
    page = visit(site("flat"), "#/nowhere")
    busy = [True, True]

    def refuse(route: Any) -> None:
        if busy:
            busy.pop()
            route.fulfill(status=503, headers={"Retry-After": "1"}, body="{}")
        else:
            route.continue_()

    page.route("**/ledger/v1/fleet*", refuse)
    page.goto(f"{site('flat')}/console/#/fleet")
    page.wait_for_selector("canvas")
    assert busy == []
    assert page.locator(".failed").count() == 0
