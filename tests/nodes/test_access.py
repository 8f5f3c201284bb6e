"""Who may do what: Keystone says who is asking, policy what they may do."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from placement_foundation.database.storage import Database
from placement_nodes import app, conf
from tests.functional import identity
from tests.functional.identity import IdentityServer
from tests.nodes import options
from tests.nodes.caller import Caller

CONFIGURATION = """
[database]
connection = sqlite://
[oslo_policy]
policy_file = {policy}
"""
Build = Callable[[str], Caller]


@pytest.fixture
def server() -> Iterator[IdentityServer]:
    with identity.running() as server:
        yield server


@pytest.fixture
def build(server: IdentityServer, nodes_database: Database, tmp_path: Path) -> Build:
    """Give a function that returns a client, given the rules of a policy file."""

    def build(rules: str) -> Caller:
        policy, file = tmp_path / "policy.yaml", tmp_path / "nodes.conf"
        policy.write_text(rules)
        file.write_text(
            CONFIGURATION.format(policy=policy) + identity.options_of(server)
        )
        return Caller(app.build(conf.read([str(file)]), nodes_database))

    return build


def token(text: str) -> dict[str, str]:
    return {"X-Auth-Token": text}


def test_discovery_is_open_to_all(build: Build) -> None:
    nodes = build("{}")
    for path in ("/", "/v1", "/v1/", "/healthcheck"):
        assert nodes.call("GET", path).status == 200


def test_probes_need_no_token(build: Build) -> None:
    nodes = build("{}")
    assert nodes.send("GET", "/livez").text == "ok\n"
    assert nodes.send("GET", "/readyz").text == "database: ok\nschema: ok\n"


def test_a_refusal_without_a_token_has_the_bounds_of_versions(build: Build) -> None:
    nodes = build("{}")
    for stranger in ({}, token("nobody")):
        answer = nodes.send("GET", "/v1/nodes", headers=stranger)
        assert answer.status_int == 401
        assert "identity.example" in answer.headers["WWW-Authenticate"]
        headers = answer.headers
        assert headers["X-OpenStack-Ironic-API-Minimum-Version"] == "1.1"
        assert headers["X-OpenStack-Ironic-API-Maximum-Version"] == "1.37"


@pytest.mark.parametrize(("role", "status"), [("admin", 200), ("service", 200)])
def test_administrators_and_services_may(
    build: Build, server: IdentityServer, role: str, status: int
) -> None:
    asking = token(server.add_token(role))
    assert build("{}").call("GET", "/v1/nodes", headers=asking).status == status


def test_others_may_not(build: Build, server: IdentityServer) -> None:
    nodes, asking = build("{}"), token(server.add_token("member", "reader"))
    for method, path in [("GET", "/v1/nodes"), ("DELETE", "/v1/nodes/n1/traits")]:
        answer = nodes.call(method, path, headers=asking)
        assert answer.status == 403
        assert "Policy does not allow baremetal:node" in answer.fault
        assert answer.headers["X-OpenStack-Ironic-API-Version"] == "1.37"


def test_operators_may_change_the_rules(build: Build, server: IdentityServer) -> None:
    rules = json.dumps({"baremetal:node:list": "role:reader"})
    nodes, asking = build(rules), token(server.add_token("reader"))
    assert nodes.call("GET", "/v1/nodes", headers=asking).status == 200
    assert nodes.call("GET", "/v1/drivers", headers=asking).status == 403


def test_anybody_is_an_administrator_without_authentication(
    nodes_database: Database,
) -> None:
    nodes = Caller(app.build(options.make_config(), nodes_database))
    anybody = (None, "notused", "admin", "demo:demo")
    for text in anybody:
        asking = token(text) if text else {}
        roles = {**asking, "X-Roles": "nobody"}
        assert nodes.call("GET", "/v1/nodes", headers=roles).status == 200
