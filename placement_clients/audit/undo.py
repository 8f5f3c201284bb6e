"""The undo file, by which released claims are restored: lines of JSON.

Each line is on the disk before its claim is released, so it is complete whatever
happens. A last line without an end belongs to a claim that was not touched.
"""

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from placement_clients.output import Unusable, read_text
from placement_clients.record import Json

HEADER = {"program": "placement-audit", "content": "undo", "format": 1}
MEMBERS = ("consumer", "allocations", "project_id", "user_id")


@contextlib.contextmanager
def created(path: Path) -> Iterator[Callable[[str, Json], None]]:
    """Create a file, and give a function that writes a line about a consumer.

    It takes the body of ``PUT /allocations/{consumer}``, without a generation.

    :raises OSError: the file exists, or cannot be written
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    def write(document: Json) -> None:
        file.write(json.dumps(document) + "\n")
        file.flush()
        os.fsync(file.fileno())

    with os.fdopen(handle, "w", encoding="utf-8") as file:
        write(HEADER)
        yield lambda consumer, body: write({"consumer": consumer, **body})


def read(path: Path) -> Iterator[tuple[str, Json]]:
    """Yield each consumer of a file, and the body that claims the same again.

    :raises Unusable: it is no such file
    """
    lines = io.StringIO(read_text(path))
    if _parse(path, 1, lines.readline()) != HEADER:
        raise Unusable(f"{path}:1: this was not written by placement-audit")
    for number, line in enumerate(lines, 2):
        if not line.endswith("\n"):
            return
        document = _parse(path, number, line)
        if not (isinstance(document, dict) and document.keys() >= set(MEMBERS)):
            raise Unusable(f"{path}:{number}: {', '.join(MEMBERS)} are needed")
        yield str(document.pop("consumer")), document


def _parse(path: Path, number: int, line: str) -> Json:
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(line)
    raise Unusable(f"{path}:{number}: this is not JSON")
