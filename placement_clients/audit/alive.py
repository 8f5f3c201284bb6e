"""A file that lists living consumers: lines of JSON."""

import datetime
import io
import json
import uuid
from collections.abc import Iterator
from pathlib import Path

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from placement_clients.audit.life import Expected, Living, NotAnswered, Source
from placement_clients.output import Unusable, read_text

LINE = Draft202012Validator(
    {
        "type": "object",
        "properties": {
            "uuid": {"type": "string"},
            "host": {"type": ["string", "null"], "minLength": 1},
            "resources": {
                "type": ["object", "null"],
                "additionalProperties": {"type": "integer", "minimum": 0},
            },
        },
        "required": ["uuid"],
        "additionalProperties": False,
    }
)


class AliveFile(Source):
    """A file with a line for each consumer: ``uuid``, maybe ``host``, ``resources``.

    Consumers that were created after it was written are not judged by it.
    """

    name = "file"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.moment = datetime.datetime.now(datetime.UTC)

    def living(self) -> Iterator[Living]:
        """Yield the consumers that the file lists.

        :raises Unusable: a line is not understood
        """
        self.moment = self._written()
        for number, line in enumerate(io.StringIO(read_text(self._path)), 1):
            if line.strip():
                yield _parse(f"{self._path}:{number}", line)

    def find(self, consumer: str) -> None:
        """Check that the file has not changed since it was read.

        :raises NotAnswered: it has been written meanwhile
        """
        if self._written() != self.moment:
            raise NotAnswered(f"{self._path} has been written meanwhile")

    def _written(self) -> datetime.datetime:
        seconds = self._path.stat().st_mtime
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def _parse(place: str, line: str) -> Living:
    """Return the consumer of a line.

    :raises Unusable: it is something else
    """
    try:
        document = json.loads(line)
        LINE.validate(document)
        consumer = str(uuid.UUID(document["uuid"]))
    except ValidationError as exc:
        raise Unusable(f"{place}: {exc.json_path}: {exc.message}") from exc
    except (ValueError, RecursionError) as exc:
        raise Unusable(f"{place}: {exc}") from exc
    resources = document.get("resources")
    if resources is not None:
        resources = {name: amount for name, amount in resources.items() if amount}
    return Living(consumer, Expected(document.get("host"), resources))
