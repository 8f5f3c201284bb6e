"""The client of Placement, tested with the service and with stand-ins that fail."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from oslo_config import cfg

from placement_clients import access, client, errors
from placement_clients.client import Client, path_of
from placement_clients.record import (
    INVENTORIES,
    TRAITS,
    Candidate,
    Inventory,
)
from tests.client import new_uuid
from tests.serving import Served, answering, serving

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

AGGREGATE = "6f2a1f0e-7f5e-4c19-8a51-3a4c9a6f9d01"
GENERATION_CONFLICT = {
    "detail": "There was a conflict.  resource provider generation conflict  ",
    "code": "placement.concurrent_update",
    "request_id": "req-1",
}


def refusing(status: str, **error: Any) -> "WSGIApplication":
    return answering(status, json.dumps({"errors": [error]}).encode())


def caller(served: Served, **seconds: float) -> Client:
    way = access.from_environment({}, url=served.url, token="admin", **seconds)
    return Client(way, pause=lambda seconds: None)


@contextmanager
def asking(application: "WSGIApplication", **seconds: float) -> Iterator[Client]:
    with serving(application) as served:
        yield caller(served, **seconds)


def make_host(placement: Client, name: str = "host", **totals: int) -> str:
    host = placement.create_provider(name)
    inventories = {name: Inventory(total) for name, total in totals.items()}
    placement.replace(host.uuid, INVENTORIES, host.generation, inventories)
    return host.uuid


def drop(placement: Client, *names: str) -> None:
    placement.delete(path_of("resource_providers", *names), version="1.29")


# What the operations do


def test_providers_from_creation_to_deletion(placement: Client) -> None:
    root = placement.create_provider("host-1", uuid=new_uuid())
    child = placement.create_provider("card", parent=root.uuid)
    assert (child.parent_uuid, child.root_uuid) == (root.uuid, root.uuid)
    assert placement.get_provider(child.uuid) == child
    assert placement.list_providers(in_tree=child.uuid) == [root, child]
    assert placement.list_providers(name="card", uuid=None) == [child]
    with pytest.raises(errors.Conflict) as caught:
        drop(placement, root.uuid)
    assert caught.value.code == "placement.resource_provider.cannot_delete_parent"
    assert caught.value.in_use
    drop(placement, child.uuid)
    drop(placement, root.uuid)
    with pytest.raises(errors.NotFound):
        placement.get_provider(root.uuid)


def test_a_name_survives_the_url(placement: Client) -> None:
    named = placement.create_provider("black & white/100%? é")
    placement.create_provider("black")
    assert placement.list_providers(name="black & white/100%? é") == [named]


def test_inventories(placement: Client) -> None:
    host = make_host(placement, VCPU=8, DISK_GB=100)
    more = {"FPGA": Inventory(2, reserved=2, max_unit=1)}
    held = placement.change(host, INVENTORIES, lambda known: {**known, **more})
    assert held.value["FPGA"] == Inventory(2, 2, 1, 1, 1, 1.0)
    assert placement.get_part(host, INVENTORIES) == held


def test_traits(placement: Client) -> None:
    host = make_host(placement)
    placement.put("/traits/CUSTOM_A", version="1.6")
    assert placement.list_traits(["CUSTOM_A", "CUSTOM_B"]) == {"CUSTOM_A"}
    many = [f"CUSTOM_{number}" for number in range(1000)]
    assert placement.list_traits(["CUSTOM_A", *many]) == {"CUSTOM_A"}
    held = placement.change(host, TRAITS, lambda names: names | {"CUSTOM_A"})
    assert held == placement.get_part(host, TRAITS)
    assert held.value == {"CUSTOM_A"}
    with pytest.raises(errors.BadRequest, match="CUSTOM_B"):
        placement.change(host, TRAITS, lambda names: {"CUSTOM_B"})


def test_nothing_is_written_if_nothing_changes(
    placement: Client, service: Served
) -> None:
    host = make_host(placement, VCPU=8)
    before = placement.get_provider(host)
    placement.change(host, INVENTORIES, lambda known: known)
    placement.change(host, TRAITS, lambda names: names)
    assert placement.get_provider(host) == before
    assert "PUT" not in {call.method for call in service.calls[-3:]}


def test_allocations(placement: Client) -> None:
    host = make_host(placement, VCPU=8)
    candidates = placement.list_candidates({"resources": "VCPU:6"})
    (found,) = candidates.found
    assert candidates.summaries[host]["root_provider_uuid"] == host
    assert found.mappings == {"": [host]}
    server = new_uuid()
    assert placement.get_allocations(server) == {}
    claim(placement, server, found)
    assert placement.get_allocations(server) == {host: {"VCPU": 6}}
    assert placement.list_allocations_of_provider(host) == {server: {"VCPU": 6}}
    with pytest.raises(errors.Conflict) as caught:
        claim(placement, new_uuid(), found)
    assert not caught.value.lost_race


def claim(placement: Client, server: str, candidate: Candidate) -> None:
    body = {"allocations": candidate.allocations, "consumer_generation": None}
    body |= {"project_id": "blue", "user_id": "ann"}
    placement.put(path_of("allocations", server), body, version="1.36")


# Endpoints and credentials


def test_the_inbound_request_is_named(service: Served, placement: Client) -> None:
    inbound = "req-8c6d2f3a-5a0e-4b3c-9d27-5f0f7a1f6b11"
    placement.for_request(inbound).list_traits([])
    assert service.calls[-1].headers["x-openstack-request-id"] == inbound
    placement.list_traits([])
    assert "x-openstack-request-id" not in service.calls[-1].headers


def configured(*lines: str) -> Callable[[Any, Served], Client]:
    def configure(directory: Any, served: Served) -> Client:
        path = directory / "agent.conf"
        path.write_text("\n".join(["[placement]", *lines]).format(url=served.url))
        config = cfg.ConfigOpts()
        access.register_options(config)
        config([], default_config_files=[str(path)])
        return client.from_config(config)

    return configure


KEYSTONE = {
    "token": {
        "methods": ["password"],
        "expires_at": "2999-01-01T00:00:00.000000Z",
        "issued_at": "2026-01-01T00:00:00.000000Z",
        "user": {"id": "u", "name": "agent", "domain": {"id": "default", "name": "D"}},
        "project": {"id": "p", "name": "s", "domain": {"id": "default", "name": "D"}},
        "roles": [{"id": "r", "name": "admin"}],
    }
}


def keystone(placement_url: str) -> "WSGIApplication":
    """Return as much of Keystone as a password needs."""
    endpoint = {"interface": "public", "region_id": "R", "url": placement_url}
    catalog = [{"type": "placement", "name": "p", "endpoints": [endpoint]}]
    token = {"token": {**KEYSTONE["token"], "catalog": catalog}}
    good = answering("201 Created", json.dumps(token).encode(), X_Subject_Token="admin")
    refusal = b'{"error": {"code": 401, "title": "no", "message": "who are you?"}}'
    bad = answering("401 Unauthorized", refusal, Content_Type="application/json")

    def application(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/v3/auth/tokens":
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            answer = good if b'"secret"' in body else bad
        else:
            answer = answering("404 Not Found")
        return answer(environ, start_response)

    return application


def password_file(url: str, password: str) -> list[str]:
    return [
        "auth_type = password",
        f"auth_url = {url}/v3",
        "username = agent",
        f"password = {password}",
        "project_name = s",
        "user_domain_id = default",
        "project_domain_id = default",
    ]


def test_a_password_finds_placement_by_its_catalog(
    tmp_path: Any, service: Served
) -> None:
    with serving(keystone(service.url)) as identity:
        configure = configured(*password_file(identity.url, "secret"))
        placement = configure(tmp_path, service)
        placement.put("/traits/CUSTOM_A", version="1.6")
        placement.put("/traits/CUSTOM_B", version="1.6")
    assert identity.lines.count("POST /v3/auth/tokens") == 1
    assert service.lines == ["PUT /traits/CUSTOM_A", "PUT /traits/CUSTOM_B"]


def test_a_wrong_password(tmp_path: Any, service: Served) -> None:
    with serving(keystone(service.url)) as identity:
        configure = configured(*password_file(identity.url, "guessed"))
        with pytest.raises(errors.Unauthorized, match="who are you"):
            configure(tmp_path, service).list_traits([])
    assert service.calls == []


def test_a_password_from_the_environment(service: Served) -> None:
    with serving(keystone(service.url)) as identity:
        way = access.from_environment(
            {
                "OS_AUTH_URL": f"{identity.url}/v3",
                "OS_USERNAME": "agent",
                "OS_PASSWORD": "secret",
                "OS_PROJECT_NAME": "s",
                "OS_USER_DOMAIN_ID": "default",
                "OS_PROJECT_DOMAIN_ID": "default",
            }
        )
        Client(way).put("/traits/CUSTOM_A", version="1.6")
        assert Client(way).get_endpoint() == service.url


@pytest.mark.parametrize(
    ("given", "cert"),
    [
        ({}, None),
        ({"OS_CERT": "a.pem"}, "a.pem"),
        ({"OS_CERT": "a.pem", "OS_KEY": "a.key"}, ("a.pem", "a.key")),
        ({"OS_KEY": "a.key"}, None),
    ],
)
def test_a_certificate_from_the_environment(given: dict[str, str], cert: Any) -> None:
    way = access.from_environment({**given, "OS_ENDPOINT": "https://placement"})
    assert way.adapter.session.cert == cert


def test_a_token_from_the_environment(service: Served) -> None:
    environ = {"OS_ENDPOINT": service.url, "OS_TOKEN": "admin"}
    Client(access.from_environment(environ)).put("/traits/CUSTOM_A", version="1.6")


@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({}, "the URL of Placement is not known"),
        ({"OS_TOKEN": "admin"}, "the URL of Placement is not known"),
        ({"OS_CLOUD": "mine"}, "but for OS_CLOUD: clouds.yaml is not read"),
        ({"OS_AUTH_TYPE": "admin_token", "OS_TOKEN": "a"}, "no URL of Placement"),
        ({"OS_AUTH_TYPE": "riddle", "OS_ENDPOINT": "http://a"}, "riddle"),
        ({"OS_AUTH_TYPE": "password"}, "auth_url"),
    ],
)
def test_an_environment_that_lacks_something(
    environ: dict[str, str], complaint: str
) -> None:
    with pytest.raises(access.Misconfigured, match=complaint):
        access.from_environment(environ)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([], "auth_type is not set"),
        (["auth_type = riddle"], "riddle"),
        (["auth_type = password"], "auth_url"),
        (["auth_type = none", "connect_timeout = soon"], "connect_timeout"),
    ],
)
def test_a_configuration_that_lacks_something(
    tmp_path: Any, lines: list[str], complaint: str
) -> None:
    with pytest.raises(access.Misconfigured, match=complaint):
        configured(*lines)(tmp_path, Served("http://127.0.0.1:1"))


# Failures


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("400 Bad Request", errors.BadRequest),
        ("401 Unauthorized", errors.Unauthorized),
        ("403 Forbidden", errors.Forbidden),
        ("404 Not Found", errors.NotFound),
        ("405 Method Not Allowed", errors.NotSupported),
        ("406 Not Acceptable", errors.NotSupported),
        ("409 Conflict", errors.Conflict),
        ("413 Too Large", errors.PlacementError),
        ("429 Too Many", errors.Unavailable),
        ("500 Internal Server Error", errors.Unavailable),
        ("502 Bad Gateway", errors.Unavailable),
        ("503 Service Unavailable", errors.Unavailable),
        ("504 Gateway Timeout", errors.Timeout),
    ],
)
def test_each_failure_has_its_kind(
    status: str, kind: type[errors.PlacementError]
) -> None:
    application = refusing(status, detail="said so", code="a.code", request_id="req-1")
    with asking(application) as placement, pytest.raises(errors.PlacementError) as got:
        placement.get("/", version="1.0")
    assert type(got.value) is kind
    number = int(status[:3])
    assert (got.value.status, got.value.code) == (number, "a.code")
    assert (got.value.detail, got.value.request_id) == ("said so", "req-1")
    assert str(got.value) == f"said so (HTTP {number}, a.code, request req-1)"


def test_a_failure_without_a_document() -> None:
    page = b"<html> <h1>Bad\n Gateway</h1></html>"
    answer = answering("502 Bad Gateway", page, X_OpenStack_Request_ID="req-2")
    with asking(answer) as placement, pytest.raises(errors.Unavailable) as caught:
        placement.get("/", version="1.0")
    assert caught.value.detail == "<html> <h1>Bad Gateway</h1></html>"
    assert caught.value.request_id == "req-2"


@pytest.mark.parametrize(
    "body", [b"<html>hello</html>", b"[]", b"7", b'{"a": 1}', b"[" * 100_000]
)
def test_an_answer_may_not_be_from_placement(body: bytes) -> None:
    with asking(answering("200 OK", body)) as placement:
        for operation in (
            placement.list_providers,
            lambda: placement.get_part(AGGREGATE, INVENTORIES),
            lambda: placement.get_part(AGGREGATE, TRAITS),
            lambda: placement.list_candidates("resources=VCPU:1"),
        ):
            with pytest.raises(errors.Unavailable):
                operation()


def test_an_error_of_another_kind_can_be_shown() -> None:
    answer = answering("400 Bad Request", b'{"errors": [{"code": 7, "detail": null}]}')
    with asking(answer) as placement, pytest.raises(errors.BadRequest) as caught:
        placement.get("/", version="1.0")
    assert (caught.value.code, "HTTP 400, 7" in str(caught.value)) == ("7", True)


def test_lines_may_not_be_from_placement() -> None:
    with (
        asking(answering("200 OK", b"[" * 100_000)) as placement,
        pytest.raises(errors.Unavailable),
    ):
        list(placement.lines("/", version="1.0"))


def test_no_character_ends_a_query(placement: Client) -> None:
    with pytest.raises(errors.BadRequest) as caught:
        placement.list_candidates("resources=VCPU:1#&required=CUSTOM_NOWHERE")
    assert "VCPU expected positive integer amount. Got: 1#" in caught.value.detail


def test_candidates_come_with_what_is_known_of_their_providers() -> None:
    found: Any = {"allocations": {AGGREGATE: {"resources": {}}}, "mappings": {}}
    document = {"allocation_requests": [found], "provider_summaries": {}}
    answer = answering("200 OK", json.dumps(document).encode())
    with asking(answer) as placement, pytest.raises(errors.Unavailable):
        placement.list_candidates("resources=VCPU:1")


def test_no_server_answers() -> None:
    with serving(answering("200 OK")) as gone:
        pass
    with pytest.raises(errors.Unavailable) as caught:
        caller(gone).list_traits([])
    assert type(caught.value) is errors.Unavailable
    assert caught.value.status is None
    said = f"no connection to {gone.url}/traits: [Errno 111] Connection refused"
    assert str(caught.value) == said
    assert not caught.value.may_have_succeeded


def test_an_earlier_failure_is_not_why_no_server_answers() -> None:
    def ask_twice(placement: Client) -> None:
        try:
            raise errors.NotFound("not here")
        except errors.NotFound:
            placement.list_traits([])

    with serving(answering("200 OK")) as gone:
        pass
    with pytest.raises(errors.Unavailable, match="Connection refused"):
        ask_twice(caller(gone))


@pytest.mark.parametrize(
    ("status", "code", "may_have"),
    [
        (429, "", False),
        (500, "", True),
        (502, "", True),
        (503, "", False),
        (503, "placement.busy", False),
        # The connection to the database may have been lost while it committed.
        (503, "placement.database_unavailable", True),
    ],
)
def test_what_may_have_been_done_without_an_answer(
    status: int, code: str, may_have: bool
) -> None:
    error = errors.Unavailable("later", status=status, code=code)
    assert error.may_have_succeeded == may_have


def test_a_text_that_is_not_a_url() -> None:
    with pytest.raises(errors.Unavailable, match="No scheme supplied"):
        caller(Served("nonsense")).list_traits([])


@pytest.mark.parametrize("begins", [True, False])
def test_no_answer_in_time_is_a_timeout(begins: bool) -> None:
    asked_again = threading.Event()

    def application(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterator[bytes]:
        if begins:
            start_response("200 OK", [("Content-Length", "20")])
            yield b'{"traits": '
        asked_again.wait(30)

    with asking(application, answer_seconds=0.1) as placement:
        with pytest.raises(errors.Timeout):
            placement.list_traits([])
        asked_again.set()


# Lost races


def test_a_lost_race_is_run_again_from_the_read(
    placement: Client, service: Served
) -> None:
    host = make_host(placement, VCPU=8)
    others = iter([{"CUSTOM_A"}, {"CUSTOM_A", "CUSTOM_B"}])
    for name in ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C"):
        placement.put(f"/traits/{name}", version="1.6")

    def change(names: Set[str]) -> Set[str]:
        theirs = next(others, None)
        if theirs is not None:
            generation = placement.get_provider(host).generation
            placement.replace(host, TRAITS, generation, theirs)
        return names | {"CUSTOM_C"}

    # At 1.6, before conflicts had a code.
    held = caller(service).change(host, TRAITS, change)
    assert held.value == {"CUSTOM_A", "CUSTOM_B", "CUSTOM_C"}


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (GENERATION_CONFLICT, 5),
        ({"detail": "Update conflict: Another thread was faster."}, 5),
        ({"detail": "no room", "code": "placement.undefined_code"}, 1),
        ({"detail": "generation", "code": "placement.undefined_code"}, 1),
        ({"detail": "x", "code": "placement.inventory.inuse"}, 1),
        ({**GENERATION_CONFLICT, "detail": "Inventory for 'A' in use.  "}, 1),
    ],
)
def test_only_lost_races_are_run_again(error: dict[str, str], attempts: int) -> None:
    with serving(refusing("409 Conflict", **error)) as served:
        with pytest.raises(errors.Conflict) as caught:
            caller(served).change(AGGREGATE, TRAITS, lambda names: names)
        assert caught.value.detail == error["detail"]
        assert len(served.calls) == attempts


def test_an_inventory_in_use_is_not_a_lost_race(
    placement: Client, service: Served
) -> None:
    host = make_host(placement, VCPU=8)
    (found,) = placement.list_candidates("resources=VCPU:1").found
    claim(placement, new_uuid(), found)
    service.calls.clear()
    with pytest.raises(errors.Conflict) as caught:
        placement.retry_lost_races(lambda: drop(placement, host, "inventories", "VCPU"))
    assert caught.value.code == "placement.concurrent_update"
    assert caught.value.in_use
    assert len(service.calls) == 1
    with pytest.raises(errors.Conflict) as caught:
        placement.change(host, INVENTORIES, lambda known: {})
    assert caught.value.code == "placement.inventory.inuse"
    assert caught.value.in_use
    with pytest.raises(errors.Conflict) as caught:
        drop(placement, host)
    assert caught.value.code == "placement.resource_provider.inuse"
