"""How long passes over bare metal nodes take: ``python -m benchmarks.bare_metal``.

The agent copies nodes to a Placement on PostgreSQL, each a program of its own: all
nodes are new, then unchanged, then changed (another trait, and under maintenance), then
gone.
"""

import argparse
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from benchmarks import client
from benchmarks.placing import SERVER, planted

STATES = ("new", "unchanged", "changed", "gone")
PAGE = 500
AGENT = (
    "import sys; from placement_nodes.cmd import nodes_sync as a; sys.exit(a.main())"
)


def main() -> int:
    """Run the passes of the agent, and print the time of each."""
    options = _parse()
    with (
        tempfile.TemporaryDirectory() as directory,
        planted(options.server, 0) as url,
        client.serving(url, options.workers) as port,
        Nodes(options.nodes) as nodes,
    ):
        threading.Thread(target=nodes.serve_forever, daemon=True).start()
        words = [
            "--once",
            f"--nodes-url=http://127.0.0.1:{nodes.server_port}",
            f"--placement-url=http://127.0.0.1:{port}",
            "--placement-token=admin",
        ]
        print(f"{options.nodes} nodes    seconds    of the agent's processor")
        for state in STATES:
            nodes.state = state
            elapsed, used = _run(words, Path(directory), options.parallel)
            print(f"{state:14}{elapsed:8.1f}{used:11.1f}", flush=True)
        nodes.shutdown()
    return 0


def _run(words: list[str], directory: Path, parallel: int) -> tuple[float, float]:
    """Return the elapsed time of a pass, and the processor time of the agent."""
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(directory),
        "OS_SYNC__PARALLEL": str(parallel),
    }
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", AGENT, *words],
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit("the agent failed")
    return time.perf_counter() - begun, usage.ru_utime + usage.ru_stime


class Nodes(http.server.ThreadingHTTPServer):
    """A node service with a number of nodes, all in one state."""

    def __init__(self, count: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._uuids = [str(uuid.UUID(int=number + 1)) for number in range(count)]
        self.state = STATES[0]

    def document(self, address: str) -> dict[str, Any] | None:
        """Return the document at an address, None if there is none."""
        split = urlsplit(address)
        if self.state == "gone":
            return {"nodes": []} if split.path == "/v1/nodes" else None
        (marker,) = parse_qs(split.query).get("marker", [""])
        first = self._uuids.index(marker) + 1 if marker else 0
        page = self._uuids[first : first + PAGE]
        document: dict[str, Any] = {"nodes": [self._node(each) for each in page]}
        if first + PAGE < len(self._uuids):
            document["next"] = f"http://nodes/v1/nodes?marker={page[-1]}"
        return document

    def _node(self, identifier: str) -> dict[str, Any]:
        changed = self.state == "changed"
        return {
            "uuid": identifier,
            "power_state": "power off",
            "target_power_state": None,
            "provision_state": "available",
            "target_provision_state": None,
            "last_error": None,
            "maintenance": changed,
            "properties": {},
            "instance_uuid": None,
            "traits": ["CUSTOM_RAID", *(["HW_CPU_X86_VMX"] if changed else [])],
            "resource_class": "baremetal.gold",
        }


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Nodes

    def do_GET(self) -> None:
        """Answer with a page of nodes."""
        document = self.server.document(self.path)
        body = json.dumps(document or {}).encode()
        self.send_response(404 if document is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--parallel", type=int, default=8, help="[sync] parallel")
    parser.add_argument("--workers", type=int, default=2, help="of Placement")
    parser.add_argument("--server", default=SERVER, help="URL of PostgreSQL")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
