"""The client of Placement, tested with the service and with stand-ins that fail."""

import dataclasses
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from oslo_config import cfg

from placement_clients import access, client
from placement_clients.client import Client, Inventory
from tests.client import new_uuid
from tests.serving import Served, serving

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

AGGREGATE = "6f2a1f0e-7f5e-4c19-8a51-3a4c9a6f9d01"
GENERATION_CONFLICT = {
    "detail": "There was a conflict.  resource provider generation conflict  ",
    "code": "placement.concurrent_update",
    "request_id": "req-1",
}


def answering(status: str, body: bytes = b"", **headers: str) -> "WSGIApplication":
    """Return an application with one answer to everything."""

    def application(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        named = [(name.replace("_", "-"), value) for name, value in headers.items()]
        start_response(status, [("Content-Length", str(len(body))), *named])
        return [body]

    return application


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
    placement.replace_inventories(host.uuid, host.generation, inventories)
    return host.uuid


def claim_all(placement: Client, query: str) -> str:
    server = new_uuid()
    (found,) = placement.list_candidates(query).found
    placement.claim(server, found, project_id="blue", user_id="ann")
    return server


# What the operations do


def test_providers_from_creation_to_deletion(placement: Client) -> None:
    root = placement.create_provider("host-1", uuid=new_uuid())
    child = placement.create_provider("card", parent=root.uuid)
    assert (child.parent_uuid, child.root_uuid) == (root.uuid, root.uuid)
    assert placement.get_provider(child.uuid) == child
    assert placement.list_providers(in_tree=child.uuid) == [root, child]
    assert placement.list_providers(name="card", version="1.29") == [child]
    with pytest.raises(client.Conflict) as caught:
        placement.delete_provider(root.uuid)
    assert caught.value.code == "placement.resource_provider.cannot_delete_parent"
    assert caught.value.in_use
    placement.delete_provider(child.uuid)
    placement.delete_provider(root.uuid)
    with pytest.raises(client.NotFound):
        placement.get_provider(root.uuid)


def test_a_name_survives_the_url(placement: Client) -> None:
    named = placement.create_provider("black & white/100%? é")
    placement.create_provider("black")
    assert placement.list_providers(name="black & white/100%? é") == [named]


def test_inventories(placement: Client) -> None:
    host = make_host(placement, VCPU=8, DISK_GB=100)
    held = placement.change_inventories(
        host, lambda known: {**known, "FPGA": Inventory(2, reserved=2, max_unit=1)}
    )
    assert held.by_class["FPGA"] == Inventory(2, 2, 1, 1, 1, 1.0)
    assert placement.get_inventories(host) == held
    placement.delete_inventory(host, "FPGA")
    assert set(placement.get_inventories(host).by_class) == {"VCPU", "DISK_GB"}
    with pytest.raises(client.NotFound):
        placement.delete_inventory(host, "FPGA")


def test_resource_classes(placement: Client) -> None:
    assert placement.ensure_resource_class("CUSTOM_GOLD")
    assert not placement.ensure_resource_class("CUSTOM_GOLD")
    with pytest.raises(client.Conflict) as caught:
        placement.create_resource_class("CUSTOM_GOLD")
    assert not caught.value.in_use
    host = make_host(placement, CUSTOM_GOLD=1)
    with pytest.raises(client.Conflict) as caught:
        placement.delete_resource_class("CUSTOM_GOLD")
    assert caught.value.in_use
    placement.delete_inventory(host, "CUSTOM_GOLD")
    placement.delete_resource_class("CUSTOM_GOLD")


def test_traits(placement: Client) -> None:
    host = make_host(placement)
    assert placement.ensure_trait("CUSTOM_A")
    assert not placement.ensure_trait("CUSTOM_A")
    assert placement.list_traits(["CUSTOM_A", "CUSTOM_B"]) == {"CUSTOM_A"}
    assert placement.list_traits() > {"CUSTOM_A", "HW_NUMA_ROOT"}
    held = placement.change_traits(host, lambda names: names | {"CUSTOM_A"})
    assert held == placement.get_traits(host)
    assert held.names == {"CUSTOM_A"}
    with pytest.raises(client.BadRequest, match="CUSTOM_B"):
        placement.change_traits(host, lambda names: {"CUSTOM_B"})


def test_aggregates(placement: Client) -> None:
    host = make_host(placement)
    held = placement.change_aggregates(host, lambda uuids: uuids | {AGGREGATE})
    assert held == placement.get_aggregates(host)
    assert held.uuids == {AGGREGATE}
    assert [each.uuid for each in placement.list_providers(member_of=AGGREGATE)] == [
        host
    ]


def test_nothing_is_written_if_nothing_changes(
    placement: Client, service: Served
) -> None:
    host = make_host(placement, VCPU=8)
    before = placement.get_provider(host)
    placement.change_inventories(host, lambda known: known)
    placement.change_traits(host, lambda names: names)
    placement.change_aggregates(host, lambda uuids: uuids)
    assert placement.get_provider(host) == before
    assert "PUT" not in {call.method for call in service.calls[-4:]}


def test_a_claim_and_its_effects(placement: Client) -> None:
    host = make_host(placement, VCPU=8)
    candidates = placement.list_candidates({"resources": "VCPU:6"})
    (found,) = candidates.found
    assert candidates.summaries[host]["root_provider_uuid"] == host
    assert found.mappings == {"": [host]}
    server = new_uuid()
    assert placement.get_allocations(server).by_provider == {}
    placement.claim(server, found, project_id="blue", user_id="ann")
    held = placement.get_allocations(server)
    assert held == client.Allocations({host: {"VCPU": 6}}, 1, "blue", "ann")
    assert placement.list_allocations_of_provider(host) == {server: {"VCPU": 6}}
    with pytest.raises(client.Conflict) as caught:
        placement.claim(new_uuid(), found, project_id="blue", user_id="ann")
    assert not caught.value.lost_race
    placement.delete_allocations(server)
    with pytest.raises(client.NotFound):
        placement.delete_allocations(server)
    placement.claim(
        server,
        found,
        project_id="blue",
        user_id="ann",
        consumer_type="INSTANCE",
        version="1.38",
    )


@pytest.mark.parametrize(
    ("operation", "version"),
    [
        (lambda placement, host: placement.list_providers(in_tree=host), "1.14"),
        (lambda placement, host: placement.create_provider("other"), "1.20"),
        (lambda placement, host: placement.get_inventories(host), "1.0"),
        (lambda placement, host: placement.ensure_resource_class("CUSTOM_C"), "1.7"),
        (lambda placement, host: placement.replace_inventories(host, 1, {}), "1.26"),
        (lambda placement, host: placement.list_traits(["CUSTOM_C"]), "1.6"),
        (lambda placement, host: placement.ensure_trait("CUSTOM_C"), "1.6"),
        (lambda placement, host: placement.get_traits(host), "1.6"),
        (lambda placement, host: placement.replace_traits(host, 1, []), "1.6"),
        (lambda placement, host: placement.replace_aggregates(host, 1, []), "1.19"),
        (lambda placement, host: placement.get_allocations(host), "1.28"),
        (lambda placement, host: placement.list_candidates("resources=VCPU:1"), "1.36"),
        (lambda placement, host: placement.delete_inventory(host, "VCPU"), "1.29"),
    ],
)
def test_an_operation_asks_for_the_version_it_needs(
    placement: Client,
    service: Served,
    operation: Callable[[Client, str], object],
    version: str,
) -> None:
    host = make_host(placement, VCPU=8)
    operation(placement, host)
    assert service.calls[-1].version == version


# Endpoints and credentials


def test_the_inbound_request_is_named(service: Served, placement: Client) -> None:
    inbound = "req-8c6d2f3a-5a0e-4b3c-9d27-5f0f7a1f6b11"
    placement.for_request(inbound).list_traits([])
    assert service.calls[-1].headers["x-openstack-request-id"] == inbound
    placement.list_traits([])
    assert "x-openstack-request-id" not in service.calls[-1].headers


def test_a_connection_is_kept() -> None:
    connections = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections.append(self.client_address)

        def do_GET(self) -> None:
            body = b'{"traits": []}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        placement = caller(Served(f"http://127.0.0.1:{server.server_port}"))
        placement.list_traits()
        placement.for_request("req-1").list_traits()
        placement.for_request("req-2").list_traits()
        server.shutdown()
        thread.join()
    assert len(connections) == 1


def configured(*lines: str) -> Callable[[Any, Served], Client]:
    def configure(directory: Any, served: Served) -> Client:
        path = directory / "agent.conf"
        path.write_text("\n".join(["[placement]", *lines]).format(url=served.url))
        config = cfg.ConfigOpts()
        client.register_options(config)
        config([], default_config_files=[str(path)])
        return client.from_config(config)

    return configure


def test_a_token_from_a_configuration(tmp_path: Any, service: Served) -> None:
    configure = configured(
        "auth_type = admin_token", "endpoint_override = {url}", "token = admin"
    )
    configure(tmp_path, service).ensure_trait("CUSTOM_A")
    assert service.calls[-1].headers["x-auth-token"] == "admin"


def test_no_authentication_from_a_configuration(tmp_path: Any, service: Served) -> None:
    configure = configured("auth_type = none", "endpoint_override = {url}")
    with pytest.raises(client.Forbidden):
        configure(tmp_path, service).ensure_trait("CUSTOM_A")
    assert service.calls[-1].headers["x-auth-token"] == "notused"


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
        placement.ensure_trait("CUSTOM_A")
        placement.ensure_trait("CUSTOM_B")
    assert identity.lines.count("POST /v3/auth/tokens") == 1
    assert service.lines == ["PUT /traits/CUSTOM_A", "PUT /traits/CUSTOM_B"]


def test_a_wrong_password(tmp_path: Any, service: Served) -> None:
    with serving(keystone(service.url)) as identity:
        configure = configured(*password_file(identity.url, "guessed"))
        with pytest.raises(client.Unauthorized, match="who are you"):
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
        assert Client(way).ensure_trait("CUSTOM_A")
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
    assert Client(access.from_environment(environ)).ensure_trait("CUSTOM_A")


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
    with pytest.raises(client.Misconfigured, match=complaint):
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
    with pytest.raises(client.Misconfigured, match=complaint):
        configured(*lines)(tmp_path, Served("http://127.0.0.1:1"))


# Failures


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("400 Bad Request", client.BadRequest),
        ("401 Unauthorized", client.Unauthorized),
        ("403 Forbidden", client.Forbidden),
        ("404 Not Found", client.NotFound),
        ("405 Method Not Allowed", client.NotSupported),
        ("406 Not Acceptable", client.NotSupported),
        ("409 Conflict", client.Conflict),
        ("413 Too Large", client.PlacementError),
        ("429 Too Many", client.Unavailable),
        ("500 Internal Server Error", client.Unavailable),
        ("502 Bad Gateway", client.Unavailable),
        ("503 Service Unavailable", client.Unavailable),
        ("504 Gateway Timeout", client.Timeout),
    ],
)
def test_each_failure_has_its_kind(
    status: str, kind: type[client.PlacementError]
) -> None:
    application = refusing(status, detail="said so", code="a.code", request_id="req-1")
    with asking(application) as placement, pytest.raises(client.PlacementError) as got:
        placement.get("/", version="1.0")
    assert type(got.value) is kind
    number = int(status[:3])
    assert (got.value.status, got.value.code) == (number, "a.code")
    assert (got.value.detail, got.value.request_id) == ("said so", "req-1")
    assert str(got.value) == f"said so (HTTP {number}, a.code, request req-1)"


def test_a_failure_without_a_document() -> None:
    page = b"<html> <h1>Bad\n Gateway</h1></html>"
    answer = answering("502 Bad Gateway", page, X_OpenStack_Request_ID="req-2")
    with asking(answer) as placement, pytest.raises(client.Unavailable) as caught:
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
            lambda: placement.get_inventories(AGGREGATE),
            lambda: placement.get_traits(AGGREGATE),
            lambda: placement.list_candidates("resources=VCPU:1"),
        ):
            with pytest.raises(client.Unavailable):
                operation()


def test_an_error_of_another_kind_can_be_shown() -> None:
    answer = answering("400 Bad Request", b'{"errors": [{"code": 7, "detail": null}]}')
    with asking(answer) as placement, pytest.raises(client.BadRequest) as caught:
        placement.get("/", version="1.0")
    assert (caught.value.code, "HTTP 400, 7" in str(caught.value)) == ("7", True)


def test_lines_may_not_be_from_placement() -> None:
    with (
        asking(answering("200 OK", b"[" * 100_000)) as placement,
        pytest.raises(client.Unavailable),
    ):
        list(placement.lines("/", version="1.0"))


def test_no_character_ends_a_query(placement: Client) -> None:
    with pytest.raises(client.BadRequest) as caught:
        placement.list_candidates("resources=VCPU:1#&required=CUSTOM_NOWHERE")
    assert "VCPU expected positive integer amount. Got: 1#" in caught.value.detail


def test_candidates_come_with_what_is_known_of_their_providers() -> None:
    found: Any = {"allocations": {AGGREGATE: {"resources": {}}}, "mappings": {}}
    document = {"allocation_requests": [found], "provider_summaries": {}}
    answer = answering("200 OK", json.dumps(document).encode())
    with asking(answer) as placement, pytest.raises(client.Unavailable):
        placement.list_candidates("resources=VCPU:1")


def test_no_server_answers() -> None:
    with serving(answering("200 OK")) as gone:
        pass
    with pytest.raises(client.Unavailable) as caught:
        caller(gone).list_traits([])
    assert type(caught.value) is client.Unavailable
    assert caught.value.status is None
    said = f"no connection to {gone.url}/traits: [Errno 111] Connection refused"
    assert str(caught.value) == said


def test_an_earlier_failure_is_not_why_no_server_answers() -> None:
    def ask_twice(placement: Client) -> None:
        try:
            raise client.NotFound("not here")
        except client.NotFound:
            placement.list_traits([])

    with serving(answering("200 OK")) as gone:
        pass
    with pytest.raises(client.Unavailable, match="Connection refused"):
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
    error = client.Unavailable("later", status=status, code=code)
    assert error.may_have_succeeded == may_have


def test_the_server_may_not_understand_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        answering = threading.Thread(target=greet, args=(server,))
        answering.start()
        with pytest.raises(client.Unavailable) as caught:
            caller(Served(address)).list_traits([])
        answering.join()
    assert str(caught.value).startswith(f"no connection to {address}/traits: ")
    assert str(caught.value).isprintable()


def greet(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(b"\x4a\x00\x00\x00\x0a8.0.0\x00 hello\r\n\r\n")


def test_a_text_that_is_not_a_url() -> None:
    with pytest.raises(client.Unavailable, match="No scheme supplied"):
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
        with pytest.raises(client.Timeout):
            placement.list_traits([])
        asked_again.set()


# Lost races


def test_a_lost_race_is_run_again_from_the_read(
    placement: Client, service: Served
) -> None:
    host = make_host(placement, VCPU=8)
    others = iter([{"CUSTOM_A"}, {"CUSTOM_A", "CUSTOM_B"}])
    for name in ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C"):
        placement.ensure_trait(name)

    def change(names: frozenset[str]) -> frozenset[str]:
        theirs = next(others, None)
        if theirs is not None:
            generation = placement.get_provider(host).generation
            placement.replace_traits(host, generation, theirs)
        return names | {"CUSTOM_C"}

    # At 1.6, before conflicts had a code.
    held = caller(service).change_traits(host, change)
    assert held.names == {"CUSTOM_A", "CUSTOM_B", "CUSTOM_C"}


def test_races_of_inventories_and_aggregates(
    placement: Client, service: Served
) -> None:
    host = make_host(placement, VCPU=8)
    pauses: list[float] = []
    way = access.from_environment({}, url=service.url, token="admin")
    patient = Client(way, pause=pauses.append)
    moves = iter([1, 2])

    def moved(known: Any) -> None:
        if move := next(moves, None):
            placement.change_inventories(
                host, lambda known: {"VCPU": Inventory(8 + move)}
            )

    def add_disk(known: Any) -> Any:
        moved(known)
        return {**known, "DISK_GB": Inventory(5)}

    held = patient.change_inventories(host, add_disk)
    assert held.by_class == {"VCPU": Inventory(10), "DISK_GB": Inventory(5)}
    assert len(pauses) == 2
    moves = iter([3])

    def join(uuids: frozenset[str]) -> set[str]:
        moved(uuids)
        return {*uuids, AGGREGATE}

    assert patient.change_aggregates(host, join).uuids == {AGGREGATE}
    assert len(pauses) == 3


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
        with pytest.raises(client.Conflict) as caught:
            caller(served).delete_inventory(AGGREGATE, "VCPU")
        assert caught.value.detail == error["detail"]
        assert len(served.calls) == attempts


def test_an_inventory_in_use_is_not_a_lost_race(
    placement: Client, service: Served
) -> None:
    host = make_host(placement, VCPU=8)
    claim_all(placement, "resources=VCPU:1")
    service.calls.clear()
    with pytest.raises(client.Conflict) as caught:
        placement.delete_inventory(host, "VCPU")
    assert caught.value.code == "placement.concurrent_update"
    assert caught.value.in_use
    assert len(service.calls) == 1
    with pytest.raises(client.Conflict) as caught:
        placement.change_inventories(host, lambda known: {})
    assert caught.value.code == "placement.inventory.inuse"
    assert caught.value.in_use
    with pytest.raises(client.Conflict) as caught:
        placement.delete_provider(host)
    assert caught.value.code == "placement.resource_provider.inuse"


def test_any_other_conflict_is_raised_with_its_details(placement: Client) -> None:
    first = placement.create_provider("same")
    with pytest.raises(client.Conflict) as caught:
        placement.create_provider("same", version="1.23")
    assert caught.value.code == "placement.duplicate_name"
    assert "same already exists" in caught.value.detail
    assert caught.value.request_id
    assert dataclasses.asdict(first)["generation"] == 0


# The explanation, which most services cannot give


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (answering("200 OK", b'{"summary": "full"}'), {"summary": "full"}),
        (answering("200 OK", b'["summary"]'), None),
        (answering("200 OK", b"<html>"), None),
        (refusing("404 Not Found", detail="no such path"), None),
        (refusing("503 Service Unavailable", detail="later"), None),
    ],
)
def test_an_explanation_if_there_is_one(
    application: "WSGIApplication", expected: Any
) -> None:
    with asking(application) as placement:
        assert placement.get_explanation("resources=VCPU:1") == expected
