"""A service of our own to put under stress."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import programs


@contextmanager
def running(database: str, workers: int, directory: Path) -> Iterator[str]:
    """Run the service on a database, and give its address.

    Its output goes to the file ``service.log`` in the directory.
    """
    variables = {
        **programs.environment(directory, database),
        "OS_API__AUTH_STRATEGY": "noauth2",
        "OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP": "true",
    }
    with programs.serving(
        "placement.cmd.api",
        *("--workers", str(workers)),
        home=directory,
        variables=variables,
    ) as url:
        yield url
