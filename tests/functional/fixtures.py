"""What gabbi stories start from.

A story names the classes it wants under ``fixtures``; each builds its state through
the API of the application under test, or changes its options.
"""

import os
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gabbi import fixture

from placement import app
from placement_foundation.database.storage import Database
from tests import description, settings
from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# Set afresh for each story, so that none can count on another one's values.
UUIDS = [
    "RP_UUID",
    "RP_UUID1",
    "RP_UUID2",
    "PARENT_PROVIDER_UUID",
    "ALT_PARENT_PROVIDER_UUID",
    "AGG_UUID",
    "AGG_UUID1",
    "AGG_UUID2",
    "CONSUMER_UUID",
    "CONSUMER_UUID1",
    "CONSUMER_UUID2",
    "INSTANCE_UUID",
    "MIGRATION_UUID",
    "PROJECT_ID",
    "PROJECT_ID_ALT",
    "USER_ID",
    "USER_ID_ALT",
]
NAMES = ["RP_NAME", "RP_NAME1", "RP_NAME2"]
CUSTOM_CLASSES = {
    "CUSTOM_RES_CLASS": "CUSTOM_IRON_NFV",
    "CUSTOM_RES_CLASS1": "CUSTOM_IRON_NFV1",
    "CUSTOM_RES_CLASS2": "CUSTOM_IRON_NFV2",
}


class Stage:
    """Where the story of this process plays: a database and an application on it."""

    database: Database
    application: "WSGIApplication"


def perform(
    environment: "WSGIEnvironment", start_response: "StartResponse"
) -> Iterable[bytes]:
    """Serve a request by whatever application is on the stage by now.

    What it answers is what the description of the API says.
    """
    return description.watch(Stage.application, environment, start_response)


def set_stage(database: Database) -> None:
    """Make a new stage with the default options, and new names."""
    Stage.database = database
    reconfigure({})
    for name in UUIDS:
        os.environ[name] = str(uuid.uuid4())
    for name in NAMES:
        os.environ[name] = f"provider-{uuid.uuid4()}"
    os.environ.update(CUSTOM_CLASSES)


def reconfigure(overrides: dict[tuple[str, str], Any]) -> None:
    """Put an application with other options on the stage."""
    config = settings.make_config(overrides)
    Stage.application = app.build(config, Stage.database)


def call(method: str, path: str, body: Any = None, version: str = "latest") -> Any:
    """Send a request as the administrator; it must succeed. Return its document."""
    answer = Client(Stage.application).call(method, path, body, version)
    assert answer.status < 300, answer
    return answer.document


class OneProvider(fixture.GabbiFixture):  # type: ignore[misc]
    """A root provider: RP_UUID, called RP_NAME."""

    def start_fixture(self) -> None:
        provider = {"uuid": os.environ["RP_UUID"], "name": os.environ["RP_NAME"]}
        call("POST", "/resource_providers", provider)


class NewDefaults(fixture.GabbiFixture):  # type: ignore[misc]
    """The policy of a new deployment: deprecated defaults do not count."""

    def start_fixture(self) -> None:
        reconfigure({("oslo_policy", "enforce_new_defaults"): True})


class CrossOrigin(fixture.GabbiFixture):  # type: ignore[misc]
    """Pages of one other origin may call."""

    def start_fixture(self) -> None:
        reconfigure(
            {
                ("cors", "allowed_origin"): ["http://valid.example.com"],
                ("cors", "allow_headers"): ["openstack-api-version"],
                ("cors", "allow_methods"): ["GET", "PUT", "POST", "DELETE"],
            }
        )


class BehindProxy(fixture.GabbiFixture):  # type: ignore[misc]
    """A proxy in front says where the request came from."""

    def start_fixture(self) -> None:
        reconfigure({("oslo_middleware", "enable_proxy_headers_parsing"): True})


class OwnersOfTheirOwn(fixture.GabbiFixture):  # type: ignore[misc]
    """Consumers written without a project and user belong to ones of the operator."""

    def start_fixture(self) -> None:
        reconfigure(
            {
                ("placement", "incomplete_consumer_project_id"): "nobody's project",
                ("placement", "incomplete_consumer_user_id"): "nobody",
            }
        )


class NoAttempts(fixture.GabbiFixture):  # type: ignore[misc]
    """Allocations are not even attempted to be written."""

    def start_fixture(self) -> None:
        reconfigure({("placement", "allocation_conflict_retry_count"): 0})


class ThreeConsumers(fixture.GabbiFixture):  # type: ignore[misc]
    """A root provider of generation 5 and three consumers of it, without types.

    DISK_GB and VCPU are given one by one. CONSUMER_UUID has much of the first,
    CONSUMER_UUID1 much of the second, and CONSUMER_UUID2 of USER_ID_ALT some of both.
    """

    def start_fixture(self) -> None:
        uuid, name = os.environ["RP_UUID"], os.environ["RP_NAME"]
        call("POST", "/resource_providers", {"uuid": uuid, "name": name})
        inventories = f"/resource_providers/{uuid}/inventories"
        disk = {"total": 2048, "step_size": 10, "min_unit": 10, "max_unit": 1000}
        call("POST", inventories, {"resource_class": "DISK_GB", **disk})
        call(
            "POST", inventories, {"resource_class": "VCPU", "total": 10, "max_unit": 10}
        )
        self.claim("CONSUMER_UUID", "USER_ID", {"DISK_GB": 1000})
        self.claim("CONSUMER_UUID1", "USER_ID", {"VCPU": 6})
        self.claim("CONSUMER_UUID2", "USER_ID_ALT", {"VCPU": 1, "DISK_GB": 20})

    def claim(self, consumer: str, user: str, resources: dict[str, int]) -> None:
        body = {
            "allocations": {os.environ["RP_UUID"]: {"resources": resources}},
            "project_id": os.environ["PROJECT_ID"],
            "user_id": os.environ[user],
            "consumer_generation": None,
        }
        call("PUT", f"/allocations/{os.environ[consumer]}", body, "1.28")


class SharedDisk(fixture.GabbiFixture):  # type: ignore[misc]
    """A host, a NIC in it, and a disk that it shares with others.

    RP_UUID, the host, has 8 VCPU and 1024 MEMORY_MB, HW_CPU_X86_VMX and CUSTOM_FAST.
    RP_UUID1, the NIC, has 4 SRIOV_NET_VF and HW_NIC_SRIOV. RP_UUID2, the disk, has 100
    DISK_GB and MISC_SHARES_VIA_AGGREGATE. Host and disk are in AGG_UUID.
    """

    def start_fixture(self) -> None:
        host, nic, disk = (
            os.environ[name] for name in ("RP_UUID", "RP_UUID1", "RP_UUID2")
        )
        call("PUT", "/traits/CUSTOM_FAST")
        self.make(host, None, {"VCPU": 8, "MEMORY_MB": 1024})
        self.make(nic, host, {"SRIOV_NET_VF": 4})
        self.make(disk, None, {"DISK_GB": 100})
        self.have(host, ["HW_CPU_X86_VMX", "CUSTOM_FAST"])
        self.have(nic, ["HW_NIC_SRIOV"])
        self.have(disk, ["MISC_SHARES_VIA_AGGREGATE"])
        for provider in (host, disk):
            body = {
                "resource_provider_generation": 2,
                "aggregates": [os.environ["AGG_UUID"]],
            }
            call("PUT", f"/resource_providers/{provider}/aggregates", body)

    def make(self, provider: str, parent: str | None, totals: dict[str, int]) -> None:
        body: Any = {"uuid": provider, "name": provider, "parent_provider_uuid": parent}
        call("POST", "/resource_providers", body)
        inventories = {name: {"total": total} for name, total in totals.items()}
        body = {"resource_provider_generation": 0, "inventories": inventories}
        call("PUT", f"/resource_providers/{provider}/inventories", body)

    def have(self, provider: str, traits: list[str]) -> None:
        body = {"resource_provider_generation": 1, "traits": traits}
        call("PUT", f"/resource_providers/{provider}/traits", body)


class AtMostTwoCandidates(SharedDisk):
    """The same, with at most two allocation candidates generated."""

    def start_fixture(self) -> None:
        super().start_fixture()
        reconfigure({("placement", "max_allocation_candidates"): 2})


class AtMostNoCandidates(SharedDisk):
    """The same, with a limit of no candidates generated, which allows one."""

    def start_fixture(self) -> None:
        super().start_fixture()
        reconfigure({("placement", "max_allocation_candidates"): 0})


class DepthFirst(SharedDisk):
    """The same, and one tree is exhausted before the next."""

    def start_fixture(self) -> None:
        super().start_fixture()
        strategy = "allocation_candidates_generation_strategy"
        reconfigure({("placement", strategy): "depth-first"})


class RandomOrder(SharedDisk):
    """The same, and candidates come in random order."""

    def start_fixture(self) -> None:
        super().start_fixture()
        reconfigure({("placement", "randomize_allocation_candidates"): True})


class NumaHost(fixture.GabbiFixture):  # type: ignore[misc]
    """A host, RP_UUID, with three NUMA nodes that have three functions each."""

    def start_fixture(self) -> None:
        host = os.environ["RP_UUID"]
        call("POST", "/resource_providers", {"uuid": host, "name": host})
        for _ in range(3):
            node = self.make_child(host)
            body = {"resource_provider_generation": 0, "traits": ["HW_NUMA_ROOT"]}
            call("PUT", f"/resource_providers/{node}/traits", body)
            for _ in range(3):
                inventories = f"/resource_providers/{self.make_child(node)}/inventories"
                body = {"resource_class": "SRIOV_NET_VF", "total": 1}
                call("POST", inventories, body)

    def make_child(self, parent: str) -> str:
        child = str(uuid.uuid4())
        body = {"uuid": child, "name": child, "parent_provider_uuid": parent}
        call("POST", "/resource_providers", body)
        return child


class FewPicks(NumaHost):
    """The same, with a budget that allows only one look at each tree."""

    def start_fixture(self) -> None:
        super().start_fixture()
        picks = {"search_picks": 1, "search_picks_per_anchor": 1}
        reconfigure({("placement", name): value for name, value in picks.items()})
