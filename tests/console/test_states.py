"""Loading, failing, signing in, prefixes, hostile names."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import cloud
from placement import app, conf
from tests.console import stage
from tests.console.conftest import Site, Visit
from tests.console.test_views import check
from tests.functional import identity
from tests.functional.identity import IdentityServer
from tests.functional.test_console import CONFIGURATION, PASSWORD

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

REQUEST_ID = "req-11111111-2222-3333-4444-555555555555"
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "\u202egnirts desrever\u202c \u05e9\u05dc\u05d5\u05dd",
    "x" * 200,
    "\N{ROCKET}\N{PARTY POPPER} host",
    "</script><script>alert(1)</script>",
    "'\"&amp;<b>bold</b>",
]


def test_reading_shows_its_progress(visit: Visit, site: Site) -> None:
    page = visit(site("flat"), "#/nowhere")
    waiting: list[Any] = []
    page.route("**/ledger/v1/fleet*", lambda route: waiting.append(route))
    page.goto(f"{site('flat')}/console/#/fleet")
    page.wait_for_selector("text=Reading providers")
    check(page)
    while not waiting:
        page.wait_for_timeout(50)
    waiting[0].continue_()
    page.wait_for_selector("canvas")


@pytest.mark.parametrize(
    ("fragment", "asked"),
    [
        ("#/fleet", "**/ledger/v1/fleet*"),
        (f"#/host/{cloud.uuid_of('host3')}", "**/ledger/v1/fleet*"),
        ("#/consumers", "**/ledger/v1/fleet*"),
        (f"#/consumers/{cloud.uuid_of('host3 consumer 1')}", "**/allocations/*"),
        ("#/names", "**/traits"),
        ("#/now", "**/metrics"),
    ],
)
def test_a_failure_is_shown_and_tried_again(
    visit: Visit, site: Site, fragment: str, asked: str
) -> None:
    page = visit(site("flat"), "#/nowhere")
    page.witness.expects_failures = True
    failing = {
        "status": 503,
        "json": {"errors": [{"title": "x", "detail": "The database is away."}]},
        "headers": {"x-openstack-request-id": REQUEST_ID},
    }
    page.route(asked, lambda route: route.fulfill(**failing))
    page.goto(f"{site('flat')}/console/{fragment}")
    told = page.locator(".failed")
    told.wait_for()
    text = told.inner_text()
    assert "The database is away." in text
    assert REQUEST_ID in text
    assert "503" in text
    check(page)
    page.unroute(asked)
    if fragment == "#/now":
        works = {"body": "placement_requests_total 7\n", "content_type": "text/plain"}
        page.route(asked, lambda route: route.fulfill(**works))
    page.get_by_role("button", name="Try again").click()
    told.wait_for(state="detached")


def test_a_service_that_is_away_is_said_once(visit: Visit, site: Site) -> None:
    page = visit(site("flat"), "#/health")
    page.wait_for_selector(".summary")
    page.witness.expects_failures = True
    page.context.set_offline(True)
    page.get_by_role("button", name="Refresh").click()
    away = page.locator(".stale", has_text="The service has not answered since")
    away.wait_for()
    page.wait_for_timeout(500)
    assert page.locator(".stale, .failed").count() == 1
    check(page)
    page.context.set_offline(False)
    away.wait_for(state="detached")
    page.locator(".stale, .failed").first.wait_for(state="detached")


REFUSING = """
for (const name of ["sessionStorage", "localStorage"])
  Object.defineProperty(window, name, {
    get() { throw new DOMException("Access is denied.", "SecurityError"); },
  });
"""


def test_a_browser_that_keeps_nothing_shows_it_all(visit: Visit, site: Site) -> None:
    url = site("flat")
    page = visit(url, "#/nowhere")
    page.add_init_script(REFUSING)
    page.goto("about:blank")
    page.goto(f"{url}/console/#/now")
    page.locator(".plot").first.wait_for()
    page.goto(f"{url}/console/#/fleet")
    page.wait_for_selector("text=live, as of")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_selector("text=paused, as of")
    page.get_by_label("Find hosts").fill("host")
    page.on("dialog", lambda dialog: dialog.accept("mine"))
    page.get_by_role("button", name="Save search").click()
    page.wait_for_selector("text=Not saved: the browser has no room for it.")


@pytest.fixture
def server() -> Iterator[IdentityServer]:
    with identity.running() as server:
        server.passwords["ann"] = (PASSWORD["password"], ("admin",))
        server.passwords["bob"] = ("secret of bob", ("reader",))
        yield server


def twice(application: "WSGIApplication") -> "WSGIApplication":
    """Serve an application, and beneath a prefix once more."""
    below = stage.beneath(application)

    def chosen(environment: "WSGIEnvironment", start_response: "StartResponse") -> Any:
        is_below = environment["PATH_INFO"].startswith(f"{stage.PREFIX}/")
        return (below if is_below else application)(environment, start_response)

    return chosen


@pytest.fixture
def guarded(server: IdentityServer, tmp_path: Path) -> Iterator[str]:
    """Serve a cloud to users who have signed in."""
    path = tmp_path / "placement.conf"
    path.write_text(
        CONFIGURATION
        + identity.options_of(server)
        # Every request checks whether its token has been revoked.
        + "token_cache_time = -1\n"
    )
    config = conf.read([], [str(path)])
    with (
        stage.filled(tmp_path, lambda each: cloud.plant(each, cloud.flat(5))) as filled,
        stage.serving(twice(app.build(config, filled))) as url,
    ):
        yield url


def expire_tokens(server: IdentityServer) -> None:
    """End the sessions of all users."""
    server.tokens = {
        token: document
        for token, document in server.tokens.items()
        if document["user"]["id"] == identity.SERVICE_USER
    }


def sign_in(page: Any, user: str, password: str) -> None:
    page.get_by_label("User", exact=True).fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_label("Project", exact=True).fill("a project")
    page.get_by_role("button", name="Sign in").click()


def test_the_sign_in_leads_on_to_the_linked_page(visit: Visit, guarded: str) -> None:
    page = visit(guarded, f"#/host/{cloud.uuid_of('host3')}")
    page.wait_for_selector("button:text('Sign in')")
    check(page)
    page.witness.expects_failures = True
    sign_in(page, "ann", "a guess")
    page.wait_for_selector("text=does not know this user")
    check(page)
    sign_in(page, "ann", PASSWORD["password"])
    page.wait_for_selector(".title:has-text('host3')")
    where = page.locator(".where").inner_text().split()
    assert where == ["Example", "Cloud", "RegionOne", "name", "of", "ann"]
    page.wait_for_function("document.title == 'host3 \u00b7 Host \u00b7 Example Cloud'")
    assert page.context.cookies() == []
    assert stage.run(page, "Object.keys(localStorage).length") == 0
    kept = stage.run(page, "Object.keys(sessionStorage).sort().join()")
    assert kept == "placement-token /,placement-who /"
    page.reload()
    page.wait_for_selector(".title:has-text('host3')")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_selector("button:text('Sign in')")
    assert stage.run(page, "Object.keys(sessionStorage).length") == 0


def test_a_token_goes_to_no_other_service_of_the_same_origin(
    visit: Visit, guarded: str
) -> None:
    page = visit(guarded)
    sign_in(page, "ann", PASSWORD["password"])
    page.wait_for_selector("canvas")
    page.goto(f"{guarded}{stage.PREFIX}/console/")
    page.wait_for_selector("button:text('Sign in')")
    page.goto(f"{guarded}/console/")
    page.wait_for_selector("canvas")


def test_a_token_that_expires_leads_to_the_sign_in_and_back(
    visit: Visit, guarded: str, server: IdentityServer
) -> None:
    page = visit(guarded)
    sign_in(page, "ann", PASSWORD["password"])
    page.wait_for_selector("canvas")
    page.get_by_label("Sort by").select_option("least")
    expire_tokens(server)
    page.witness.expects_failures = True
    page.get_by_role("button", name="Refresh").click()
    page.wait_for_selector("text=Sign in again to return")
    sign_in(page, "ann", PASSWORD["password"])
    page.wait_for_selector("canvas")
    assert page.get_by_label("Sort by").input_value() == "least"


def test_what_an_earlier_session_asked_does_not_end_the_next(
    visit: Visit, guarded: str, server: IdentityServer
) -> None:
    page = visit(guarded)
    sign_in(page, "ann", PASSWORD["password"])
    page.wait_for_selector("canvas")
    waiting: list[Any] = []
    page.route("**/ledger/v1/names", lambda route: waiting.append(route))
    expire_tokens(server)
    page.witness.expects_failures = True
    page.get_by_role("button", name="Refresh").click()
    page.wait_for_selector("text=Sign in again to return")
    sign_in(page, "ann", PASSWORD["password"])
    page.wait_for_selector("canvas")
    with page.expect_response("**/ledger/v1/names") as answered:
        waiting[0].continue_()
    assert answered.value.status == 401
    answered.value.finished()
    page.get_by_role("button", name="Refresh").click()
    stage.settled(page)
    assert page.locator("canvas").count() == 1


def test_a_token_is_enough(visit: Visit, guarded: str, server: IdentityServer) -> None:
    page = visit(guarded)
    page.get_by_role("button", name="Use a token").click()
    page.get_by_label("Token").fill(server.add_token("admin"))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("canvas")


def test_it_works_beneath_a_prefix(visit: Visit, tmp_path: Path) -> None:
    with (
        stage.filled(tmp_path, lambda each: cloud.plant(each, cloud.flat(5))) as filled,
        stage.serving(stage.beneath(stage.build(filled))) as url,
    ):
        page = visit(f"{url}{stage.PREFIX}")
        page.wait_for_selector("canvas")
        page.keyboard.press("n")
        page.wait_for_selector("h1:has-text('Names')", state="attached")
        # Without the last slash, too.
        page.goto(f"{url}{stage.PREFIX}/console")
        page.wait_for_selector("canvas")
        assert page.url == f"{url}{stage.PREFIX}/console/"


def test_hostile_names_are_text(visit: Visit, tmp_path: Path) -> None:
    with stage.fresh(tmp_path) as (url, client):
        uuids = {}
        for name in HOSTILE:
            uuids[name] = client.make_provider(VCPU=8)
            body = {"name": name, "parent_provider_uuid": None}
            path = f"/resource_providers/{uuids[name]}"
            assert client.call("PUT", path, body).status == 200
            amounts = {uuids[name]: {"VCPU": 1}}
            claimed = client.claim(str(uuid.uuid4()), amounts, project=name)
            assert claimed.status == 204
        page = visit(url, "#/fleet")
        page.wait_for_selector("canvas")
        page.goto(f"{url}/console/#/fleet?as=table")
        page.wait_for_selector("tbody tr")
        shown = page.locator("tbody td.name").all_inner_texts()
        assert sorted(shown) == sorted(seen(name) for name in HOSTILE)
        page.goto(f"{url}/console/#/consumers")
        page.wait_for_selector("[aria-label='By project'] tbody tr")
        shown = page.locator("[aria-label='By project'] td.name").all_inner_texts()
        assert sorted(shown) == sorted(seen(name) for name in HOSTILE)
        for name, provider in uuids.items():
            page.goto(f"{url}/console/#/host/{provider}")
            page.wait_for_selector(f".box[aria-label={quote(name)}]")
            assert page.locator(".title").inner_text() == seen(name)
            assert page.locator("img, main script, b").count() == 0
        wide = stage.run(page, "document.documentElement.scrollWidth")
        assert wide <= 1400


def seen(name: str) -> str:
    """Return a name with the marks that are shown instead of what nobody sees."""
    return name.replace("\u202e", "U+202E").replace("\u202c", "U+202C")


def quote(text: str) -> str:
    """Return a text as a selector quotes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
