"""A service of our own to put under stress."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import programs


@contextmanager
def running(database: str, workers: int, directory: Path) -> Iterator[str]:
    """Run the service on a database, and give its address: see ``running_as``."""
    with running_as(database, workers, directory) as (url, _):
        yield url


@contextmanager
def running_as(
    database: str, workers: int, directory: Path
) -> Iterator[tuple[str, int]]:
    """Run the service on a database; give its address and the id of its first process.

    Its output goes to the file ``service.log`` in the directory.
    """
    variables = {
        **programs.environment(directory, database),
        "OS_API__AUTH_STRATEGY": "noauth2",
        "OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP": "true",
    }
    with programs.serving_as(
        "placement.cmd.api",
        *("--workers", str(workers)),
        home=directory,
        variables=variables,
    ) as served:
        yield served
