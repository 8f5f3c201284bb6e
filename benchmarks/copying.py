"""How long copies of a cloud take: ``python -m benchmarks.copying --help``.

The demonstration cloud is made in one database, exported, and imported into the next
one, from kind to kind. Each command is a process of its own, whose time and largest
memory are printed. After each import, ``placement-manage check`` looks at the copy.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

KIB = 1024
SERVERS = {
    "postgresql": "postgresql+psycopg://postgres@127.0.0.1/postgres",
    "mysql": "mysql+pymysql://root@127.0.0.1/mysql",
}
WAY = ("sqlite", "postgresql", "mysql", "sqlite")


def main() -> int:
    """Copy a cloud from database to database, and print the figures."""
    asked = _parse()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(_database(asked.way[0], asked, directory))
        _run(url, "demo", "--hosts", str(asked.hosts))
        for number, kind in enumerate(asked.way[1:]):
            copy = directory / f"{number}.copy"
            _run(url, "export", str(copy))
            print(f"{'':12} {copy.stat().st_size / KIB / KIB:8.1f} MiB in the file")
            url = stack.enter_context(_database(kind, asked, directory))
            _run(url, "import", str(copy))
            _run(url, "check")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.copying", description=__doc__
    )
    parser.add_argument("--hosts", type=int, default=100_000, help="%(default)s")
    parser.add_argument(
        "--way",
        nargs="+",
        choices=["sqlite", *SERVERS],
        default=WAY,
        help="the kinds of databases, one after the other",
    )
    for kind, url in SERVERS.items():
        parser.add_argument(
            f"--{kind}",
            default=url,
            metavar="URL",
            help="a database on a server, on which another is created (%(default)s)",
        )
    return parser.parse_args()


@contextlib.contextmanager
def _database(kind: str, asked: argparse.Namespace, directory: Path) -> Iterator[str]:
    """Yield the URL of a new database, and remove it afterwards."""
    name = f"placement_benchmark_{uuid.uuid4().hex}"
    if kind == "sqlite":
        yield f"sqlite:///{directory / name}.db"
        return
    server = sa.create_engine(getattr(asked, kind), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    try:
        yield server.url.set(database=name).render_as_string(False)
    finally:
        force = " WITH (FORCE)" if kind == "postgresql" else ""
        with server.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name}{force}"))
        server.dispose()


def _run(url: str, *command: str) -> None:
    """Run ``placement-manage`` on a database, and print what it takes.

    :raises CalledProcessError: it fails
    """
    if command[0] == "demo":
        _run(url, "db", "sync")
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "placement.cmd.manage", *command],
        env={**os.environ, "OS_PLACEMENT_DATABASE__CONNECTION": url},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    printed = process.stdout.read().strip()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    kind = url.partition(":")[0].partition("+")[0]
    mebibytes = usage.ru_maxrss / KIB
    what = f"{kind:12} {command[0]:8} {seconds:8.1f} s {mebibytes:8.0f} MiB"
    print(f"{what}  {printed.splitlines()[-1] if printed else ''}", flush=True)
    if status:
        raise subprocess.CalledProcessError(status, command, printed)


if __name__ == "__main__":
    sys.exit(main())
