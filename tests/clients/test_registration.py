"""The lines of the documents that make users and endpoints, run with a real Keystone.

The three services are configured as their pages say; only addresses and databases are
others. ``tox -e keystone``.
"""

import dataclasses
import importlib.util
import os
import re
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1 import adapter

from tests import programs, terminal
from tests.clients.keystone_process import (
    PASSWORD,
    PROGRAMS,
    REGION,
    keystone_in,
    log_in,
    serving,
)

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        importlib.util.find_spec("keystone") is None
        or importlib.util.find_spec("openstackclient") is None,
        reason="keystone and the client are installed by tox -e keystone",
    ),
]

DOCS = Path(__file__).parents[2] / "docs"
LINE = r"^    (?:\$ )?(openstack (?:project|user|role|service|endpoint) (?:.*\\\n)*.*)$"
IDENTITY = "https://identity.example/v3"
# What a page leaves out because another has it.
AS_FOR_PLACEMENT, THE_SAME = "# As for Placement.", "# The same lines."
ADMIN = {
    "OS_USERNAME": "admin",
    "OS_PASSWORD": PASSWORD,
    "OS_PROJECT_NAME": "admin",
    "OS_USER_DOMAIN_NAME": "Default",
    "OS_PROJECT_DOMAIN_NAME": "Default",
    "OS_IDENTITY_API_VERSION": "3",
}
VERSIONS = {"placement": "1.36", "baremetal": "1.37", "reservation": None}
# What ann reserves.
LEASE = {
    "name": "mine",
    "start_date": "now",
    "end_date": "2099-01-05 12:00",
    "reservations": [
        {
            "resource_type": "virtual:instance",
            "vcpus": 1,
            "memory_mb": 512,
            "disk_gb": 5,
            "amount": 2,
        }
    ],
}


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """The page about a service: what it is called, and its address there."""

    name: str
    address: str

    @property
    def text(self) -> str:
        return (DOCS / f"{self.name}.rst").read_text()

    def lines(self) -> list[str]:
        """Return the lines that change what Keystone has."""
        return re.findall(LINE, self.text, re.MULTILINE)

    def block(self, first: str) -> str:
        """Return the first indented block that begins with a line."""
        block = rf"^    {re.escape(first)}\n(?:    .*\n|\n)*"
        return textwrap.dedent(re.findall(block, self.text, re.MULTILINE)[0])


PLACEMENT = Page("operators-guide", "https://placement.example:8778")
NODES = Page("placement-nodes", "https://baremetal.example:6385")
RESERVATIONS = Page("placement-reservations", "https://reservation.example:1234")


def section(file: str, name: str) -> str:
    """Return the lines of a section of a configuration file, without its head."""
    (found,) = re.findall(rf"^\[{name}\]\n((?:[^\[].*\n|\n)*)", file, re.M)
    return str(found)


def configuration(page: Page) -> str:
    """Return the file that a page shows, complete."""
    # No cache answers here, so each token is validated.
    placement = PLACEMENT.block("[placement_database]")
    if page is PLACEMENT:
        return placement
    if page is NODES:
        agent = page.block("[baremetal]")
        agent = agent.replace(f"{THE_SAME}\n", section(agent, "baremetal"))
        file = agent + page.block("[database]")
    else:
        file = page.block("[database]")
    file = file.replace(
        f"{AS_FOR_PLACEMENT}\n", section(placement, "keystone_authtoken")
    )
    assert "#" not in file
    return file


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """Keystone, and services that are not registered there yet."""

    keystone: str
    home: Path
    urls: Mapping[Page, str]

    def type(self, line: str) -> str:
        """Type a line of a page, and the password when it is asked for."""
        for page, url in self.urls.items():
            line = line.replace(page.address, url)
        code, printed = terminal.run(
            ["bash", "-c", line],
            f"{PASSWORD}\n".encode(),
            b"Password:",
            **ADMIN,
            OS_AUTH_URL=self.keystone,
            HOME=str(self.home),
            PATH=f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
        )
        assert not code, (line, printed)
        return printed

    def ask(self, service: str, method: str, path: str, **how: Any) -> Any:
        """Send a request, as ``user`` of ``project``, to where the catalog says."""
        who = how.pop("user", "admin"), how.pop("project", "admin")
        client = adapter.Adapter(
            log_in(self.keystone, who[0], project_name=who[1]),
            service_type=service,
            interface="public",
            region_name=REGION,
            raise_exc=False,
            default_microversion={"placement": "1.36", "baremetal": "1.37"}.get(
                service
            ),
        )
        answer = client.request(path, method, **how)
        assert answer.ok, (path, answer.status_code, answer.text)
        return answer.json() if answer.content else None


@contextmanager
def running(keystone: str, home: Path) -> Iterator[Mapping[Page, str]]:
    """Run the services, and give their URLs."""
    urls: dict[Page, str] = {}
    with ExitStack() as stack:
        for page, package in (
            (PLACEMENT, "placement.wsgi.api"),
            (NODES, "placement_nodes.wsgi"),
            (RESERVATIONS, "placement_reservations.wsgi"),
        ):
            name = "placement" if page is PLACEMENT else page.name
            database = f"sqlite:///{home}/{name}.db\nsync_on_startup = true"
            file = configuration(page).replace(IDENTITY, keystone)
            file = re.sub(r"(?<=^connection = ).*", database, file, flags=re.M)
            (home / f"{name}.conf").write_text(file)
            variable = f"OS_{name.upper().replace('-', '_')}_CONFIG_DIR"
            urls[page] = stack.enter_context(
                serving(
                    f"{package}:application",
                    programs.free_port(),
                    home,
                    **{variable: str(home)},
                )
            )
        yield urls


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Give the services after all lines of the pages have been run, in their order."""
    home = tmp_path_factory.mktemp("site")
    with keystone_in(home) as keystone, running(keystone, home) as urls:
        site = Site(keystone, home, urls)
        # The user to whom the last lines give roles.
        site.type("openstack project create blue")
        site.type("openstack user create --password-prompt ann")
        for page in urls:
            assert len(page.lines()) >= 4
            for line in page.lines():
                site.type(line)
        yield site


def test_the_agent_copies_nodes_that_it_finds_in_the_catalog(site: Site) -> None:
    node = {"driver": "fake-hardware", "name": "n1", "resource_class": "baremetal.gold"}
    uuid = site.ask("baremetal", "POST", "/v1/nodes", json=node)["uuid"]
    done = subprocess.run(
        [PROGRAMS / "placement-nodes-sync", "--once"],
        env={
            **programs.environment(site.home),
            "OS_PLACEMENT_NODES_CONFIG_DIR": str(site.home),
        },
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 synchronised, 1 changed" in done.stdout
    path = f"/resource_providers/{uuid}/inventories"
    found = site.ask("placement", "GET", path)["inventories"]
    assert [*found] == ["CUSTOM_BAREMETAL_GOLD"]


def test_a_member_reserves_what_the_service_finds_in_placement(site: Site) -> None:
    host = site.ask("placement", "POST", "/resource_providers", json={"name": "host"})
    inventories = {"VCPU": 8, "MEMORY_MB": 8192, "DISK_GB": 100}
    site.ask(
        "placement",
        "PUT",
        f"/resource_providers/{host['uuid']}/inventories",
        json={
            "resource_provider_generation": host["generation"],
            "inventories": {key: {"total": n} for key, n in inventories.items()},
        },
    )
    site.ask("reservation", "POST", "/os-hosts", json={"name": "host"})
    ann = {"user": "ann", "project": "blue"}
    made = site.ask("reservation", "POST", "/leases", json=LEASE, **ann)["lease"]
    assert made["status"] == "ACTIVE"
    assert site.ask("reservation", "GET", "/leases", **ann)["leases"] == [made]
