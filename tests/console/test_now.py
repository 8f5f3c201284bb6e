"""Now: the differences between readings of the metrics."""

from typing import Any

import pytest

from tests.console.conftest import Site, Visit
from tests.console.test_views import check

READING = """\
placement_requests_total{{operation="/a",method="GET",status="200"}} {many}
placement_requests_total{{operation="/b",method="PUT",status="409"}} {few}
placement_request_duration_seconds_bucket{{operation="/a",le="0.01"}} {many}
placement_request_duration_seconds_bucket{{operation="/a",le="+Inf"}} {many}
"""

HAS_COUNTED = """least => {
    const [, total] = /([\\d\\s]+) requests since/.exec(document.body.innerText);
    return Number(total.replace(/\\s/g, "")) >= least;
}"""


def look(visit: Visit, url: str, tell: Any) -> Any:
    page = visit(url, "#/nowhere")
    page.clock.install()
    page.route("**/metrics", tell)
    page.goto(f"{url}/console/#/now")
    return page


def test_rates_and_times_are_those_since_the_last_reading(
    visit: Visit, site: Site
) -> None:
    times = []

    def tell(route: Any) -> None:
        times.append(1)
        number = len(times)
        body = READING.format(many=1000 + 50 * number, few=10 * number)
        route.fulfill(body=body, content_type="text/plain")

    page = look(visit, site("flat"), tell)
    page.wait_for_selector(".plot")
    page.clock.run_for(5_000)
    page.wait_for_selector(".plot dd:not(.earlier):not(:text-is('\u2013'))")
    shown = dict(
        zip(
            page.locator(".plot dt").all_inner_texts(),
            page.locator(".plot dd:not(.earlier)").all_inner_texts(),
            strict=False,
        )
    )
    # 60 more in 5 seconds, or a little longer, of which 10 were refused.
    assert 6 < float(shown["all"]) <= 12
    assert float(shown["all"]) == pytest.approx(
        6 * float(shown["conflicts (409)"]), 0.05
    )
    text = page.locator("main").inner_text()
    # Metrics that the service does not report are left out.
    assert "Transactions" not in text
    check(page)
    page.keyboard.press("f")
    page.wait_for_selector("canvas")
    # The readings go on while another view is shown.
    with page.expect_response("**/metrics"):
        page.clock.run_for(5_000)
    page.keyboard.press("w")
    page.wait_for_selector(".plot")
    assert len(times) >= 3


def test_metrics_that_are_off_can_be_switched_on(visit: Visit, site: Site) -> None:
    page = look(visit, site("flat"), lambda route: route.fulfill(status=404))
    page.witness.expects_failures = True
    page.wait_for_selector("text=[metrics] enabled = true")
    check(page)


def test_the_service_reports_what_is_shown(visit: Visit, site: Site) -> None:
    page = visit(site("flat"), "#/now")
    page.wait_for_selector(".plot")
    titles = page.locator(".plot strong").all_inner_texts()
    assert "Requests" in titles
    assert "Time of a request" in titles
    check(page)


def test_graphs_outlive_a_reload_and_are_compared(visit: Visit, site: Site) -> None:
    taken: list[int] = []

    def tell(route: Any) -> None:
        taken.append(1)
        number = len(taken)
        body = READING.format(many=1000 + 60 * number, few=0)
        route.fulfill(body=body, content_type="text/plain")

    page = look(visit, site("flat"), tell)
    page.wait_for_selector(".plot")
    row = page.locator(".plot").first.locator(".keys > div").first
    # Readings go on for more than an hour, some minutes at a time.
    for _ in range(14):
        with page.expect_response("**/metrics"):
            page.clock.fast_forward(5 * 60_000)
        # A reading belongs to the time at which the page has it.
        page.wait_for_function(HAS_COUNTED, arg=1000 + 60 * len(taken))
    page.wait_for_selector(".keys .earlier")
    points = page.locator(".plot path").first.get_attribute("d")
    page.reload()
    page.clock.fast_forward(20_000)
    page.wait_for_selector(".plot")
    # What was before the reload is still drawn, and still compared with.
    assert points
    assert len(str(page.locator(".plot path").first.get_attribute("d"))) > 20
    said = row.inner_text().replace("\n", " ")
    assert "1 h ago" in said
    assert "1 h ago \u2013" not in said
    # Of a day ago, nothing is known yet.
    assert "1 d ago" not in said
    check(page)
