"""Fleet: how hosts are drawn, filtered and reached by keys; the view in the address."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cloud import uuid_of
from tests.console import stage
from tests.console.conftest import Site, Visit
from tests.console.test_views import check


def cells(page: Any) -> str:
    """Return what is on the canvas."""
    return str(stage.run(page, "document.querySelector('canvas').toDataURL()"))


def caption(page: Any) -> str:
    return str(page.locator(".caption strong").inner_text()).replace("\u202f", " ")


def colours(page: Any) -> int:
    """Count the colours of the canvas."""
    return int(
        stage.run(
            page,
            """(() => {
                const canvas = document.querySelector("canvas");
                const all = canvas.getContext("2d")
                    .getImageData(0, 0, canvas.width, canvas.height).data;
                return new Set(new Uint32Array(all.buffer)).size;
            })()""",
        )
    )


def test_all_hosts_are_drawn_with_totals_above(visit: Visit, site: Site) -> None:
    page = visit(site("demo"))
    stage.settled(page)
    # The shared disks are hosts as well.
    assert caption(page) == "123 hosts"
    assert colours(page) > 10
    names = page.locator(".total-name").all_inner_texts()
    assert {"VCPU", "MEMORY_MB", "DISK_GB"} <= set(names)
    assert "TiB of" in page.locator(".total", has_text="MEMORY_MB").inner_text()


def test_the_mouse_shows_the_numbers_and_opens_the_host(
    visit: Visit, site: Site
) -> None:
    page = visit(site("flat"))
    stage.settled(page)
    canvas = page.locator("canvas")
    canvas.hover(position={"x": 30, "y": 20})
    tip = page.locator(".tip").inner_text()
    assert "host0" in tip
    assert "38" in tip
    assert "102" in tip
    assert "GiB" in tip
    canvas.click(position={"x": 30, "y": 20})
    page.wait_for_selector(".title:has-text('host0')")
    assert page.url.endswith(f"#/host/{uuid_of('host0')}")


def test_the_keys_move_and_open(visit: Visit, site: Site) -> None:
    page = visit(site("flat"))
    stage.settled(page)
    page.locator(".map").focus()
    page.keyboard.press("ArrowRight")
    said = page.locator(".map [role=status]")
    assert "host0:" in said.inner_text()
    page.keyboard.press("ArrowRight")
    assert "host1:" in said.inner_text()
    page.keyboard.press("ArrowDown")
    below = said.inner_text()
    assert "host1:" not in below
    page.keyboard.press("ArrowUp")
    assert "host1:" in said.inner_text()
    page.keyboard.press("End")
    assert "host49:" in said.inner_text()
    page.keyboard.press("Enter")
    page.wait_for_selector(".title:has-text('host49')")


def test_the_keys_move_through_groups(visit: Visit, site: Site) -> None:
    size = {"width": 700, "height": 900}
    page = visit(site("demo"), "#/fleet?group=prefix:2", viewport=size)
    stage.settled(page)
    page.locator(".map").focus()
    page.keyboard.press("Home")
    said = page.locator(".map [role=status]")
    seen = {said.inner_text()}
    for _ in range(12):
        page.keyboard.press("ArrowDown")
        seen.add(said.inner_text())
    assert len(seen) > 5


def test_the_histogram_is_a_filter(visit: Visit, site: Site) -> None:
    page = visit(site("demo"), "#/fleet?by=used&of=MEMORY_MB")
    stage.settled(page)
    columns = page.locator(".legend button:not([disabled])")
    assert columns.count() > 4
    number = columns.nth(1).locator(".bin-count").inner_text()
    columns.nth(1).click()
    assert caption(page) == f"{number} of 123 hosts"
    assert "bins=" in page.url
    page.get_by_role("button", name="Show all").click()
    assert caption(page) == "123 hosts"
    page.go_back()
    assert caption(page) == f"{number} of 123 hosts"
    page.go_back()
    assert caption(page) == "123 hosts"


@pytest.mark.parametrize(
    "choice",
    [
        "by=free&of=MEMORY_MB",
        "by=reserved&of=VCPU",
        "by=consumers",
        "by=trait&of=CUSTOM_DEMO_TRUSTED",
        "by=aggregate&of={aggregate}",
        "by=used&of=PGPU",
    ],
)
def test_hosts_are_coloured_by_what_is_chosen(
    visit: Visit, site: Site, choice: str
) -> None:
    from placement.demonstration import cloud

    aggregate = cloud.uuid_of("demo-zone1")
    page = visit(site("demo"), "#/fleet")
    stage.settled(page)
    before = cells(page)
    page.goto(f"{site('demo')}/console/#/fleet?{choice.format(aggregate=aggregate)}")
    page.wait_for_selector("canvas")
    stage.settled(page)
    assert cells(page) != before
    numbers = page.locator(".bin-count").all_inner_texts()
    assert sum(int(number.replace("\u202f", "")) for number in numbers) == 123
    assert sum(number != "0" for number in numbers) > 1


@pytest.mark.parametrize(
    ("group", "groups"),
    [
        ("aggregate", 9),
        ("prefix:1", 1),
        ("prefix:2", 7),
        ("trait:CUSTOM_DEMO_SSD", 2),
    ],
)
def test_hosts_are_grouped_as_is_chosen(
    visit: Visit, site: Site, group: str, groups: int
) -> None:
    page = visit(site("demo"), f"#/fleet?as=table&group={group}")
    stage.settled(page)
    headings = page.locator("th").all_inner_texts()
    if groups == 1:
        assert "Group" not in headings
        return
    assert "Group" in headings
    more = page.get_by_role("button", name="Show more")
    while more.count():
        more.click()
    labels = page.locator("tbody tr td:first-child").all_inner_texts()
    assert len(set(labels)) == groups


def test_hosts_are_found_and_sorted(visit: Visit, site: Site) -> None:
    page = visit(site("demo"), "#/fleet?as=table&by=used&of=MEMORY_MB&sort=most")
    stage.settled(page)
    cellsof = page.locator("tbody tr td:nth-child(2)").all_inner_texts()
    shares = [
        100 if ">" in text else int(re.sub(r"\D", "", text.split("%")[0]) or 0)
        for text in cellsof
        if "%" in text
    ]
    assert shares == sorted(shares, reverse=True)
    page.get_by_label("Find hosts").fill("GPU")
    page.wait_for_selector(".caption strong:text('of')")
    assert caption(page) == "20 of 123 hosts"
    assert "find=GPU" in page.url
    page.get_by_label("Find hosts").fill("no such name")
    page.wait_for_selector("text=No host matches.")


def test_a_search_is_saved_by_name_and_forgotten(visit: Visit, site: Site) -> None:
    page = visit(site("flat"), "#/fleet?find=host1")
    page.once("dialog", lambda dialog: dialog.accept("<b>mine</b> ü"))
    page.get_by_role("button", name="Save search").click()
    saved = page.get_by_label("Saved searches")
    saved.wait_for()
    # It is kept by the browser, and one that is chosen is an address as well.
    page.goto(f"{site('flat')}/console/#/fleet?find=host2")
    page.reload()
    saved.select_option(label="<b>mine</b> ü")
    page.wait_for_url("**find=host1")
    check(page)
    page.get_by_role("button", name="Forget search").click()
    saved.wait_for(state="detached")
    page.reload()
    page.wait_for_selector("canvas")
    assert saved.count() == 0


def test_the_choice_is_an_address(visit: Visit, site: Site) -> None:
    page = visit(site("demo"), "#/fleet?by=free&of=DISK_GB&group=prefix:2&sort=least")
    stage.settled(page)
    assert page.get_by_label("Colour by").input_value() == "free"
    assert (
        page.locator(".field:has(span:text-is('Class')) select").input_value()
        == "DISK_GB"
    )
    assert page.get_by_label("Group by").input_value() == "prefix:2"
    assert page.get_by_label("Sort by").input_value() == "least"
    page.get_by_label("Colour by").select_option("consumers")
    assert "by=consumers" in page.url
    page.go_back()
    assert page.get_by_label("Colour by").input_value() == "free"
    page.go_forward()
    assert page.get_by_label("Colour by").input_value() == "consumers"


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[str, list[Callable[[], None]]]]:
    """Serve a fleet that ends only once it is allowed to, or breaks off."""
    goes_on = threading.Event()
    endings: list[Callable[[], None]] = [goes_on.set]

    def line(number: int) -> bytes:
        host = {"uuid": str(number), "name": f"host{number}", "inventories": {}}
        return json.dumps(host).encode() + b"\n"

    def lines() -> Iterator[bytes]:
        for number in range(8000):
            if number == 7000:
                assert goes_on.wait(60)
                endings[-1]()
            yield line(number)

    length = sum(len(line(number)) for number in range(8000))

    with stage.filled(tmp_path, lambda each: None) as filled:
        application = stage.build(filled)

        def serve(environment: Any, start_response: Any) -> Any:
            if not environment["PATH_INFO"].startswith("/ledger/v1/fleet"):
                return application(environment, start_response)
            kind = ("content-type", "application/x-ndjson")
            start_response("200 OK", [kind, ("content-length", str(length))])
            return lines()

        with stage.serving(serve) as url:
            yield url, endings
        goes_on.set()


def test_it_is_drawn_while_it_is_read(
    visit: Visit, slow: tuple[str, list[Callable[[], None]]]
) -> None:
    url, [go_on] = slow
    page = visit(url)
    page.wait_for_selector("canvas")
    assert caption(page) == "5 000 hosts"
    assert "so far" in page.locator(".caption").inner_text()
    go_on()
    page.wait_for_selector(".caption strong:text-is('8\u202f000 hosts')")
    assert page.locator(".partial").count() == 0


def test_a_part_of_a_fleet_is_no_fleet(
    visit: Visit, slow: tuple[str, list[Callable[[], None]]]
) -> None:
    url, endings = slow
    page = visit(url)
    page.witness.expects_failures = True
    page.wait_for_selector("canvas")

    def break_off() -> None:
        raise RuntimeError

    endings.append(break_off)
    endings[0]()
    page.wait_for_selector(".failed:has-text('ended before it was complete')")
    assert page.locator("canvas").count() == 0
