"""How long declared hardware takes: ``python -m benchmarks.declaring --help``.

Hosts of three classes and twenty traits are declared in one request: a dry run on an
empty cloud, applied, a dry run in which nothing differs, and applied once more. Over
HTTP, on PostgreSQL.
"""

import argparse
import http.client
import json
import sys
import time
from typing import Any

from benchmarks import client, placing
from benchmarks.cloud import uuid_of

PATH = "/ledger/v1/apply"
TRAITS = tuple(f"CUSTOM_TRAIT_{number}" for number in range(20))
INVENTORIES = {"VCPU": 64, "MEMORY_MB": 262_144, "CUSTOM_FPGA": 4}


def main() -> int:
    """Declare the hosts, and print how long each request took."""
    options = _parse()
    trees = [
        {
            "name": f"compute-{number}",
            "uuid": uuid_of(f"compute-{number}"),
            "inventories": INVENTORIES,
            "traits": TRAITS,
        }
        for number in range(options.hosts)
    ]
    with (
        placing.planted(options.server, 0) as url,
        client.serving(url, workers=1) as port,
    ):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for what, dry_run, expected in (
            ("dry run, all are new", True, "created"),
            ("create", False, "created"),
            ("dry run, nothing differs", True, "unchanged"),
            ("dry run, once more", True, "unchanged"),
            ("apply, nothing differs", False, "unchanged"),
        ):
            body: Any = {"owner": "fleet", "trees": trees, "dry_run": dry_run}
            begun = time.monotonic()
            status, document = client.ask_over(connection, "POST", PATH, body)
            elapsed = time.monotonic() - begun
            results = {each["result"] for each in json.loads(document)["trees"]}
            if (status, results) != (200, {expected}):
                raise RuntimeError(f"{what}: {status}, {results}")
            print(f"{what:26}{elapsed:6.1f} s for {options.hosts} hosts", flush=True)
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.declaring", description=__doc__
    )
    parser.add_argument("--hosts", type=int, default=10_000, help="%(default)s")
    parser.add_argument("--server", default=placing.SERVER, help="URL of PostgreSQL")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
