"""Ask: which hosts serve a request, why none does, and what would help."""

import json
from typing import Any
from urllib.parse import quote, urlencode

from tests.console import stage
from tests.console.conftest import Site, Visit
from tests.console.test_views import check

SERVED = "resources=VCPU:4,MEMORY_MB:8192&required=CUSTOM_DEMO_TRUSTED"
# Each claim takes one of a host's 8 cards; no host has this many processors as well.
TOO_MUCH = "resources=VCPU:125,PGPU:1&required=CUSTOM_DEMO_TRUSTED"
FLAVOR = {
    "vcpus": 2,
    "ram": 4096,
    "disk": 20,
    "properties": {"trait:CUSTOM_DEMO_SSD": "required"},
}


def ask(visit: Visit, url: str, query: str, **options: Any) -> Any:
    page = visit(url, f"#/ask?{urlencode({'q': query})}", **options)
    answered(page)
    return page


def answered(page: Any) -> None:
    page.wait_for_selector(".answer[aria-busy=false]")


def top(element: Any) -> float:
    return float(element.first.bounding_box()["y"])


def verdict(page: Any) -> str:
    return str(page.locator(".number-line strong").inner_text()).replace("\u202f", " ")


def test_the_hosts_the_count_and_the_first_candidates(visit: Visit, site: Site) -> None:
    page = ask(visit, site("demo"), SERVED)
    assert verdict(page).endswith("of 123 hosts serve it")
    assert "fits" in page.locator(".number-line").inner_text()
    candidates = page.locator("[aria-label='First candidates'] tbody tr")
    assert candidates.count() == 10
    assert "4 VCPU" in candidates.first.inner_text()
    assert "8\u202fGiB MEMORY_MB" in candidates.first.inner_text()
    check(page)
    page.get_by_role("link", name="Show on the fleet").click()
    page.wait_for_selector("canvas")
    stage.settled(page)
    columns = page.locator(".legend button:not([disabled])")
    assert columns.count() > 1
    page.go_back()
    answered(page)


def test_another_question_does_not_have_the_old_answer(
    visit: Visit, site: Site
) -> None:
    page = ask(visit, site("demo"), SERVED)
    waiting: list[Any] = []
    page.route("**/ledger/v1/explanation*", lambda route: waiting.append(route))
    page.goto(f"{site('demo')}/console/#/ask?{urlencode({'q': TOO_MUCH})}")
    while not waiting:
        page.wait_for_timeout(50)
    assert page.locator(".verdict").count() == 0
    assert "Asking" in page.locator(".answer").inner_text()
    waiting[0].continue_()
    page.wait_for_selector("strong:has-text('No host')")


def test_why_no_host_serves_and_what_would_help(visit: Visit, site: Site) -> None:
    page = ask(visit, site("demo"), TOO_MUCH)
    assert verdict(page) == "No host serves it"
    assert "125" in page.locator(".verdict").inner_text()
    funnel = page.locator(".funnel tbody tr")
    left = [row.locator("td").nth(1).inner_text() for row in funnel.all()]
    numbers = [int(each) for each in left]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] == 0
    assert page.locator(".near > li").count() > 0
    remedies = page.locator(".remedies")
    assert top(page.locator(".funnel")) < top(remedies)
    assert 0 < remedies.locator("button, a").count() < 10
    check(page)
    check(ask(visit, site("demo"), TOO_MUCH, color_scheme="dark"))


def test_the_answer_is_in_the_first_screen_of_a_phone(visit: Visit, site: Site) -> None:
    size = {"width": 360, "height": 800}
    page = ask(visit, site("demo"), TOO_MUCH, viewport=size)
    assert top(page.locator(".number-line")) < size["height"]


def test_a_change_is_tried_and_taken_back(visit: Visit, site: Site) -> None:
    page = ask(visit, site("demo"), TOO_MUCH)
    page.locator(".remedies button").first.click()
    page.wait_for_selector("strong:has-text('hosts serve it')")
    answered(page)
    assert verdict(page) != "No host serves it"
    # The question is still what it was.
    assert page.get_by_label("Query string").input_value() == TOO_MUCH
    assert "off=" in page.url
    chip = page.locator(".what-if .token")
    assert chip.count() == 1
    check(page)
    page.reload()
    answered(page)
    assert verdict(page) != "No host serves it"
    chip.get_by_role("button").click()
    page.wait_for_selector("strong:has-text('No host')")


def test_a_consumer_is_imagined_away(visit: Visit, site: Site) -> None:
    page = ask(visit, site("demo"), TOO_MUCH)
    page.locator(".near summary").first.click()
    assert page.locator(".holders li").count() > 0
    # One of them alone would not help.
    gone = page.get_by_role("button", name="As if it were gone")
    assert gone.count() == 0
    page = ask(visit, site("demo"), TOO_MUCH.replace("125", "79"))
    page.locator(".near summary").first.click()
    gone = page.get_by_role("button", name="As if it were gone")
    with page.expect_request("**/ledger/v1/what-if"):
        gone.first.click()
    page.wait_for_selector("strong:has-text('1 of 123 hosts')")
    assert "ignore=" in page.url
    assert "were gone" in page.locator(".what-if").inner_text()
    page.go_back()
    page.wait_for_selector(".what-if", state="detached")


def test_a_request_is_built_in_the_form(visit: Visit, site: Site) -> None:
    page = visit(site("demo"), "#/ask")
    page.wait_for_selector("text=Choose a resource class")
    check(page)
    form = page.locator(".question")
    form.get_by_label("Class").fill("VCPU")
    form.get_by_label("Amount").fill("2")
    form.get_by_label("Trait", exact=True).fill("CUSTOM_DEMO_SSD")
    form.get_by_role("button", name="Add trait").click()
    box = page.get_by_label("Query string")
    page.wait_for_selector(".token:has-text('has CUSTOM_DEMO_SSD')")
    assert box.input_value() == "resources=VCPU:2&required=CUSTOM_DEMO_SSD"
    answered(page)
    form.get_by_role("button", name="Add a group").click()
    form.get_by_label("Class").nth(1).fill("PGPU")
    form.get_by_label("Amount").nth(1).fill("1")
    form.get_by_label("each group from a provider of its own").check()
    page.wait_for_selector("legend:has-text('Group 1')")
    assert "resources1=PGPU:1" in box.input_value()
    assert "group_policy=isolate" in box.input_value()
    answered(page)
    check(page)
    # The field and the form never show two different questions.
    remove = form.get_by_role("button", name="Remove: has CUSTOM_DEMO_SSD")
    said, kept = remove.evaluate(
        """async (button) => {
            const form = button.closest("form");
            button.click();
            await new Promise((done) => setTimeout(done));
            const { value } = form.parentElement.querySelector("textarea");
            return [value, form.querySelectorAll(".token").length];
        }"""
    )
    assert kept == 0
    assert "required" not in said


def test_a_flavor_or_an_address_can_be_pasted(visit: Visit, site: Site) -> None:
    page = visit(site("demo"), "#/ask")
    box = page.get_by_label("Query string")
    box.fill(json.dumps(FLAVOR))
    box.blur()
    answered(page)
    wanted = "resources=DISK_GB:20,MEMORY_MB:4096,VCPU:2&required=CUSTOM_DEMO_SSD"
    assert box.input_value() == wanted
    box.fill(f"http://elsewhere/allocation_candidates?{SERVED}")
    box.blur()
    page.wait_for_selector("text=CUSTOM_DEMO_TRUSTED")
    assert box.input_value() == SERVED
    for text, sentence in (
        ("{", "is not valid"),
        ("m1.large", "is no query string. A flavor"),
        ("VCPU:4", "resources=VCPU:4 is"),
        ('{"vcpus": 1, "disk": 1, "ram": "lots"}', "which is no amount"),
    ):
        box.fill(text)
        page.get_by_role("button", name="Ask", exact=True).click()
        page.wait_for_selector(f".fault:has-text('{sentence}')")
        assert box.input_value() == text
    box.fill(json.dumps({**FLAVOR, "properties": {"hw:numa_nodes": "2"}}))
    box.press("Enter")
    page.wait_for_selector("text=Not part of the query: hw:numa_nodes")
    assert box.input_value() == "resources=DISK_GB:20,MEMORY_MB:4096,VCPU:2"


def test_a_wrong_question_shows_the_error_of_the_api(visit: Visit, site: Site) -> None:
    page = visit(site("demo"), "#/nowhere")
    page.witness.expects_failures = True
    query = quote("resources=CUSTOM_NOWHERE:1")
    page.goto(f"{site('demo')}/console/#/ask?q={query}")
    page.wait_for_selector(".failed:has-text('CUSTOM_NOWHERE')")
    check(page)


def test_it_can_be_copied_as_commands(visit: Visit, site: Site) -> None:
    page = ask(visit, site("demo"), SERVED)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    wanted = {
        "curl": f"'{site('demo')}/allocation_candidates?{SERVED}'",
        "openstack": "--resource VCPU=4 --resource MEMORY_MB=8192 "
        "--required CUSTOM_DEMO_TRUSTED",
        "placement-explain": f"placement-explain '{SERVED}'",
    }
    for name, command in wanted.items():
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_selector("text=copied")
        assert command in stage.run(page, "navigator.clipboard.readText()")
        page.wait_for_selector("text=copied", state="detached")


def test_one_host_is_explained(visit: Visit, site: Site) -> None:
    page = visit(site("demo"), f"#/ask?{urlencode({'q': TOO_MUCH})}")
    answered(page)
    page.locator(".near > li > a").first.click()
    page.wait_for_selector(".title")
    name = page.locator(".title").inner_text()
    page.get_by_role("link", name="Explain this host").click()
    answered(page)
    told = page.locator(".judged")
    assert f"{name} does not serve it" in told.locator("h2").inner_text()
    unmet = told.locator(".unmet").first.inner_text()
    assert "has less than 125 VCPU free on one provider" in unmet
    assert "total 128, reserved 4, allocation_ratio 1, used" in unmet
    assert told.locator(".met").count() > 0
    check(page)
    told.get_by_role("button", name="All hosts only").click()
    told.wait_for(state="detached")
