"""The service behind a real Keystone, both served by gunicorn: ``tox -e keystone``."""

import grp
import importlib.util
import os
import pwd
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1 import adapter, session
from keystoneauth1.identity import v3

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        importlib.util.find_spec("keystone") is None,
        reason="keystone is installed by tox -e keystone",
    ),
]

PROGRAMS = Path(sys.executable).parent
PASSWORD = "secret"
PATIENCE_SECONDS = 60
SERVER = """
bind = "127.0.0.1:{port}"
threads = 2
wsgi_app = "{application}"
control_socket_disable = True
# Longer than a client may be idle between two tests.
keepalive = 300
"""
KEYSTONE = """
[DEFAULT]
log_file = {directory}/keystone.log
[database]
connection = sqlite:///{directory}/keystone.db
[fernet_tokens]
key_repository = {directory}/fernet
[credential]
key_repository = {directory}/credential
"""
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


def free_port() -> int:
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def serving(
    application: str, port: int, directory: Path, **environment: str
) -> Iterator[str]:
    """Run a WSGI application, and give its URL once it answers."""
    url = f"http://127.0.0.1:{port}"
    home = directory / application.split(".")[0]
    home.mkdir()
    # Keystone parses the arguments of its process, so gunicorn gets none.
    (home / "gunicorn.conf.py").write_text(
        SERVER.format(port=port, application=application)
    )
    with (home / "output").open("w") as output:
        process = subprocess.Popen(
            [PROGRAMS / "gunicorn"],
            cwd=home,
            env={**os.environ, **environment},
            stdout=output,
            stderr=output,
        )
        try:
            wait_for(url, process)
            yield url
        finally:
            process.terminate()
            process.wait()


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS):
                return
        except urllib.error.HTTPError as answer:
            # Keystone offers its versions with status 300.
            with answer:
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"{url} does not answer")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keystone")


@pytest.fixture(scope="module")
def keystone(directory: Path) -> Iterator[str]:
    """Run Keystone with its administrator, and give the URL of its API."""
    port = free_port()
    path = directory / "keystone.conf"
    path.write_text(KEYSTONE.format(directory=directory))
    url = f"http://127.0.0.1:{port}/v3"
    urls = [f"--bootstrap-{kind}-url={url}" for kind in ("admin", "internal", "public")]
    names = [f"--bootstrap-password={PASSWORD}", "--bootstrap-region-id=one"]
    (directory / "fernet").mkdir(mode=0o700)
    owner = [
        f"--keystone-user={pwd.getpwuid(os.getuid()).pw_name}",
        f"--keystone-group={grp.getgrgid(os.getgid()).gr_name}",
    ]
    for arguments in (
        ["db_sync"],
        ["fernet_setup", *owner],
        ["bootstrap", *names, *urls],
    ):
        command = [str(PROGRAMS / "keystone-manage"), f"--config-file={path}"]
        subprocess.run([*command, *arguments], check=True, capture_output=True)
    with serving(
        "keystone.wsgi.api:application",
        port,
        directory,
        OS_KEYSTONE_CONFIG_DIR=str(directory),
    ):
        yield url


@pytest.fixture(scope="module")
def placement(keystone: str, directory: Path) -> Iterator[str]:
    """Run the service, and give its URL."""
    path = directory / "placement.conf"
    path.write_text(PLACEMENT.format(directory=directory, url=keystone))
    with serving(
        "placement.wsgi.api:application",
        free_port(),
        directory,
        OS_PLACEMENT_CONFIG_DIR=str(directory),
    ) as url:
        yield url


def log_in(keystone: str, user: str, **scope: Any) -> session.Session:
    """Return a session of a user, for the project ``project_name`` or another scope."""
    if "project_name" in scope:
        scope["project_domain_name"] = "Default"
    return session.Session(
        v3.Password(
            keystone,
            username=user,
            password=PASSWORD,
            user_domain_name="Default",
            **scope,
        )
    )


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
            region_id="one",
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
