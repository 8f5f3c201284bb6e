"""Requests that are meant to take long, to fill the log, or to get in."""

import io
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
import webob

from placement import app
from placement_foundation.database.storage import Database
from tests import settings

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

LONG = 1_000_000
# In bytes: what an error has at most.
ANSWER = 10_000


def ask(
    application: "WSGIApplication", method: str = "GET", path: str = "/", **options: Any
) -> webob.Response:
    request = webob.Request.blank(path, method=method, environ=options.pop("env", {}))
    request.headers["x-auth-token"] = "admin"
    request.headers["openstack-api-version"] = "placement latest"
    if "body" in options:
        request.content_type = "application/json"
        request.body = options.pop("body")
    request.headers.update(
        {name.replace("_", "-"): text for name, text in options.items()}
    )
    return request.get_response(application)


@pytest.mark.parametrize("accept", ["application/json", "text/plain", "text/html"])
def test_a_version_of_tags(application: "WSGIApplication", accept: str) -> None:
    answer = ask(
        application, openstack_api_version="placement " + "<" * LONG, accept=accept
    )
    assert answer.status_int == 400
    assert len(answer.body) < ANSWER


@pytest.mark.parametrize("version", ["1.0", "1.22", "1.23"])
def test_errors_below_ledger_have_codes_at_each_version(
    application: "WSGIApplication", version: str
) -> None:
    nowhere = "8d2ac8d2-4bc8-4d57-8d9b-3ea6a6f2b001"
    codes = []
    for path in (f"/ledger/v1/leases/{nowhere}", f"/resource_providers/{nowhere}"):
        asked = f"placement {version}"
        answer = ask(application, path=path, openstack_api_version=asked)
        assert answer.status_int == 404
        assert answer.headers["openstack-api-version"] == asked
        codes.append(answer.json["errors"][0].get("code"))
    undefined = "placement.undefined_code"
    assert codes == [undefined, undefined if version == "1.23" else None]


@pytest.mark.parametrize("name", ["accept", "content_type"])
def test_a_header_of_tags(application: "WSGIApplication", name: str) -> None:
    header = {name: "text/<" + "<" * LONG}
    answer = ask(application, "POST", "/resource_providers", body=b"{}", **header)
    assert answer.status_int in (400, 415)
    assert len(answer.body) < ANSWER


@pytest.mark.parametrize(
    "document",
    [
        {"name": "<" * LONG},
        {"name": "a", **{f"{number}<": number for number in range(100_000)}},
        [{}] * LONG,
        "<" * LONG,
    ],
    ids=["name", "members", "list", "text"],
)
def test_a_large_body_gets_a_small_error(
    application: "WSGIApplication", document: Any
) -> None:
    body = json.dumps(document).encode()
    answer = ask(application, "POST", "/resource_providers", body=body)
    assert answer.status_int == 400
    assert "JSON does not validate: " in answer.json["errors"][0]["detail"]
    assert len(answer.body) < ANSWER


def test_many_faults_in_a_body(application: "WSGIApplication") -> None:
    body = json.dumps({"traits": [5] * LONG, "resource_provider_generation": 0})
    path = "/resource_providers/3e7b7a10-0d3c-4cf4-9d08-6c2d5d3f8c01/traits"
    answer = ask(application, "PUT", path, body=body.encode())
    assert answer.status_int == 400
    assert len(answer.body) < ANSWER


class Unread(io.RawIOBase):
    """A body that must not be read."""

    def readable(self) -> bool:
        return True

    def readinto(self, _buffer: Any) -> int:
        raise AssertionError("it was read")


def limited(database: Database, size: int) -> "WSGIApplication":
    config = settings.make_config({("api", "max_request_body_size"): size})
    return app.build(config, database)


def test_a_body_that_is_too_large_is_not_read(database: Database) -> None:
    answer = ask(
        limited(database, 10),
        "POST",
        "/resource_providers",
        env={"CONTENT_LENGTH": "11", "wsgi.input": Unread()},
        content_type="application/json",
    )
    assert answer.status_int == 413
    assert "10 bytes" in answer.json["errors"][0]["detail"]


@pytest.mark.parametrize(("size", "status"), [(15, 200), (14, 413)])
def test_a_body_of_unknown_size_is_read_so_far(
    database: Database, size: int, status: int
) -> None:
    body = io.BytesIO(b'{"name": "cow"}')
    answer = ask(
        limited(database, size),
        "POST",
        "/resource_providers",
        env={"wsgi.input": body, "wsgi.input_terminated": True},
        content_type="application/json",
    )
    assert answer.status_int == status


def test_a_body_that_makes_no_sense_to_the_server(
    application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    class Chunks(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, _buffer: Any) -> int:
            raise LookupError("an error that only the server knows")

    answer = ask(
        application,
        "POST",
        "/resource_providers",
        env={"wsgi.input": Chunks(), "wsgi.input_terminated": True},
        content_type="application/json",
    )
    assert answer.status_int == 400
    assert "unexpected error" not in caplog.text


def test_an_endless_address(
    application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "placement.requestlog")
    answer = ask(application, path="/traits?name=" + "x" * 8 * LONG)
    assert answer.status_int == 414
    assert len(answer.body) < ANSWER
    assert len(caplog.text) < ANSWER
    assert "characters)" in caplog.text


def test_a_control_character_cannot_end_a_line_of_the_log(
    application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "placement.requestlog")
    ask(application, path="/cows%C2%85next%9b31m")
    assert "\x85" not in caplog.text
    assert "\x9b" not in caplog.text
    assert "%85next%9B31m" in caplog.text


def test_a_role_in_the_singular_header_is_ignored(
    application: "WSGIApplication",
) -> None:
    for user, status in (("user", 403), ("admin", 200)):
        answer = ask(application, path="/traits", x_auth_token=user, x_role="admin")
        assert answer.status_int == status
    answer = ask(application, path="/traits", x_auth_token="user", x_roles="admin")
    assert answer.status_int == 200


def test_half_a_name_that_a_database_cannot_hold_is_no_news(
    application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    body = json.dumps({"name": "a\0b"}).encode()
    answer = ask(application, "POST", "/resource_providers", body=body)
    assert answer.status_int in (200, 400)
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(("strategy", "count"), [("noauth2", 1), ("keystone", 0)])
def test_a_service_without_authentication_says_so_once(
    database: Database, caplog: pytest.LogCaptureFixture, strategy: str, count: int
) -> None:
    config = settings.make_config({("api", "auth_strategy"): strategy})
    application = app.build(config, database)
    for _ in range(2):
        ask(application)
    assert caplog.text.count("Callers are not authenticated") == count


@pytest.mark.parametrize("path", ["/resource_providers", "/ledger/v1/fleet"])
def test_a_prefix_that_is_not_utf_8(database: Database, path: str) -> None:
    behind_proxy = {("oslo_middleware", "enable_proxy_headers_parsing"): True}
    application = app.build(settings.make_config(behind_proxy), database)
    answer = ask(application, path=path, env={"HTTP_X_FORWARDED_PREFIX": "/\xe9"})
    assert answer.status_int == 200
    # Reading it closes the file that a large answer is in.
    assert answer.body


@pytest.mark.parametrize("host", ["", "\xe9", "a/b", "a b", "a\0"])
def test_what_is_no_host_is_not_repeated(
    application: "WSGIApplication", host: str
) -> None:
    path = "/traits/CUSTOM_A"
    answer = ask(application, "PUT", path, env={"HTTP_HOST": host})
    assert answer.headers["location"] == f"http://localhost{path}"
