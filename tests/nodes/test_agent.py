"""The agent between a node service and Placement, behind sockets that may fail."""

import dataclasses
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs
from uuid import UUID

import pytest
import sqlalchemy as sa

from placement.db import models as placement_models
from placement_clients import access
from placement_clients.record import AGGREGATES, INVENTORIES, TRAITS, Inventory
from placement_foundation.database.storage import Database
from placement_nodes.sync import memory
from placement_nodes.sync.agent import Agent, Caution, Tally
from placement_nodes.sync.bare_metal import FIELDS, BareMetal, Unreadable
from placement_nodes.sync.memory import Memory
from tests.client import new_uuid
from tests.nodes.world import GOLD, World, gold
from tests.serving import serving

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

READS = ["GET /resource_providers", "GET {}/inventories", "GET {}/traits"]
Middle = Callable[["WSGIEnvironment"], str | None]


def test_a_node_is_copied_to_placement(world: World) -> None:
    uuid = world.enrol("n1", "CUSTOM_A", "HW_CPU_X86_VMX")
    tally = world.run()
    assert (tally.synchronised, tally.changed) == ({uuid}, {uuid})
    provider = world.placement.get_provider(uuid)
    assert (provider.uuid, provider.name) == (uuid, uuid)
    assert world.inventories(uuid) == gold()
    assert world.traits(uuid) == {"CUSTOM_A", "HW_CPU_X86_VMX"}
    path = f"/resource_providers/{uuid}"
    calls = [(call.line, call.version) for call in world.service.calls[:8]]
    assert calls == [
        ("GET /resource_providers", "1.14"),
        ("GET /traits", "1.6"),
        ("POST /resource_providers", "1.20"),
        (f"PUT /resource_classes/{GOLD}", "1.7"),
        (f"PUT {path}/inventories", "1.26"),
        ("PUT /traits/CUSTOM_A", "1.6"),
        (f"PUT {path}/traits", "1.6"),
        (f"GET {path}", "1.14"),
    ]


def test_a_pass_with_nothing_to_change_only_reads(world: World) -> None:
    uuid = world.enrol("n1", "CUSTOM_A")
    bare = world.enrol("n2")
    world.run()
    before = world.generation(uuid), world.generation(bare)
    tally = world.run()
    assert (tally.synchronised, tally.changed) == ({uuid, bare}, set())
    assert world.service.lines == [
        line.format(f"/resource_providers/{each}")
        for each in (uuid, bare)
        for line in READS
    ]
    assert (world.generation(uuid), world.generation(bare)) == before
    assert world.said == []


def test_nodes_are_read_as_the_contract_says(world: World) -> None:
    world.run()
    [call] = world.nodes_service.calls
    assert call.line == "GET /v1/nodes"
    assert parse_qs(call.query) == {"fields": [",".join(FIELDS)]}
    assert call.headers["openstack-api-version"] == "baremetal 1.37"
    assert call.headers["x-openstack-ironic-api-version"] == "1.37"


def test_changes_of_a_node_follow(world: World) -> None:
    uuid = world.enrol("n1", "CUSTOM_A")
    world.run()
    world.nodes.set_traits("n1", ["CUSTOM_B"])
    world.nodes.change("n1", resource_class="silver")
    world.nodes.call("PUT", "/v1/nodes/n1/maintenance")
    assert world.run().changed == {uuid}
    silver = {"CUSTOM_SILVER": Inventory(total=1, reserved=1, max_unit=1)}
    assert world.inventories(uuid) == silver
    assert world.traits(uuid) == {"CUSTOM_B"}
    world.nodes.call("DELETE", "/v1/nodes/n1/traits")
    world.run()
    assert world.traits(uuid) == set()
    # A DELETE would not send the generation.
    assert world.writes() == [f"PUT /resource_providers/{uuid}/traits"]


def test_drift_is_repaired(world: World) -> None:
    uuid = world.enrol("n1", "CUSTOM_A")
    world.run()
    world.placement.put("/traits/CUSTOM_MANUAL", version="1.6")
    world.placement.change(uuid, TRAITS, lambda names: {"CUSTOM_MANUAL"})
    world.placement.change(uuid, INVENTORIES, lambda _: {"VCPU": Inventory(8)})
    world.run()
    assert (world.traits(uuid), world.inventories(uuid)) == ({"CUSTOM_A"}, gold())
    world.placement.delete(f"/resource_providers/{uuid}", version="1.23")
    world.run()
    assert (world.traits(uuid), world.inventories(uuid)) == ({"CUSTOM_A"}, gold())


def test_what_is_deleted_while_the_agent_runs_is_made_again(world: World) -> None:
    uuid = world.enrol("n1", "CUSTOM_A")
    with world.agent() as agent:
        for _ in range(2):
            assert agent.synchronise_all().synchronised == {uuid}
            assert (world.traits(uuid), world.inventories(uuid)) == (
                {"CUSTOM_A"},
                gold(),
            )
            world.placement.delete(f"/resource_providers/{uuid}", version="1.23")
            world.placement.delete(f"/resource_classes/{GOLD}", version="1.29")
            world.placement.delete("/traits/CUSTOM_A", version="1.6")


def test_other_providers_are_not_touched(world: World) -> None:
    world.enrol("n1", "CUSTOM_A")
    host = world.placement.create_provider("host")
    inventories = {"VCPU": Inventory(8)}
    world.placement.replace(host.uuid, INVENTORIES, 0, inventories)
    world.placement.change(host.uuid, TRAITS, lambda names: {"HW_CPU_X86_VMX"})
    before = world.generation(host.uuid)
    world.run()
    world.run()
    assert world.generation(host.uuid) == before


def test_a_node_without_a_resource_class_is_left_out(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    uuid = world.enrol("n1", resource_class=None)
    other = world.enrol("n2")
    tally = world.run()
    assert (tally.left_out, tally.synchronised, tally.failed) == (
        {uuid},
        {other},
        set(),
    )
    assert f"{uuid}: the node has no resource class" in caplog.text
    assert world.placement.list_providers(uuid=uuid) == []


def test_a_node_that_loses_its_resource_class_cannot_be_allocated(
    world: World,
) -> None:
    uuid = world.enrol("n1", "CUSTOM_A")
    world.run()
    world.nodes.change("n1", resource_class=None)
    tally = world.run()
    assert (tally.left_out, tally.changed, tally.failed) == ({uuid}, {uuid}, set())
    assert world.inventories(uuid) == {}
    assert world.traits(uuid) == {"CUSTOM_A"}
    assert world.run().changed == set()
    world.nodes.change("n1", resource_class="baremetal.gold")
    world.run()
    assert world.inventories(uuid) == gold()


def test_one_in_use_that_loses_its_resource_class_is_reserved(world: World) -> None:
    uuid = world.enrol("n1")
    world.run()
    world.claim(uuid, new_uuid())
    world.nodes.change("n1", resource_class=None)
    for _ in range(2):
        tally = world.run()
        assert (tally.left_out, tally.failed) == ({uuid}, set())
        assert world.inventories(uuid) == gold(reserved=1)


def test_a_provider_that_was_renamed_gets_its_name_back(world: World) -> None:
    uuid = world.enrol("n1")
    world.run()
    world.placement.put(
        f"/resource_providers/{uuid}", {"name": "somebody's favourite"}, version="1.0"
    )
    assert world.run().changed == {uuid}
    assert world.placement.get_provider(uuid).name == uuid
    assert world.writes() == [f"PUT /resource_providers/{uuid}"]
    assert world.run().changed == set()


def test_a_name_that_another_provider_took_is_reported(world: World) -> None:
    uuid, other = world.enrol("n1"), world.enrol("n2", "CUSTOM_A")
    world.run()
    world.placement.put(f"/resource_providers/{uuid}", {"name": "n1"}, version="1.0")
    world.placement.create_provider(uuid)
    tally = world.run()
    assert (tally.failed, tally.synchronised) == ({uuid}, {other})


def test_several_nodes_at_a_time_end_as_one_after_the_other(world: World) -> None:
    uuids = {world.enrol(f"n{number}", "CUSTOM_A") for number in range(20)}
    tally = world.run(parallel=5)
    assert (tally.synchronised, tally.failed) == (uuids, set())
    assert all(world.inventories(uuid) == gold() for uuid in uuids)
    assert all(world.traits(uuid) == {"CUSTOM_A"} for uuid in uuids)
    for number in range(20):
        world.nodes.call("DELETE", f"/v1/nodes/n{number}")
    assert world.run(parallel=5).removed == uuids
    assert world.run(parallel=5).removed == set()


def test_a_provider_that_others_made_for_a_node_is_adopted(world: World) -> None:
    uuid = world.enrol("n1", "CUSTOM_A")
    world.placement.create_provider("called otherwise", uuid=uuid)
    world.run()
    assert (world.traits(uuid), world.inventories(uuid)) == ({"CUSTOM_A"}, gold())
    world.nodes.call("DELETE", "/v1/nodes/n1")
    assert world.run().removed == {uuid}


def test_a_provider_in_use_is_kept_until_it_is_free(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    uuid, instance = world.enrol("n1"), new_uuid()
    world.run()
    world.claim(uuid, instance)
    world.nodes.call("DELETE", "/v1/nodes/n1")
    tally = world.run()
    assert (tally.removed, tally.failed) == (set(), {uuid})
    assert uuid in caplog.text
    world.placement.delete(f"/allocations/{instance}", version="1.0")
    # Until the next pass nothing else gets the node.
    assert world.candidates(f"resources={GOLD}:1") == set()
    assert world.run().removed == {uuid}


def test_a_class_in_use_is_kept_and_traits_follow(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    uuid = world.enrol("n1", "CUSTOM_A")
    world.run()
    world.claim(uuid, new_uuid())
    world.nodes.change("n1", resource_class="silver")
    world.nodes.set_traits("n1", ["CUSTOM_B"])
    tally = world.run()
    assert tally.failed == {uuid}
    assert "the old inventory is kept" in caplog.text
    assert (world.inventories(uuid), world.traits(uuid)) == (gold(), {"CUSTOM_B"})


def test_a_standard_trait_that_placement_does_not_know_is_left_out(
    world: World, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    uuid = world.enrol("n1", "CUSTOM_A", "HW_CPU_X86_VMX")
    trait = placement_models.Trait
    older = sa.delete(trait).where(trait.name == "HW_CPU_X86_VMX")
    database.write(lambda connection: connection.execute(older))
    for changed in ({uuid}, set()):
        caplog.clear()
        tally = world.run()
        assert (tally.failed, tally.changed) == ({uuid}, changed)
        assert "HW_CPU_X86_VMX, because its os-traits is older" in caplog.text
        assert world.traits(uuid) == {"CUSTOM_A"}


def test_all_pages_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement_nodes.schemas.query.MOST", 2)
    expected = {world.enrol(f"n{number}") for number in range(5)}
    assert world.run().synchronised == expected
    assert world.nodes_service.lines == ["GET /v1/nodes"] * 3


def test_one_node_is_copied_alone(world: World) -> None:
    one, two = world.enrol("n1"), world.enrol("n2")
    assert world.run(node="n1").synchronised == {one}
    assert world.run(node=two).synchronised == {two}
    world.nodes.call("DELETE", "/v1/nodes/n1")
    world.nodes.call("DELETE", "/v1/nodes/n2")
    assert world.run(node=two).removed == {two}
    assert world.placement.get_provider(one).uuid == one
    assert world.run(node="n9").failed == {"n9"}


def test_a_dry_run_prints_and_does_nothing(world: World) -> None:
    gone, _ = world.enrol("n1"), world.enrol("n3")
    world.run()
    uuid = world.enrol("n2", "CUSTOM_A")
    world.nodes.call("DELETE", "/v1/nodes/n1")
    before = world.state.read_text()
    world.run(dry=True)
    assert world.writes() == []
    assert world.said == [
        f"{uuid}: create the provider {uuid}",
        f"{uuid}: make sure of the resource class {GOLD}",
        f"{uuid}: set the inventory to one {GOLD}",
        f"{uuid}: make sure of the trait CUSTOM_A",
        f"{uuid}: set the traits to CUSTOM_A",
        f"{gone}: the node is gone, delete the provider",
    ]
    assert world.state.read_text() == before
    world.run()
    assert world.placement.list_providers(uuid=gone) == []


@dataclasses.dataclass(slots=True)
class Trouble:
    """A proxy between the agent and Placement.

    ``strike`` gets each request before Placement does. It answers with a status line,
    or lets the request through.
    """

    application: "WSGIApplication"
    strike: Middle

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        status = self.strike(environ)
        if status is None:
            return self.application(environ, start_response)
        error = {"status": int(status[:3]), "detail": "trouble", "code": ""}
        body = json.dumps({"errors": [error]}).encode()
        start_response(status, [("Content-Length", str(len(body)))])
        return [body]


def line(environ: "WSGIEnvironment") -> str:
    return f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"


def test_one_failing_node_does_not_hold_up_the_others(
    world: World, application: "WSGIApplication", caplog: pytest.LogCaptureFixture
) -> None:
    uuids = [world.enrol(f"n{number}") for number in range(9)]
    refused, broken = {uuids[0]}, set(uuids[1::2])

    def strike(environ: "WSGIEnvironment") -> str | None:
        method, path = line(environ).split()
        uuid = path.split("/")[2] if path.endswith("/inventories") else None
        if method == "PUT" and uuid in refused:
            return "400 Bad Request"
        if method == "PUT" and uuid in broken:
            return "500 Internal Server Error"
        return None

    with serving(Trouble(application, strike)) as served:
        tally = world.run(url=served.url)
    assert tally.failed == refused | broken
    assert tally.unanswered == broken
    assert tally.synchronised == set(uuids) - tally.failed
    assert all(uuid in caplog.text for uuid in refused)
    assert world.run().failed == set()


def test_nodes_that_get_no_answer_do_not_hold_up_the_others_for_ever(
    world: World, application: "WSGIApplication"
) -> None:
    uuids = [world.enrol(f"n{number}") for number in range(9)]
    broken = set(uuids[:6])

    def strike(environ: "WSGIEnvironment") -> str | None:
        fails = line(environ).split("/")[2:3] and line(environ).split("/")[2] in broken
        return "500 Internal Server Error" if fails else None

    with (
        serving(Trouble(application, strike)) as served,
        world.agent(url=served.url) as agent,
    ):
        for _ in range(2):
            assert agent.synchronise_all().unanswered == set(uuids)
        tally = agent.synchronise_all()
    assert (tally.synchronised, tally.unanswered) == (set(uuids) - broken, broken)


def test_nodes_left_when_the_agent_is_stopped_have_failed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    uuids = {world.enrol(f"n{number}") for number in range(3)}
    with world.agent(stopped=lambda: bool(world.said)) as agent:
        tally = agent.synchronise_all()
    assert len(tally.synchronised) == 1
    assert tally.failed == uuids - tally.synchronised
    assert "stopped: 2 nodes wait for the next pass" in caplog.text


def test_a_node_that_may_be_gone_and_cannot_be_read_is_left(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    uuid = world.enrol("n1")
    world.enrol("n2")
    world.run()

    class Unread(BareMetal):
        def list_nodes(self) -> list[dict[str, Any]]:
            return [each for each in super().list_nodes() if each["uuid"] != uuid]

        def find_node(self, ident: str) -> None:
            raise Unreadable("the node service answered 503")

    with world.agent(Unread) as agent:
        tally = agent.synchronise_all()
    assert tally.failed == {uuid}
    assert world.placement.get_provider(uuid).uuid == uuid
    assert "answered 503" in caplog.text
    assert "Traceback" not in caplog.text


def test_a_node_that_is_there_again_says_nothing_about_placement(world: World) -> None:
    world.enrol("n1")
    world.run()

    class Late(BareMetal):
        def list_nodes(self) -> list[dict[str, Any]]:
            return []

    heard: list[str] = []
    caution = Caution(expected=True)
    with world.agent(Late, heard=heard.append, caution=caution) as agent:
        assert agent.synchronise_all().held
        heard.clear()
        assert not agent.synchronise_all().held
    assert heard == ["nodes"]


@pytest.mark.parametrize("spell", [str.upper, lambda uuid: uuid.replace("-", "")])
def test_a_node_with_its_uuid_in_another_spelling_is_copied(
    world: World, spell: Callable[[str], str]
) -> None:
    uuid = world.enrol("n1", uuid="abcdef11-0000-4000-8000-00000000000a")

    class Odd(BareMetal):
        def list_nodes(self) -> list[dict[str, Any]]:
            return [{**node, "uuid": spell(uuid)} for node in super().list_nodes()]

        def find_node(self, ident: str) -> dict[str, Any] | None:
            # As Ironic finds it.
            nodes = self.list_nodes()
            return next((each for each in nodes if each["uuid"] == ident), None)

    with world.agent(Odd) as agent:
        assert agent.synchronise_all().synchronised == {uuid}
        tally = agent.synchronise_all()
        assert (tally.synchronised, tally.changed) == ({uuid}, set())
        assert agent.synchronise_one(uuid).synchronised == {uuid}
        assert world.inventories(uuid) == gold()
        assert Memory(world.state).providers == {uuid}
        world.nodes.call("DELETE", "/v1/nodes/n1")
        assert agent.synchronise_one(spell(uuid)).removed == {uuid}


def test_after_a_lost_race_the_node_is_tried_again(
    world: World, application: "WSGIApplication"
) -> None:
    uuid = world.enrol("n1", "CUSTOM_A")
    met: list[str] = []

    def strike(environ: "WSGIEnvironment") -> None:
        asked = line(environ)
        for last in ("inventories", "traits"):
            path = f"/resource_providers/{uuid}/{last}"
            if asked == f"PUT {path}" and last not in met:
                # Another client is faster.
                met.append(last)
                world.placement.change(uuid, AGGREGATES, lambda _: {new_uuid()})

    with serving(Trouble(application, strike)) as served:
        assert world.run(url=served.url).synchronised == {uuid}
    assert met == ["inventories", "traits"]
    assert (world.traits(uuid), world.inventories(uuid)) == ({"CUSTOM_A"}, gold())


def test_a_node_fails_after_repeatedly_lost_races(
    world: World, application: "WSGIApplication"
) -> None:
    uuid, other = world.enrol("n1", "CUSTOM_A"), world.enrol("n2")
    attempts = []

    def strike(environ: "WSGIEnvironment") -> None:
        if line(environ) == f"PUT /resource_providers/{uuid}/traits":
            attempts.append(1)
            world.placement.change(uuid, AGGREGATES, lambda _: {new_uuid()})

    with serving(Trouble(application, strike)) as served:
        tally = world.run(url=served.url)
    assert (tally.failed, tally.synchronised) == ({uuid}, {other})
    assert len(attempts) == 5


def test_a_provider_that_appears_meanwhile_is_used(
    world: World, application: "WSGIApplication"
) -> None:
    uuid = world.enrol("n1", "CUSTOM_A")
    met: list[int] = []

    def strike(environ: "WSGIEnvironment") -> None:
        if line(environ) == "POST /resource_providers" and not met:
            met.append(1)
            world.placement.create_provider(uuid, uuid=uuid)

    with serving(Trouble(application, strike)) as served:
        assert world.run(url=served.url).synchronised == {uuid}
    assert (world.traits(uuid), world.inventories(uuid)) == ({"CUSTOM_A"}, gold())


def test_changes_held_up_by_an_outage_of_placement_come_later(
    world: World, application: "WSGIApplication"
) -> None:
    uuids = {world.enrol(f"n{number}", "CUSTOM_A") for number in range(5)}
    asked = []

    def strike(environ: "WSGIEnvironment") -> str:
        asked.append(line(environ))
        return "503 Service Unavailable"

    with serving(Trouble(application, strike)) as served:
        tally = world.run(url=served.url)
    assert tally.failed == tally.unanswered == uuids
    # After three requests without an answer, there is no fourth.
    assert len(asked) == 3
    world.nodes.call("DELETE", "/v1/nodes/n0")
    assert len(world.run().synchronised) == 4
    assert world.run().changed == set()


class Crash(BaseException):
    """The agent has crashed."""


def crash_before(world: World, write: int) -> None:
    """Let an agent run, and crash before its write with a given number."""
    said = []

    def say(text: str) -> None:
        said.append(text)
        if len(said) == write:
            raise Crash

    with world.agent(say=say) as agent, pytest.raises(Crash):
        agent.synchronise_all()


@pytest.mark.parametrize("write", [1, 3, 6])
def test_work_cut_short_by_a_crash_is_done_later(world: World, write: int) -> None:
    uuid = world.enrol("n1", "CUSTOM_A", "CUSTOM_B")
    crash_before(world, write)
    world.run()
    assert world.inventories(uuid) == gold()
    assert world.traits(uuid) == {"CUSTOM_A", "CUSTOM_B"}


@pytest.mark.parametrize("write", [1, 2, 6])
def test_a_provider_left_by_a_crash_still_belongs_to_the_agent(
    world: World, write: int
) -> None:
    uuid = world.enrol("n1", "CUSTOM_A", "CUSTOM_B")
    crash_before(world, write)
    world.nodes.call("DELETE", "/v1/nodes/n1")
    assert world.run().removed == {uuid}
    assert world.placement.list_providers() == []


def test_nothing_is_removed_when_nodes_cannot_be_read(world: World) -> None:
    uuid = world.enrol("n1")
    world.run()
    for strike in (
        lambda environ: "503 Service Unavailable",
        lambda environ: "200 OK",
        lambda environ: "404 Not Found",
    ):
        with serving(Trouble(serving_nothing, strike)) as served:
            broken = dataclasses.replace(world, nodes_service=served)
            with pytest.raises(Unreadable):
                broken.run()
    assert world.service.calls == []
    assert world.placement.get_provider(uuid).uuid == uuid


def serving_nothing(
    environ: "WSGIEnvironment", start_response: "StartResponse"
) -> Iterable[bytes]:
    raise AssertionError


def test_a_provider_whose_node_has_come_back_is_not_removed(world: World) -> None:
    uuid = world.enrol("n1")
    world.run()

    class Forgetful(BareMetal):
        def list_nodes(self) -> list[dict[str, Any]]:
            return []

    with world.agent(Forgetful) as agent:
        tally = agent.synchronise_all()
    assert tally.removed == set()
    assert world.placement.get_provider(uuid).uuid == uuid


def test_a_node_is_not_gone_because_another_service_does_not_have_it(
    world: World,
) -> None:
    uuid = world.enrol("n1")
    world.run()
    # Placement is not where the nodes are.
    elsewhere = dataclasses.replace(world, nodes_service=world.service)
    with elsewhere.agent() as agent, pytest.raises(Unreadable, match="404"):
        agent.synchronise_one(uuid)
    assert world.placement.get_provider(uuid).uuid == uuid


def test_nodes_that_cannot_be_parsed_fail_alone(world: World) -> None:
    uuid = world.enrol("n1")

    class Odd(BareMetal):
        def list_nodes(self) -> list[dict[str, Any]]:
            good = super().list_nodes()
            # A name in place of the list would be a list of letters.
            strange = {**good[0], "uuid": str(UUID(int=1)), "traits": "CUSTOM_A"}
            return [{}, {"uuid": "odd", "resource_class": 1}, strange, *good]

    with world.agent(Odd) as agent:
        tally = agent.synchronise_all()
    assert tally.synchronised == {uuid}
    assert tally.failed == {"None", "odd", str(UUID(int=1))}


def test_a_provider_is_not_gone_because_another_service_does_not_have_it(
    world: World, application: "WSGIApplication"
) -> None:
    uuid = world.enrol("n1")
    world.run()
    world.nodes.call("DELETE", "/v1/nodes/n1")

    refused = {"GET", "DELETE"}

    def strike(environ: "WSGIEnvironment") -> str | None:
        return "404 Not Found" if environ["REQUEST_METHOD"] in refused else None

    with serving(Trouble(application, strike)) as served:
        assert world.run(url=served.url).failed == {uuid}
        refused.remove("GET")
        assert world.run(url=served.url).failed == {uuid}
    assert world.run().removed == {uuid}
    assert world.placement.list_providers() == []


def test_a_provider_that_is_gone_already_is_forgotten(world: World) -> None:
    uuid = world.enrol("n1")
    world.run()
    world.nodes.call("DELETE", "/v1/nodes/n1")
    world.placement.delete(f"/resource_providers/{uuid}", version="1.23")
    assert world.run().removed == {uuid}
    assert Memory(world.state).providers == set()


def test_new_nodes_that_cannot_be_remembered_do_not_hold_up_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    known = world.enrol("n1")
    world.run()
    new = world.enrol("n2")
    world.nodes.set_traits("n1", ["CUSTOM_A"])

    def refuse(*_: object) -> None:
        raise memory.Unusable("there is no room")

    with monkeypatch.context() as patched:
        patched.setattr(memory, "_write", refuse)
        tally = world.run()
    assert (tally.synchronised, tally.failed) == ({known}, {new})
    assert world.traits(known) == {"CUSTOM_A"}
    assert world.placement.list_providers(uuid=new) == []
    assert "1 new nodes wait for the next pass: there is no room" in caplog.text
    assert world.run().synchronised == {known, new}


def test_a_list_that_does_not_end_is_unreadable(world: World) -> None:
    class Endless:
        def __call__(
            self, environ: "WSGIEnvironment", start_response: "StartResponse"
        ) -> Iterable[bytes]:
            start_response("200 OK", [("Content-Type", "application/json")])
            link = "http://elsewhere/v1/nodes?limit=1&marker=1"
            return [json.dumps({"nodes": [], "next": link}).encode()]

    with serving(Endless()) as served:
        nodes = BareMetal(access.from_environment({}, url=served.url))
        with pytest.raises(Unreadable, match="does not end"):
            nodes.list_nodes()


@pytest.mark.parametrize(
    "document",
    [
        {"nodes": ["a"]},
        {"nodes": [], "next": 5},
        {"nodes": [], "next": ["a"]},
        {"nodes": [], "next": "http://[elsewhere/v1/nodes?marker=1"},
        # It would end the list too early.
        {"nodes": [], "next": "http://elsewhere/v1/nodes"},
    ],
)
def test_an_answer_that_is_not_a_list_of_nodes_is_unreadable(document: Any) -> None:
    def answer(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(document).encode()]

    with serving(answer) as served:
        nodes = BareMetal(access.from_environment({}, url=served.url))
        with pytest.raises(Unreadable, match="list of"):
            nodes.list_nodes()


def test_two_agents_do_not_share_a_memory(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state"
    with memory.opened(path) as remembered:
        remembered.add(["b", "a"])
        with pytest.raises(memory.Unusable, match="another agent"):
            memory.opened(path).__enter__()
    with memory.opened(path) as remembered:
        assert remembered.providers == {"a", "b"}
        remembered.forget(["a", "c"])
    assert Memory(path).providers == {"b"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[]", "was not written by this agent"),
        ("{}", "was not written by this agent"),
        ('{"version": 2, "providers": []}', "was written by a newer agent"),
    ],
)
def test_a_memory_that_cannot_be_parsed_is_not_used(
    tmp_path: Path, text: str, fault: str
) -> None:
    path = tmp_path / "state"
    path.write_text(text)
    with pytest.raises(memory.Unusable, match=fault), memory.opened(path):
        pass
    assert path.read_text() == text


def test_many_providers_are_removed_only_after_a_quiet_time(world: World) -> None:
    uuids = {world.enrol(f"n{number}") for number in range(6)}
    world.run()
    time = [1000.0]

    def make_pass(lacking: set[str], **caution: Any) -> Tally:
        nodes = world.bare_metal()
        listed = [each for each in nodes.list_nodes() if each["uuid"] not in lacking]
        nodes.list_nodes = lambda: listed  # type: ignore[method-assign]
        nodes.find_node = lambda ident: None  # type: ignore[method-assign]
        with memory.opened(world.state) as remembered:
            agent = Agent(
                nodes,
                world.placement,
                remembered,
                caution=Caution(quiet=600, **caution),
                clock=lambda: time[0],
            )
            return agent.synchronise_all()

    for lacking in (uuids, set(sorted(uuids)[:4])):
        for _ in range(2):
            tally = make_pass(lacking)
            assert (tally.removed, tally.held) == (set(), lacking)
            assert lacking <= tally.failed
            time[0] += 200
        # A node that is there again has not been missing for long.
        assert make_pass(set()).held == set()
    assert make_pass(lacking, expected=True).held == lacking
    time[0] += 599
    assert make_pass(lacking).held == lacking
    time[0] += 1
    assert make_pass(lacking).removed == lacking
    left = uuids - lacking
    # All that are left, however few.
    assert make_pass(left).held == left
    assert make_pass(left, expected=True).removed == left


def test_a_few_providers_are_removed_at_once(world: World) -> None:
    uuids = [world.enrol(f"n{number}") for number in range(4)]
    world.run()
    for name in ("n0", "n1", "n2"):
        world.nodes.call("DELETE", f"/v1/nodes/{name}")
    with world.agent() as agent:
        tally = agent.synchronise_all()
    assert (tally.removed, tally.held) == (set(uuids[:3]), set())
