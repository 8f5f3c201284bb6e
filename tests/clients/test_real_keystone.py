"""The service behind a real Keystone, both served by gunicorn: ``tox -e keystone``."""

import importlib.util
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1 import adapter, session

from tests import programs
from tests.clients.keystone_process import (
    PASSWORD,
    REGION,
    keystone_in,
    log_in,
    serving,
)

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        importlib.util.find_spec("keystone") is None,
        reason="keystone is installed by tox -e keystone",
    ),
]

PLACEMENT = """
[placement_database]
connection = sqlite:///{directory}/placement.db
sync_on_startup = true
[keystone_authtoken]
www_authenticate_uri = {url}
auth_type = password
auth_url = {url}
username = placement
password = secret
project_name = service
user_domain_name = Default
project_domain_name = Default
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keystone")


@pytest.fixture(scope="module")
def keystone(directory: Path) -> Iterator[str]:
    """Run Keystone, and give the URL of its API."""
    with keystone_in(directory) as url:
        yield url


@pytest.fixture(scope="module")
def placement(keystone: str, directory: Path) -> Iterator[str]:
    """Run the service, and give its URL."""
    path = directory / "placement.conf"
    path.write_text(PLACEMENT.format(directory=directory, url=keystone))
    with serving(
        "placement.wsgi.api:application",
        programs.free_port(),
        directory,
        OS_PLACEMENT_CONFIG_DIR=str(directory),
    ) as url:
        yield url


class Cloud:
    """The users and projects in Keystone, created by its administrator."""

    def __init__(self, keystone: str, placement: str) -> None:
        self._keystone = keystone
        self._admin = adapter.Adapter(
            log_in(keystone, "admin", project_name="admin"),
            endpoint_override=keystone,
        )
        self.projects = {"service": self._make("project", name="service")}
        for name in ("mine", "yours"):
            self.projects[name] = self._make("project", name=name)
        service = self._make("service", name="placement", type="placement")
        self._make(
            "endpoint",
            service_id=service,
            interface="public",
            url=placement,
            region_id=REGION,
        )
        self.add_user("placement", "service", "service")

    def add_user(self, name: str, role: str, project: str) -> str:
        """Make a user with a role on a project; return the user's id."""
        user = self._make("user", name=name, password=PASSWORD)
        self._admin.put(
            f"/projects/{self.projects[project]}/users/{user}/roles/{self._role(role)}"
        )
        return user

    def grant(self, user: str, role: str, where: str) -> None:
        """Give a user a role on the system or a domain: ``where`` is its path."""
        self._admin.put(f"{where}/users/{user}/roles/{self._role(role)}")

    def revoke(self, token: str) -> None:
        """Revoke a token."""
        self._admin.delete("/auth/tokens", headers={"X-Subject-Token": token})

    def _role(self, name: str) -> str:
        return str(self._admin.get(f"/roles?name={name}").json()["roles"][0]["id"])

    def _make(self, kind: str, **fields: Any) -> str:
        if kind in ("project", "user"):
            fields["domain_id"] = "default"
        document = self._admin.post(f"/{kind}s", json={kind: fields}).json()
        return str(document[kind]["id"])


@pytest.fixture(scope="module")
def cloud(keystone: str, placement: str) -> Cloud:
    return Cloud(keystone, placement)


Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def ask(cloud: Cloud) -> Ask:
    """Give a function that sends a request as the user of a session."""

    def ask(who: session.Session, path: str, method: str = "GET", **more: Any) -> Any:
        client = adapter.Adapter(
            who,
            service_type="placement",
            interface="public",
            default_microversion="1.39",
            raise_exc=False,
        )
        return client.request(path, method, **more)

    return ask


@pytest.fixture
def name() -> str:
    return f"user-{uuid.uuid4()}"


def test_the_service_is_found_in_the_catalog(keystone: str, cloud: Cloud) -> None:
    client = adapter.Adapter(
        log_in(keystone, "placement", project_name="service"),
        service_type="placement",
        interface="public",
    )
    endpoint = client.get_endpoint_data()
    assert endpoint is not None
    assert endpoint.api_version == (1, 0)
    assert (endpoint.min_microversion, endpoint.max_microversion) == ((1, 0), (1, 39))


def test_a_service_creates_and_deletes_a_provider(
    keystone: str, cloud: Cloud, ask: Ask
) -> None:
    who = log_in(keystone, "placement", project_name="service")
    made = ask(who, "/resource_providers", "POST", json={"name": "a host"})
    assert made.status_code == 200
    path = f"/resource_providers/{made.json()['uuid']}"
    assert ask(who, path).json()["name"] == "a host"
    assert ask(who, path, "DELETE").status_code == 204


def test_an_administrator_may_ask(keystone: str, cloud: Cloud, ask: Ask) -> None:
    who = log_in(keystone, "admin", project_name="admin")
    assert ask(who, "/resource_providers").status_code == 200


def test_a_reader_sees_only_the_usages_of_the_own_project(
    keystone: str, cloud: Cloud, ask: Ask, name: str
) -> None:
    cloud.add_user(name, "reader", "mine")
    who = log_in(keystone, name, project_name="mine")
    mine, yours = cloud.projects["mine"], cloud.projects["yours"]
    assert ask(who, "/resource_providers").status_code == 403
    assert ask(who, f"/usages?project_id={mine}").status_code == 200
    assert ask(who, f"/usages?project_id={yours}").status_code == 403


@pytest.mark.parametrize(
    ("where", "scope"),
    [
        ("/system", {"system_scope": "all"}),
        ("/domains/default", {"domain_name": "Default"}),
    ],
)
def test_an_administrator_of_something_else_may_nothing(
    keystone: str, cloud: Cloud, ask: Ask, name: str, where: str, scope: dict[str, str]
) -> None:
    cloud.grant(cloud.add_user(name, "admin", "mine"), "admin", where)
    assert ask(log_in(keystone, name, **scope), "/traits").status_code == 403
    who = log_in(keystone, name, project_name="mine")
    assert ask(who, "/traits").status_code == 200


def test_a_revoked_token_that_was_never_used_is_refused(
    keystone: str, placement: str, cloud: Cloud
) -> None:
    who = log_in(keystone, "admin", project_name="admin")
    token = who.get_token()
    assert token is not None
    cloud.revoke(token)
    request = urllib.request.Request(
        f"{placement}/resource_providers", headers={"X-Auth-Token": token}
    )
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request)
    refusal.value.close()
    assert refusal.value.code == 401
    assert refusal.value.headers["WWW-Authenticate"] == f'Keystone uri="{keystone}"'


def test_roles_cannot_be_forged(
    keystone: str, cloud: Cloud, ask: Ask, name: str
) -> None:
    cloud.add_user(name, "member", "mine")
    who = log_in(keystone, name, project_name="mine")
    forged = {
        "X-Roles": "admin",
        "X-User-Id": "admin",
        "X-Identity-Status": "Confirmed",
    }
    assert ask(who, "/resource_providers", headers=forged).status_code == 403
