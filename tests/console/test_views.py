"""Host, Consumers, Names, Now, and the common parts of all views."""

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cloud import KINDS, uuid_of
from placement.demonstration import cloud
from tests.console import stage
from tests.console.conftest import Site, Visit

AXE = Path(__file__).parents[2] / "console/node_modules/axe-core/axe.min.js"
NUMA_HOST = "demo-r02-numa03"
VIEWS = {
    "fleet": "#/",
    "fleet as a table": "#/fleet?as=table&group=prefix:2",
    "host": f"#/host/{cloud.uuid_of(NUMA_HOST)}",
    "shared": f"#/host/{cloud.uuid_of('demo-r00-compute03')}",
    "health": "#/health",
    "history": "#/history",
    "project": "#/project/demo-web",
    "ask": "#/ask?q=resources%3DVCPU%3A2",
    "ask in vain": "#/ask?q=resources%3DVCPU%3A2000",
    "host asked about": "#/ask?q=resources%3DVCPU%3A2000"
    f"&host={cloud.uuid_of(NUMA_HOST)}",
    "drain": f"#/drain/{cloud.uuid_of('demo-r00-compute03')}",
    "consumers": "#/consumers",
    "consumer": f"#/consumers/{cloud.uuid_of('demo-r00-compute03-server1')}",
    "names": "#/names",
    "now": "#/now",
    "nothing": "#/nowhere",
    "no host": "#/host/8d2ac8d2-4bc8-4d57-8d9b-3ea6a6f2b001",
    "no consumer": "#/consumers/8d2ac8d2-4bc8-4d57-8d9b-3ea6a6f2b001",
}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"color_scheme": "light", "viewport": {"width": 360, "height": 780}},
    "wide": {"color_scheme": "light", "viewport": {"width": 2560, "height": 800}},
}


PHONE = {"width": 360, "height": 800}


def open_view(visit: Visit, url: str, fragment: str, **options: Any) -> Any:
    page = visit(url, fragment, **options)
    stage.settled(page)
    return page


def test_a_tree_is_boxes_in_boxes(visit: Visit, site: Site) -> None:
    page = open_view(visit, site("nested"), f"#/host/{uuid_of('host3')}")
    assert page.locator(".title").inner_text() == "host3"
    assert page.locator(".box").count() == 9
    port = page.locator(".box .box .box .box").first
    assert "host3-numa0-nic-port0" in port.inner_text()
    assert "SRIOV_NET_VF" in port.inner_text()
    assert "CUSTOM_PHYSNET0" in port.inner_text()


def test_an_inner_provider_is_shown_in_its_tree(visit: Visit, site: Site) -> None:
    page = open_view(visit, site("nested"), f"#/host/{uuid_of('host3-numa1-nic')}")
    assert page.locator(".title").inner_text() == "host3"
    assert "host3-numa1-nic" in page.locator(".box.chosen > header").inner_text()


def test_sharing_providers_are_shown_next_to_the_tree(visit: Visit, site: Site) -> None:
    page = open_view(visit, site("shared"), f"#/host/{uuid_of('host3')}")
    beside = page.locator(".sharing").inner_text()
    assert "disk0" in beside
    assert uuid_of("rack0")[:8] in beside
    page.locator(".sharing a", has_text="disk0").click()
    page.wait_for_selector(".title:has-text('disk0')")
    assert page.locator(".sharing").count() == 0


def test_a_host_shows_reserved_ratio_and_consumers(visit: Visit, site: Site) -> None:
    fragment = f"#/host/{cloud.uuid_of('demo-r00-compute03')}"
    page = open_view(visit, site("demo"), fragment)
    text = page.locator(".box").first.inner_text().replace("\u202f", " ")
    assert "total 64 · reserved 2 · ratio 4" in text
    # The exact values are shown on hover.
    titles = [
        str(each.get_attribute("title")).replace("\u202f", " ")
        for each in page.locator(".stock-line [title]").all()
    ]
    assert any(re.fullmatch(r"[\d ]+ MEMORY_MB of [\d ]+", each) for each in titles)
    rows = page.locator("[aria-label=Consumers] tbody tr")
    assert rows.count() > 1
    assert "demo-" in rows.first.inner_text()
    rows.first.locator("a").first.click()
    page.wait_for_selector(".title:has-text('Consumer')")
    page.get_by_role("link", name="demo-r00-compute03").click()
    page.wait_for_selector(".title:has-text('demo-r00-compute03')")


def test_a_host_is_not_shown_as_another(visit: Visit, site: Site) -> None:
    page = open_view(visit, site("flat"), f"#/host/{uuid_of('host3')}")
    waiting: list[Any] = []
    page.route(
        f"**/ledger/v1/fleet?in_tree={uuid_of('host4')}*",
        lambda route: waiting.append(route),
    )
    page.goto(f"{site('flat')}/console/#/host/{uuid_of('host4')}")
    page.wait_for_selector("text=Reading the host")
    assert "host3" not in page.locator("main").inner_text()
    while not waiting:
        page.wait_for_timeout(50)
    waiting[0].continue_()
    page.wait_for_selector(".title:has-text('host4')")


def test_consumers_are_grouped_and_found(visit: Visit, site: Site) -> None:
    page = open_view(visit, site("demo"), "#/consumers")
    groups = page.locator("[aria-label='By project'] tbody tr")
    assert groups.count() == len(cloud.PROJECTS)
    # The consumer that holds most comes first.
    assert "demo-web" in groups.first.inner_text()
    groups.first.locator("a").click()
    page.wait_for_selector("h2:has-text('of demo-web')")
    projects = page.locator("[aria-label=Consumers] tbody td:nth-child(4)")
    assert set(projects.all_inner_texts()) == {"demo-web"}
    for by, label in (("type", "MIGRATION"), ("age", "up to a week")):
        page.get_by_label("Group by").select_option(by)
        page.wait_for_selector(f"[aria-label='By {by}'] >> text={label}")
    uuid = cloud.uuid_of("demo-r00-compute03-server1")
    page.get_by_label("UUID, project or type contains").fill(uuid)
    page.wait_for_selector("h2:has-text('1 consumer')")
    page.get_by_role("link", name=uuid).click()
    page.wait_for_selector("text=Where it is")
    assert "demo-r00-compute03" in page.locator("main").inner_text()


def test_health_shows_what_deserves_attention(visit: Visit, site: Site) -> None:
    page = open_view(visit, site("demo"), "#/health")
    disabled = page.locator("[aria-label='Disabled with room'] tbody tr")
    assert disabled.count() > 0
    assert "free" in disabled.first.inner_text()
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Save disabled as CSV").click()
    saved = Path(downloading.value.path()).read_bytes()
    assert saved.startswith(b"uuid,name,finding\r\n")
    summary = page.locator(".summary").inner_text()
    assert summary.startswith("Nothing is to be mended. Worth knowing: ")
    assert "nearly full" in summary
    assert page.locator(".badge").count() == 0
    disabled.first.locator("a").click()
    page.wait_for_selector(".flag:has-text('COMPUTE_STATUS_DISABLED')")
    page.get_by_role("link", name="Explain this host").wait_for()
    page.goto(f"{site('demo')}/console/#/fleet")
    page.wait_for_selector("text=disabled, marked by a cross")


def test_the_consumers_of_a_host_would_fit_elsewhere(visit: Visit, site: Site) -> None:
    host = cloud.uuid_of("demo-r00-compute03")
    page = open_view(visit, site("demo"), f"#/host/{host}")
    number = page.locator("[aria-label=Consumers] tbody tr").count()
    sent: list[str] = []
    page.on("request", lambda each: sent.append(f"{each.method} {each.url}"))
    with page.expect_request("**/ledger/v1/what-if"):
        page.get_by_role("link", name="Drain this host").click()
    page.wait_for_selector(f"text={number} consumers would fit elsewhere")
    plan = page.locator("[aria-label=Plan] tbody tr")
    assert plan.count() == number
    parts = plan.locator("td:nth-child(6)").all_inner_texts()
    shares = [int(part.split("\u202f")[0].strip("<")) for part in parts]
    assert shares == sorted(shares, reverse=True)
    assert "demo-r00-compute03" not in plan.locator("td:nth-child(7)").all_inner_texts()
    # No claim is moved.
    writes = [each for each in sent if not each.startswith("GET ")]
    assert writes
    assert all(each.endswith("/ledger/v1/what-if") for each in writes)
    check(page)


def test_tables_are_sorted_by_any_column(visit: Visit, site: Site) -> None:
    page = open_view(visit, site("demo"), "#/names?kind=classes")
    for press, order in ((1, "descending"), (2, "ascending")):
        page.get_by_role("button", name="Providers").click()
        page.wait_for_selector(f"th[aria-sort={order}]")
        cells = page.locator("tbody td:nth-child(2)").all_inner_texts()
        numbers = [int(each) for each in cells]
        assert numbers == sorted(numbers, reverse=press == 1)
    # The order is part of the address.
    page.reload()
    page.wait_for_selector("th[aria-sort=ascending]")


def test_names_show_which_are_unused(visit: Visit, site: Site) -> None:
    page = open_view(visit, site("demo"), "#/names")
    row = page.locator("tbody tr", has_text="HW_NUMA_ROOT").inner_text()
    assert row.split() == ["HW_NUMA_ROOT", "40"]
    page.get_by_label("Show").select_option("unused")
    page.wait_for_selector("text=CUSTOM_DEMO_RETIRED")
    assert page.locator("tbody tr").count() == 1
    page.get_by_label("What").select_option("classes")
    page.wait_for_selector("text=CUSTOM_DEMO_RETIRED_FPGA")
    page.get_by_label("Show").select_option("all")
    page.get_by_label("Name contains").fill("pgpu")
    page.wait_for_selector("bdi:text-is('PGPU')")
    page.get_by_role("link", name="PGPU", exact=True).click()
    page.wait_for_selector("canvas")
    assert (
        page.locator(".field:has(span:text-is('Class')) select").input_value() == "PGPU"
    )


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("look", LOOKS)
def test_a_view_is_accessible_and_as_wide_as_the_window(
    visit: Visit, site: Site, view: str, look: str
) -> None:
    page = visit(site("demo"), VIEWS[view], **LOOKS[look])
    page.witness.expects_failures = view in ("now", "no consumer")
    stage.settled(page)
    check(page)
    wider = "document.documentElement.scrollWidth - innerWidth"
    assert stage.run(page, wider) <= 0


def check(page: Any) -> None:
    """Check that a page is accessible."""
    stage.run(page, AXE.read_text())
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    options = json.dumps({"runOnly": tags})
    found = stage.run(page, f"axe.run({options}).then(result => result.violations)")
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


def test_how_old_it_is_is_said_on_a_phone(visit: Visit, site: Site) -> None:
    page = open_view(visit, site("demo"), "#/fleet", viewport=PHONE)
    page.wait_for_selector("text=live, as of")
    inside = stage.run(page, "document.querySelector('.moment').scrollWidth")
    assert inside <= PHONE["width"]


def test_what_colours_say_is_seen_where_the_system_sets_them(
    visit: Visit, site: Site
) -> None:
    page = open_view(visit, site("demo"), "#/fleet?bins=0", forced_colors="active")

    def colours(selector: str) -> Any:
        return page.locator(selector).evaluate_all(
            "all => all.map(each => getComputedStyle(each).backgroundColor)"
        )

    assert len(set(colours(".swatch:not(.struck)"))) > 5
    back = colours("html")[0]
    assert back not in colours(".bar-used")
    chosen = page.locator(".legend button").evaluate_all(
        "all => all.map(each => getComputedStyle(each).borderTopWidth)"
    )
    assert chosen[0] not in chosen[1:]
    lines = page.locator(".top nav a").evaluate_all(
        "all => all.map(each => getComputedStyle(each).borderBottomColor)"
    )
    assert lines[0] not in lines[1:]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_cloud_is_shown(visit: Visit, site: Site, kind: str) -> None:
    [host, *_] = site_hosts(site(kind))
    for view in (
        *("fleet", "fleet?by=consumers&group=trait:HW_CPU_X86_AVX2&as=table"),
        *("health", "history", "consumers", "names", f"host/{host}"),
        *("ask?q=resources=VCPU:1", "ask?q=resources=VCPU:100000"),
    ):
        page = open_view(visit, site(kind), f"#/{view}")
        page.wait_for_selector(".answer[aria-busy=false], main:not(:has(.answer))")
        text = page.locator("main").inner_text()
        assert len(text) > 30, view
        assert page.locator(".failed").count() == 0, (view, text)


def site_hosts(url: str) -> list[str]:
    """Return the UUIDs of the roots that a service knows."""
    request = urllib.request.Request(
        f"{url}/ledger/v1/fleet?fields=parent", headers={"X-Auth-Token": "admin"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        providers = json.load(answer)["providers"]
    return [each["uuid"] for each in providers if each["parent_provider_uuid"] is None]


def test_a_fresh_database_says_what_to_do(visit: Visit, site: Site) -> None:
    page = open_view(visit, site("empty"), "")
    text = page.locator("main").inner_text()
    assert f"{site('empty')}/resource_providers" in text
    assert "placement-manage demo --hosts 1000" in text
    check(page)
    for fragment, told in (
        ("#/consumers", "Nothing is allocated"),
        ("#/names", "No trait matches"),
        (f"#/host/{uuid_of('host0')}", "No provider has this UUID"),
    ):
        page = open_view(visit, site("empty"), fragment)
        assert told in page.locator("main").inner_text()
        check(page)


def test_the_keys_lead_everywhere(visit: Visit, site: Site) -> None:
    page = open_view(visit, site("flat"), "")
    for key, heading in (("c", "Consumers"), ("n", "Names"), ("f", "Fleet")):
        page.keyboard.press(key)
        page.wait_for_selector(f"h1:has-text('{heading}')", state="attached")
    page.keyboard.press("?")
    assert "move from host to host" in page.locator("dialog").inner_text()
    check(page)
    page.keyboard.press("Escape")
    assert page.locator("dialog").is_hidden()
    page.keyboard.press("/")
    page.keyboard.type("host12")
    page.keyboard.press("Enter")
    page.wait_for_selector(".title:has-text('host12')")
    page.keyboard.press("/")
    page.keyboard.type(uuid_of("host3 consumer 1"))
    page.keyboard.press("Enter")
    page.wait_for_selector(".title:has-text('Consumer')")
    page.keyboard.press("/")
    page.keyboard.type("host4")
    page.keyboard.press("Enter")
    page.wait_for_selector(".title > bdi:text-is('host4')")


def test_single_keys_can_be_turned_off(visit: Visit, site: Site) -> None:
    page = open_view(visit, site("flat"), "#/names")
    page.get_by_role("button", name="Help").click()
    choice = page.get_by_label("Use the keys of a single character")
    assert choice.is_checked()
    choice.uncheck()
    assert "move from host to host" in page.locator("dialog").inner_text()
    assert "read the fleet again" not in page.locator("dialog").inner_text()
    check(page)
    page.keyboard.press("Escape")
    page.reload()
    page.wait_for_selector("h1:has-text('Names')", state="attached")
    for key in "c/?":
        page.keyboard.press(key)
    page.keyboard.press("Tab")
    assert page.locator("dialog").is_hidden()
    assert page.url.endswith("#/names")
    assert "( / )" not in str(
        page.get_by_role("searchbox").first.get_attribute("placeholder")
    )
    page.get_by_role("button", name="Help").click()
    page.get_by_label("Use the keys of a single character").check()
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    page.wait_for_selector("h1:has-text('Consumers')", state="attached")


def test_the_first_stop_of_the_keyboard_skips_the_navigation(
    visit: Visit, site: Site
) -> None:
    page = open_view(visit, site("flat"), "#/names")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert stage.run(page, "document.activeElement.id") == "main"
    # The address is the same.
    assert page.url.endswith("#/names")
