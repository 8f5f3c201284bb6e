"""The agent as a process that runs on while a service it needs does not work."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import programs
from tests.nodes.test_agent import Trouble
from tests.nodes.world import World
from tests.serving import serving

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

pytestmark = pytest.mark.lengthy

SYNC = "placement_nodes.cmd.nodes_sync"
NODES = [f"n{number}" for number in range(4)]


def fail(environ: "WSGIEnvironment") -> str:
    return "500 Internal Server Error"


def hang_up(environ: "WSGIEnvironment") -> str:
    # The server closes the connection without an answer.
    raise ConnectionAbortedError


def served_badly(
    strike: Callable[["WSGIEnvironment"], str],
) -> Callable[["WSGIApplication", int], AbstractContextManager[Any]]:
    return lambda application, port: serving(Trouble(application, strike), port)


# What is at the port of a service meanwhile, and what the log says of it.
OUTAGES: dict[
    str, tuple[Callable[["WSGIApplication", int], AbstractContextManager[Any]], str]
] = {
    "it is away": (lambda application, port: nullcontext(), "Connection refused"),
    "it answers 500": (served_badly(fail), "HTTP 500"),
    "it hangs up": (served_badly(hang_up), "closed connection without response"),
}


def agent(home: Path, nodes: str, placement: str) -> programs.Program:
    urls = ["--nodes-url", nodes, "--placement-url", placement]
    words = ["--interval", "1", *urls, "--placement-token", "admin"]
    return programs.start(SYNC, *words, home=home)


@pytest.mark.parametrize("outage", OUTAGES)
def test_the_agent_goes_on_by_itself_when_placement_does(
    world: World, application: "WSGIApplication", tmp_path: Path, outage: str
) -> None:
    uuids = [world.enrol(name, "CUSTOM_BEFORE") for name in NODES]
    meanwhile, reason = OUTAGES[outage]
    port = programs.free_port()
    url = f"http://127.0.0.1:{port}"
    with agent(tmp_path, world.nodes_service.url, url) as process:
        assert process.stderr
        log = iter(process.stderr.readline, "")
        with serving(application, port):
            programs.read_until(log, "4 synchronised")
        with meanwhile(application, port):
            for name in NODES:
                world.nodes.set_traits(name, ["CUSTOM_AFTER"])
            for _ in range(2):
                programs.read_until(log, "Placement cannot be reached", reason)
                programs.read_until(log, "Placement does not answer: 4 nodes wait")
        with serving(application, port):
            programs.read_until(log, "4 synchronised", "0 unanswered")
        assert [world.traits(uuid) for uuid in uuids] == [{"CUSTOM_AFTER"}] * 4
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.parametrize("outage", OUTAGES)
def test_the_agent_goes_on_by_itself_when_the_nodes_can_be_read(
    world: World,
    nodes_application: "WSGIApplication",
    tmp_path: Path,
    outage: str,
) -> None:
    uuid = world.enrol("n1", "CUSTOM_BEFORE")
    meanwhile, _ = OUTAGES[outage]
    port = programs.free_port()
    url = f"http://127.0.0.1:{port}"
    with agent(tmp_path, url, world.service.url) as process:
        assert process.stderr
        log = iter(process.stderr.readline, "")
        with serving(nodes_application, port):
            programs.read_until(log, "1 synchronised")
        with meanwhile(nodes_application, port):
            world.nodes.set_traits("n1", ["CUSTOM_AFTER"])
            for _ in range(2):
                programs.read_until(log, "this pass is skipped, the next is in 1 s")
        assert world.traits(uuid) == {"CUSTOM_BEFORE"}
        with serving(nodes_application, port):
            programs.read_until(log, "1 synchronised", "1 changed")
        assert world.traits(uuid) == {"CUSTOM_AFTER"}
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0
