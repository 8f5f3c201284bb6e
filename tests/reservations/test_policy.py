"""Who may do what, behind the identity service."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement_reservations import app, conf
from tests.functional import identity
from tests.reservations.cloud import Cloud
from tests.reservations.test_api import LEASE
from tests.reservations.visitor import Visitor

CONFIGURATION = """
[database]
connection = sqlite://
[oslo_policy]
policy_file = a file that does not exist.yaml
"""


class Person(Visitor):
    """A client with a token."""

    token = ""

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        return super().call(method, path, body, X_Auth_Token=self.token, **headers)


@pytest.fixture
def people(cloud: Cloud, tmp_path: Path) -> Iterator[Any]:
    """Give a function that makes a client with roles in a project."""
    with identity.running() as server:
        path = tmp_path / "placement-reservations.conf"
        path.write_text(CONFIGURATION + identity.options_of(server))
        application = app.build(conf.read([str(path)]), cloud.world)

        def person(*roles: str, project: str) -> Person:
            found = Person(application)
            scope = identity.project_scope(project)
            found.token = server.add_token(*roles, scope=scope)
            return found

        yield person


def test_leases_belong_to_projects(people: Any) -> None:
    ann = people("member", "reader", project="blue")
    bob = people("member", "reader", project="red")
    eve = people("reader", project="blue")
    admin = people("admin", project="cloud")
    made = ann.call("POST", "/v1/leases", LEASE).document["lease"]
    assert made["project_id"] == "blue"
    path = f"/v1/leases/{made['id']}"
    flavor = f"/v1/flavors/{made['reservations'][0]['flavor_id']}"
    for who, status in ((ann, 200), (bob, 403), (eve, 200), (admin, 200)):
        assert who.call("GET", path).status == status
        listed = who.get("/v1/leases")["leases"]
        assert len(listed) == (1 if status == 200 else 0)
    # A flavor is shown to those who have access to it, which comes with the start.
    assert admin.call("GET", flavor).status == 200
    assert ann.call("GET", flavor).status == 404
    assert ann.call("PUT", path, {"start_date": "now"}).status == 200
    assert ann.call("GET", flavor).status == 200
    assert bob.call("GET", flavor).status == 404
    for who in (bob, eve):
        assert who.call("PUT", path, {"name": "mine"}).status == 403
        assert who.call("PUT", path, {"nonsense": 1}).status == 403
        assert who.call("DELETE", path).status == 403
    assert eve.call("POST", "/v1/leases", LEASE).status == 403
    assert ann.call("PUT", path, {"name": "mine"}).status == 200
    assert admin.call("DELETE", path).status == 204


def test_a_member_who_reads_nothing(people: Any) -> None:
    ann = people("member", project="blue")
    made = ann.call("POST", "/v1/leases", LEASE)
    assert made.status == 201
    path = f"/v1/leases/{made.document['lease']['id']}"
    assert ann.call("GET", path).status == 403
    assert ann.call("GET", "/v1/leases").status == 403


def test_hosts_are_for_administrators(people: Any) -> None:
    ann = people("member", "reader", project="blue")
    admin = people("admin", project="cloud")
    for method, path, body in (
        ("GET", "/v1/os-hosts", None),
        ("POST", "/v1/os-hosts", {"name": "compute-3"}),
        ("GET", "/v1/os-hosts/1", None),
        ("PUT", "/v1/os-hosts/1", {"gpu": "1"}),
        ("DELETE", "/v1/os-hosts/1", None),
        ("GET", "/v1/os-hosts/allocations", None),
        ("GET", "/v1/os-hosts/1/allocation", None),
        ("PATCH", "/v1/os-hosts/properties/gpu", {"private": True}),
    ):
        assert ann.call(method, path, body).status == 403
    assert admin.call("PUT", "/v1/os-hosts/1", {"gpu": "1"}).status == 200
    private = {"private": True}
    assert admin.call("PATCH", "/v1/os-hosts/properties/gpu", private).status == 200
    properties = "/v1/os-hosts/properties"
    assert ann.get(properties) == {"resource_properties": []}
    assert ann.call("GET", f"{properties}?all=True").status == 403
    assert len(admin.get(f"{properties}?all=True")["resource_properties"]) == 1


def test_without_a_token_little_is_shown(people: Any) -> None:
    nobody = people(project="blue")
    nobody.token = "none"
    for path, status in (("/", 300), ("/versions", 300), ("/healthcheck", 200)):
        assert nobody.call("GET", path).status == status
