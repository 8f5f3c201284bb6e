"""The command line of the stress program."""

import argparse
import contextlib
import random
import sys
import tempfile
from pathlib import Path

from tests.stress import run, service


def main() -> int:
    """Put a service under stress; return 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--url", help="address of a service that runs, with noauth2")
    where.add_argument(
        "--database", help="URL of a database on which to start a service"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes that serve")
    parser.add_argument("--processes", type=int, default=4, help="processes that ask")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    with contextlib.ExitStack() as stack:
        url = asked.url
        if url is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            url = stack.enter_context(
                service.running(asked.database, asked.workers, directory)
            )
        verdict = run.stress([url], asked.processes, asked.seconds, asked.seed)
    for (kind, status), number in sorted(verdict.done.items()):
        print(f"{number:8} {kind} {status}")
    for fault in verdict.faults:
        print(f"WRONG: {fault}", file=sys.stderr)
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main())
