"""A short walk through the console: the one of these tests that every change runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.console import stage
from tests.console.conftest import CLOUDS, Visit

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

HOST = "demo-r02-numa03"


def from_elsewhere(application: "WSGIApplication") -> "WSGIApplication":
    """Serve an application to callers on other machines, who need a token."""

    def remote(environment: "WSGIEnvironment", start_response: "StartResponse") -> Any:
        return application({**environment, "REMOTE_ADDR": "192.0.2.1"}, start_response)

    return remote


def test_from_the_sign_in_to_health(visit: Visit, tmp_path: Path) -> None:
    with (
        stage.filled(tmp_path, CLOUDS["demo"]) as database,
        stage.serving(from_elsewhere(stage.build(database))) as url,
    ):
        page = visit(url)
        page.get_by_label("Token").fill("admin")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("text=123 hosts")
        page.keyboard.press("/")
        page.keyboard.type(HOST)
        page.keyboard.press("Enter")
        page.wait_for_selector(f".title:has-text('{HOST}')")
        assert page.locator(".box .box").count() > 0
        page.goto(f"{url}/console/#/ask?q=resources%3DVCPU%3A2")
        page.wait_for_selector(".answer[aria-busy=false] strong:has-text('serve it')")
        page.locator("summary:has-text('Place it')").click()
        page.get_by_label("Project of the consumers").fill("walk")
        page.get_by_label("User").fill("walker")
        page.get_by_role("button", name="Dry run").click()
        page.get_by_role("button", name="Place 1 consumer").click()
        page.wait_for_selector("text=1 consumer placed")
        page.get_by_role("link", name="History").click()
        page.wait_for_selector("[aria-label=History] tr:has-text('of walk')")
        page.get_by_role("link", name="Health").click()
        page.wait_for_selector("h2:has-text('Disabled with room')")
