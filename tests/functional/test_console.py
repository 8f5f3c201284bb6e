"""The console as a web server meets it: files, headers, sign-in."""

import gzip
import io
import json
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import webob

from placement import app, conf
from placement.console import page
from placement_foundation.database.storage import Database
from placement_foundation.http import thread_limit
from tests.functional import identity
from tests.functional.identity import IdentityServer
from tests.settings import make_config

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

Send = Callable[..., webob.Response]

PASSWORD = {"user": "ann", "password": "secret of ann", "project": "a project"}
NAMES = {"cloud": "Example Cloud", "region": "RegionOne"}
CONFIGURATION = """
[console]
enabled = true
cloud = Example Cloud
region = RegionOne
[placement_database]
connection = sqlite://
[oslo_policy]
policy_file = a file that does not exist.yaml
"""


def caller(application: "WSGIApplication") -> Send:
    """Return a function that sends a request, by default from this machine."""

    def send(path: str, method: str = "GET", **options: Any) -> webob.Response:
        address = options.pop("address", "127.0.0.1")
        request = webob.Request.blank(
            path, method=method, environ={"REMOTE_ADDR": address}, **options
        )
        return request.get_response(application)

    return send


@pytest.fixture
def send(database: Database) -> Send:
    """Give a way to call a service that believes everybody."""
    options = {("console", name): value for name, value in NAMES.items()}
    config = make_config({("console", "enabled"): True, **options})
    return caller(app.build(config, database))


@pytest.fixture
def server() -> Iterator[IdentityServer]:
    with identity.running() as server:
        server.passwords["ann"] = (PASSWORD["password"], ("admin",))
        yield server


@pytest.fixture
def guarded(server: IdentityServer, database: Database, tmp_path: Path) -> Send:
    """Give a way to call a service that asks the identity service."""
    path = tmp_path / "placement.conf"
    path.write_text(CONFIGURATION + identity.options_of(server))
    return caller(app.build(conf.read([], [str(path)]), database))


def sign_in(send: Send, document: Any, **headers: str) -> webob.Response:
    headers = {"Content-Type": "application/json", **headers}
    body = json.dumps(document).encode()
    return send("/console/session", "POST", body=body, headers=headers)


def test_it_is_off_by_default(application: "WSGIApplication") -> None:
    assert not make_config().console.enabled
    headers = {"X-Auth-Token": "admin"}
    assert caller(application)("/console/", headers=headers).status_int == 404
    assert caller(application)("/console/").status_int == 401


def test_the_page_and_all_that_it_names_are_there(send: Send) -> None:
    response = send("/console/")
    assert (response.status_int, response.content_type) == (200, "text/html")
    names = re.findall(r'(?:href|src)="([^"]+)"', response.text)
    assert len(names) == 3
    for name in names:
        # Relative, so that it is found beneath any prefix.
        assert not name.startswith("/")
        found = send(f"/console/{name}")
        assert found.status_int == 200
        assert found.headers["cache-control"] == page.FOR_EVER


def test_it_is_small() -> None:
    sizes = {
        path.name: len(gzip.compress(path.read_bytes()))
        for path in page.FILES.iterdir()
    }
    assert sum(sizes.values()) <= 80_000, sizes


def test_what_may_change_is_asked_for_again(send: Send) -> None:
    first = send("/console/")
    assert first.headers["cache-control"] == "no-cache"
    tag = first.headers["etag"]
    again = send("/console/", headers={"If-None-Match": f'"another", W/{tag}'})
    assert (again.status_int, again.body, again.headers["etag"]) == (304, b"", tag)
    # If there were a length, it would be that of what the browser has.
    assert "content-length" not in again.headers
    assert send("/console/", headers={"If-None-Match": '"x"'}).status_int == 200


def test_files_are_compressed_for_clients_that_accept_it(send: Send) -> None:
    plain = send("/console/licences.txt")
    small = send("/console/licences.txt", headers={"Accept-Encoding": "br, gzip"})
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert small.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert gzip.decompress(small.body) == plain.body
    assert b"preact" in plain.body


def test_nothing_is_loaded_from_elsewhere_and_no_site_frames_it(send: Send) -> None:
    for name in page.load():
        headers = send(f"/console/{name}").headers
        policy = headers["content-security-policy"].split("; ")
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in str(policy)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-openstack-request-id"].startswith("req-")


def test_its_address_without_the_end_leads_to_it_beneath_any_prefix(
    send: Send,
) -> None:
    response = send("/console", base_url="http://cloud.example/placement")
    assert response.status_int == 308
    # Read as it was sent: relative to the address that was asked for.
    assert response.headers["location"] == "console/"
    beneath = send("/console/", base_url="http://cloud.example/placement")
    assert beneath.body == send("/console/").body


@pytest.mark.parametrize(
    "path",
    [
        "/console/../app.py",
        "/console/..%2fpage.py",
        "/console/%2e%2e/page.py",
        "/console//etc/passwd",
        "/console/static/index.html",
        "/console/page.py",
        "/console/./index.html",
        "/console/index.html%00",
        "/console/%e2%98%83",
    ],
)
def test_only_its_own_files_are_served(send: Send, path: str) -> None:
    response = send(path)
    assert response.status_int == 404
    [error] = response.json["errors"]
    assert error["request_id"] == response.headers["x-openstack-request-id"]


def test_files_are_only_read(send: Send) -> None:
    response = send("/console/", "PUT", headers={"X-Auth-Token": "admin"})
    assert (response.status_int, response.headers["allow"]) == (405, "GET, HEAD")
    head = send("/console/", "HEAD")
    assert (head.status_int, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(send("/console/").body))


def test_the_api_is_as_closed_as_ever(guarded: Send, send: Send) -> None:
    for path in ("/resource_providers", "/consoles", "/consol", "/ledger/v1/fleet"):
        assert guarded(path).status_int == 401
        assert send(path).status_int == 401
    assert guarded("/console/").status_int == 200


def test_without_authentication_there_is_no_sign_in(send: Send) -> None:
    for address in ("127.0.0.1", "::1"):
        response = send("/console/session", address=address)
        assert response.json == {"sign_in": "none", **NAMES}
        assert response.headers["cache-control"] == "no-store"
    for address in ("192.0.2.7", "2001:db8::7", ""):
        response = send("/console/session", address=address)
        assert response.json == {"sign_in": "token", **NAMES}
    assert sign_in(send, PASSWORD).status_int == 400


def test_a_password_gives_a_token_that_the_api_takes(
    guarded: Send, server: IdentityServer
) -> None:
    assert guarded("/console/session").json == {"sign_in": "password", **NAMES}
    response = sign_in(guarded, PASSWORD)
    assert response.status_int == 201
    token = response.json["token"]
    assert server.tokens[token]["user"]["id"] == "ann"
    assert response.json["expires_at"].startswith("20")
    assert response.json["user"] == "name of ann"
    assert response.json["project_id"]
    assert response.json["roles"]
    assert response.headers["cache-control"] == "no-store"
    assert "set-cookie" not in response.headers
    headers = {"X-Auth-Token": token}
    assert guarded("/resource_providers", headers=headers).status_int == 200


def test_the_identity_service_gets_the_domains(
    guarded: Send, server: IdentityServer
) -> None:
    domains = {"user_domain": "People", "project_domain": "Work"}
    sign_in(guarded, {**PASSWORD, **domains})
    asked = server.asked[-1]
    assert asked["identity"]["password"]["user"]["domain"] == {"name": "People"}
    assert asked["scope"]["project"] == {
        "name": "a project",
        "domain": {"name": "Work"},
    }


def test_a_wrong_password_is_refused(guarded: Send) -> None:
    response = sign_in(guarded, {**PASSWORD, "password": "a guess"})
    assert response.status_int == 401
    [error] = response.json["errors"]
    assert "does not know this user" in error["detail"]
    assert "a guess" not in response.text


def test_failures_of_the_identity_service_are_reported_as_such(
    guarded: Send, server: IdentityServer
) -> None:
    server.failing = True
    response = sign_in(guarded, PASSWORD)
    assert response.status_int == 503
    assert response.headers["retry-after"] == "1"
    server.server_close()
    assert sign_in(guarded, PASSWORD).status_int == 503


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "not an object"),
        ({}, "user"),
        ({**PASSWORD, "password": 7}, "password"),
        ({**PASSWORD, "project": ""}, "project"),
        ({**PASSWORD, "user": "x" * 5_000}, "user"),
        ({**PASSWORD, "auth_url": "http://evil.example"}, "auth_url"),
    ],
)
def test_a_sign_in_must_say_what_it_needs(
    guarded: Send, document: Any, told: str
) -> None:
    response = sign_in(guarded, document)
    assert response.status_int == 400
    assert told in response.json["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (b"{", {"Content-Type": "application/json"}, 400),
        (b"\xff", {"Content-Type": "application/json"}, 400),
        (b"[" * 20_000, {"Content-Type": "application/json"}, 400),
        (b"", {"Content-Type": "application/json"}, 400),
        (b" " * 40_000, {"Content-Type": "application/json"}, 400),
    ],
)
def test_a_sign_in_is_a_small_json_document(
    guarded: Send, body: bytes, headers: dict[str, str], status: int
) -> None:
    response = guarded("/console/session", "POST", body=body, headers=headers)
    assert response.status_int == status


@pytest.mark.parametrize(("size", "status"), [(0, 201), (40_000, 400)])
def test_a_sign_in_of_unknown_size_is_read_so_far(
    guarded: Send, size: int, status: int
) -> None:
    response = guarded(
        "/console/session",
        "POST",
        body_file=io.BytesIO(json.dumps(PASSWORD).encode() + b" " * size),
        headers={"Content-Type": "application/json"},
    )
    assert response.status_int == status


def test_a_sign_in_is_begun_and_never_changed(guarded: Send) -> None:
    response = guarded("/console/session", "DELETE")
    assert (response.status_int, response.headers["allow"]) == (405, "GET, HEAD, POST")


def test_sign_ins_leave_threads_free_while_the_identity_service_hangs(
    guarded: Send, server: IdentityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_limit, "_own_count", 8)
    server.answering.clear()
    with ThreadPoolExecutor(8) as pool:
        waiting = pool.submit(sign_in, guarded, PASSWORD)
        time.sleep(1.1)
        began = time.monotonic()
        refused = [pool.submit(sign_in, guarded, PASSWORD) for _ in range(7)]
        for each in refused:
            assert each.result().status_int == 503
            assert each.result().headers["retry-after"] == "2"
        assert time.monotonic() - began < 1
        assert not waiting.done()
        assert waiting.result().status_int == 503
        assert time.monotonic() - began < 15
    server.answering.set()
    assert sign_in(guarded, PASSWORD).status_int == 201
