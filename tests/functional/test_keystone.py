"""``auth_strategy = keystone``: the identity service says who is asking."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import webob

from placement import app, conf
from placement_foundation.database.storage import Database
from placement_foundation.http import identity as identity_service
from placement_foundation.http import thread_limit
from tests.functional import identity
from tests.functional.identity import IdentityServer, project_scope

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

CONFIGURATION = """
[placement_database]
connection = sqlite://
[oslo_policy]
policy_file = a file that does not exist.yaml
"""
CHALLENGE = 'Keystone uri="https://identity.example/v3"'
STRANGERS = {
    "no token": None,
    "a token of nobody": "nobody",
    "an empty token": "",
}

Send = Callable[..., webob.Response]
Build = Callable[..., Send]


@pytest.fixture
def server() -> Iterator[IdentityServer]:
    with identity.running() as server:
        yield server


@pytest.fixture
def build(server: IdentityServer, database: Database, tmp_path: Path) -> Build:
    """Give a function that assembles the service, and returns a way to call it."""

    def build(
        *,
        delay: bool = False,
        password: str = identity.SERVICE_PASSWORD,
        further: str = "",
    ) -> Send:
        path = tmp_path / "placement.conf"
        path.write_text(
            CONFIGURATION
            + identity.options_of(
                server, password=password, delay_auth_decision=delay, further=further
            )
        )
        application = app.build(conf.read([], [str(path)]), database)
        return lambda *args, **kwargs: send(application, *args, **kwargs)

    return build


@pytest.fixture
def call(build: Build) -> Send:
    """Give a function that sends a request to the service."""
    return build()


def send(
    application: "WSGIApplication",
    path: str,
    token: str | None = None,
    method: str = "GET",
    body: Any = None,
    **headers: str,
) -> webob.Response:
    request = webob.Request.blank(path, method=method)
    request.headers["OpenStack-API-Version"] = "placement 1.39"
    if token is not None:
        request.headers["X-Auth-Token"] = token
    if body is not None:
        request.content_type = "application/json"
        request.body = json.dumps(body).encode()
    for name, value in headers.items():
        request.headers[name.replace("_", "-")] = value
    return request.get_response(application)


ASK = """
import sys, webob
from placement import app, conf
path, headers = "/resource_providers", {"X-Auth-Token": sys.argv[2]}
request = webob.Request.blank(path, headers=headers)
print(request.get_response(app.start(conf.read([], [sys.argv[1]]))).status)
"""


# In a process of its own, since the library leaves connections open.
@pytest.mark.embedded
def test_a_memcached_that_does_not_answer_is_no_obstacle(
    server: IdentityServer, tmp_path: Path
) -> None:
    path = tmp_path / "placement.conf"
    connection = f"sqlite:///{tmp_path}/placement.db\nsync_on_startup = true"
    path.write_text(
        CONFIGURATION.replace("sqlite://", connection)
        + identity.options_of(server, further="memcached_servers = 127.0.0.1:1")
    )
    asking = [sys.executable, "-c", ASK, str(path), server.add_token("admin")]
    done = subprocess.run(asking, capture_output=True, text=True)
    assert done.stdout == "200 OK\n", done.stderr


@pytest.mark.parametrize(
    ("further", "package"),
    [
        ("memcache_sasl_enabled = true", "python-binary-memcached"),
        ("memcache_tls_enabled = true", "python-binary-memcached"),
        ("memcache_security_strategy = ENCRYPT", "cryptography"),
    ],
)
def test_a_package_that_is_missing_for_memcached_is_named_at_the_start(
    build: Build, monkeypatch: pytest.MonkeyPatch, further: str, package: str
) -> None:
    for module in ("bmemcached", "cryptography"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=f"pip install {package}$"):
        build(further=f"memcached_servers = 127.0.0.1:1\n{further}")


def test_without_a_password_it_does_not_start(build: Build) -> None:
    with pytest.raises(ValueError, match="needs a password"):
        build(password="")


@pytest.mark.parametrize("path", ["/", ""])
def test_the_root_document_needs_no_token(call: Send, path: str) -> None:
    response = call(path)
    assert response.status_code == 200
    assert response.json["versions"][0]["id"] == "v1.0"


@pytest.mark.parametrize("method", ["POST", "HEAD", "OPTIONS", "DELETE"])
def test_no_method_of_the_root_document_needs_a_token(call: Send, method: str) -> None:
    response = call("/", method=method)
    assert response.status_code == 405
    assert "WWW-Authenticate" not in response.headers


def test_the_root_document_is_shown_to_bad_tokens_without_a_question(
    call: Send, server: IdentityServer
) -> None:
    assert call("/", "nobody").status_code == 200
    assert server.validated == []


@pytest.mark.parametrize("token", STRANGERS.values(), ids=STRANGERS)
@pytest.mark.parametrize("path", ["/resource_providers", "/no/such/path"])
def test_strangers_are_sent_to_the_identity_service(
    call: Send, path: str, token: str | None
) -> None:
    response = call(path, token, Accept="text/html")
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == CHALLENGE
    assert response.headers["x-openstack-request-id"].startswith("req-")
    assert response.content_type == "application/json"
    assert response.json == {
        "error": {
            "code": 401,
            "title": "Unauthorized",
            "message": "The request you have made requires authentication.",
        }
    }


def test_strangers_learn_nothing_about_their_microversion(call: Send) -> None:
    response = call("/traits", OpenStack_API_Version="placement 9.9")
    assert response.status_code == 401
    assert "openstack-api-version" not in response.headers


def test_an_administrator_may_ask(call: Send, server: IdentityServer) -> None:
    response = call("/resource_providers", server.add_token("admin"))
    assert response.status_code == 200
    assert response.json == {"resource_providers": []}
    assert response.headers["openstack-api-version"] == "placement 1.39"


def test_a_service_may_change(call: Send, server: IdentityServer) -> None:
    token = server.add_token("service")
    body = {"name": "a host"}
    created = call("/resource_providers", token, method="POST", body=body)
    assert created.status_code == 200
    emptied = {"resource_provider_generation": 0, "inventories": {}}
    change = {"inventories": {created.json["uuid"]: emptied}, "allocations": {}}
    assert call("/reshaper", token, method="POST", body=change).status_code == 204


def test_others_may_not(call: Send, server: IdentityServer) -> None:
    token = server.add_token("member", "reader")
    response = call("/resource_providers", token)
    assert response.status_code == 403
    assert "placement:resource_providers:list" in response.json["errors"][0]["detail"]
    assert "WWW-Authenticate" not in response.headers


@pytest.mark.parametrize(
    "scope",
    [
        {"system": {"all": True}},
        {"domain": {"id": "domain-of-users", "name": "Users"}},
    ],
    ids=["system", "domain"],
)
def test_tokens_of_another_scope_may_nothing(
    call: Send, server: IdentityServer, scope: dict[str, Any]
) -> None:
    token = server.add_token("admin", "service", scope=scope)
    response = call("/resource_providers", token)
    assert response.status_code == 403
    assert "placement:resource_providers:list" in response.json["errors"][0]["detail"]
    assert "does not allow" not in response.json["errors"][0]["detail"]


FORGED = {
    "X_User_Id": "somebody",
    "X_User": "somebody",
    "X_User_Name": "somebody",
    "X_Roles": "admin,service",
    "X_Role": "admin",
    "X_Project_Id": "yours",
    "X_Tenant_Id": "yours",
    "X_Tenant": "yours",
    "X_Identity_Status": "Confirmed",
    "X_Service_Identity_Status": "Confirmed",
    "X_Service_Roles": "service",
    "X_Is_Admin_Project": "True",
}


def test_roles_cannot_be_forged(call: Send, server: IdentityServer) -> None:
    token = server.add_token("reader", scope=project_scope("mine"))
    assert call("/resource_providers", token, **FORGED).status_code == 403
    assert call("/usages?project_id=yours", token, **FORGED).status_code == 403
    assert call("/usages?project_id=mine", token, **FORGED).status_code == 200


def test_a_forged_identity_does_not_count_as_a_token(call: Send) -> None:
    assert call("/resource_providers", **FORGED).status_code == 401


@pytest.mark.parametrize("header", ["OpenStack_System_Scope", "X_Domain_Id"])
def test_a_scope_cannot_be_forged(
    call: Send, server: IdentityServer, header: str
) -> None:
    response = call("/traits", server.add_token("admin"), **{header: "all"})
    assert response.status_code == 200


def test_a_scope_cannot_be_hidden(call: Send, server: IdentityServer) -> None:
    token = server.add_token("admin", scope={"system": {"all": True}})
    for system_scope in ("", "none"):
        response = call("/traits", token, OpenStack_System_Scope=system_scope)
        assert response.status_code == 403


def test_a_bad_service_token_is_refused(call: Send, server: IdentityServer) -> None:
    token = server.add_token("admin")
    response = call("/traits", token, X_Service_Token="nobody")
    assert response.status_code == 401


def test_the_roles_of_a_service_token_are_not_those_of_the_caller(
    call: Send, server: IdentityServer
) -> None:
    token, beside = server.add_token("reader"), server.add_token("service")
    assert call("/traits", token, X_Service_Token=beside).status_code == 403


def check_unavailable(response: webob.Response) -> None:
    assert response.status_code == 503
    document = response.json
    assert set(document) == {"message", "code", "title"}
    assert document["code"] == "503 Service Unavailable"
    assert document["title"] == "Service Unavailable"


def test_without_an_identity_service_there_is_no_answer(
    call: Send, server: IdentityServer
) -> None:
    token = server.add_token("admin")
    server.shutdown()
    server.server_close()
    check_unavailable(call("/traits", token))
    assert call("/").status_code == 200
    assert call("/traits").status_code == 401


def test_an_identity_service_out_of_order_gives_no_answer(
    call: Send, server: IdentityServer
) -> None:
    token = server.add_token("admin")
    server.failing = True
    check_unavailable(call("/traits", token))
    server.failing = False
    assert call("/traits", token).status_code == 200


def test_a_service_that_is_itself_unknown_gives_no_answer(
    build: Build, server: IdentityServer
) -> None:
    call = build(password="another one")
    check_unavailable(call("/traits", server.add_token("admin")))


@pytest.mark.parametrize("token", STRANGERS.values(), ids=STRANGERS)
def test_a_delayed_decision_is_to_refuse(build: Build, token: str | None) -> None:
    response = build(delay=True)("/traits", token, **FORGED)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == CHALLENGE
    assert set(response.json) == {"message", "code", "title"}
    assert response.json["code"] == "401 Unauthorized"
    assert response.json["title"] == "Unauthorized"


def test_a_delayed_decision_lets_valid_tokens_in(
    build: Build, server: IdentityServer
) -> None:
    response = build(delay=True)("/traits", server.add_token("admin"))
    assert response.status_code == 200


def test_while_the_identity_service_hangs_most_threads_are_free(
    call: Send, server: IdentityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_limit, "_own_count", 8)
    known = server.add_token("admin")
    assert call("/traits", known).status_code == 200
    server.answering.clear()
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(call, "/traits", "nobody") for _ in range(2)]
        time.sleep(1.1)
        began = time.monotonic()
        answers = [pool.submit(call, "/traits", "nobody") for _ in range(6)]
        for answer in answers:
            refused = answer.result()
            assert refused.status_code == 503
            assert refused.headers["Retry-After"] == "2"
        # The token is remembered: nobody has to be asked about it.
        assert call("/traits", known).status_code == 200
        assert not any(each.done() for each in waiting)
        # Its time is limited.
        assert {each.result().status_code for each in waiting} == {503}
        assert time.monotonic() - began < 15
    server.answering.set()
    assert call("/traits", "nobody").status_code == 401


def test_callers_with_new_tokens_wait_for_their_turn(
    build: Build, server: IdentityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_limit, "_own_count", 4)
    # On a busy machine the identity service may need a while for one of them.
    monkeypatch.setattr(identity_service, "PATIENCE", 30.0)
    call = build()
    tokens = [server.add_token("admin") for _ in range(12)]
    with ThreadPoolExecutor(12) as pool:
        answers = [pool.submit(call, "/traits", token) for token in tokens]
        assert {each.result().status_code for each in answers} == {200}


def test_without_options_for_it_the_identity_service_is_not_there(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "placement.conf"
    path.write_text(CONFIGURATION)
    application = app.build(conf.read([], [str(path)]), database)
    answer = send(application, "/resource_providers", "a token")
    assert answer.status_int == 503
    assert "not configured" in answer.text
    assert "keystone_authtoken" in caplog.text
    assert send(application, "/").status_int == 200
