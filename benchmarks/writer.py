"""Another process that claims on a random host at each line of its input."""

import contextlib
import random
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator

from benchmarks import client
from benchmarks.cloud import uuid_of
from placement_foundation import option
from placement_foundation.database import storage

# A class that the hosts of each kind have themselves.
TAKEN = {"flat": "VCPU", "own": "VCPU", "shared": "VCPU", "nested": "DISK_GB"}


@contextlib.contextmanager
def writing(url: str, kind: str, hosts: int) -> Iterator[Callable[[], None]]:
    """Yield a function that makes the process write once, and waits for it."""
    command = [sys.executable, "-m", "benchmarks.writer", url, kind, str(hosts)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        commands, answers = process.stdin, process.stdout

        def write() -> None:
            print("write", file=commands, flush=True)
            if answers.readline() != "204\n":
                raise SystemExit("the writer was refused")

        yield write
        commands.close()


def main() -> None:
    """Claim one unit on a random host for each line that is read."""
    url, kind, hosts = sys.argv[1:]
    send = client.in_process(storage.connect(option.DatabaseSettings(url)), keeps=False)
    rng = random.Random(1)
    for _ in sys.stdin:
        host = uuid_of(f"host{rng.randrange(int(hosts))}")
        body = claim(host, {TAKEN.get(kind, "VCPU"): 1})
        print(send("PUT", f"/allocations/{uuid.uuid4()}", body)[0], flush=True)


def claim(provider: str, resources: dict[str, int]) -> dict[str, object]:
    """Return the body of a claim by a new consumer."""
    return {
        "allocations": {provider: {"resources": resources}},
        "project_id": "writers",
        "user_id": "writer",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }


if __name__ == "__main__":
    main()
