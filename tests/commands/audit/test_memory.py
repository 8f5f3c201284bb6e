"""Memory does not grow with the cloud."""

import json
import tracemalloc
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from placement_clients.audit import cli
from tests.serving import serving

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

pytestmark = [pytest.mark.embedded, pytest.mark.lengthy]

FEW, MANY = 1_000, 6_000
ALLOWED_BYTES = 1_000_000


def consumers(count: int) -> Iterator[str]:
    for number in range(count):
        yield str(uuid.UUID(int=number))


def lines_of(count: int) -> Iterator[bytes]:
    """Yield the fleet: a host for each consumer."""
    for number, consumer in enumerate(consumers(count)):
        provider = str(uuid.UUID(int=(1 << 64) + number))
        owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
        held = {"resources": {"VCPU": 1}, **owner, "created_at": None}
        document: Any = {
            "uuid": provider,
            "name": f"compute-{number}",
            "parent_provider_uuid": None,
            "root_provider_uuid": provider,
            "traits": [],
            "allocations": {consumer: held},
        }
        yield json.dumps(document).encode() + b"\n"


def peak_of(count: int, directory: Path) -> int:
    """Return how much memory an audit takes at most."""

    def placement(
        environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "application/x-ndjson")])
        return lines_of(count)

    alive = directory / "alive.ndjson"
    with alive.open("w") as file:
        for consumer in consumers(count):
            print(json.dumps({"uuid": consumer, "resources": {"VCPU": 1}}), file=file)
    with serving(placement) as served:
        arguments = ["--alive", str(alive), "--url", served.url, "--token", "x"]
        tracemalloc.start()
        try:
            assert cli.main(arguments) == cli.NOTHING
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def test_memory_does_not_grow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first one loads modules.
    peak_of(10, tmp_path)
    few, many = peak_of(FEW, tmp_path), peak_of(MANY, tmp_path)
    assert f"claims: {MANY}, consumers that live: {MANY}" in capsys.readouterr().out
    assert many < few + ALLOWED_BYTES
