"""A file that lists living consumers: lines of JSON."""

import datetime
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from placement_clients.audit.life import Expected, Living, NotAnswered, Source
from placement_clients.output import Unusable

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

        :raises Unusable: it cannot be read, or a line is not understood
        """
        try:
            with self._path.open(encoding="utf-8") as file:
                written = os.fstat(file.fileno()).st_mtime
                self.moment = datetime.datetime.fromtimestamp(written, datetime.UTC)
                for number, line in enumerate(file, 1):
                    if line.strip():
                        yield _parse(f"{self._path}:{number}", line)
        except OSError as exc:
            raise Unusable(f"{self._path}: {exc.strerror}") from exc
        except UnicodeDecodeError as exc:
            raise Unusable(f"{self._path}: this is not UTF-8") from exc

    def find(self, consumer: str) -> None:
        """Check that the file has not changed since it was read.

        :raises NotAnswered: it has been written meanwhile
        """
        try:
            written = self._path.stat().st_mtime
        except OSError as exc:
            raise NotAnswered(f"{self._path}: {exc.strerror}") from exc
        if datetime.datetime.fromtimestamp(written, datetime.UTC) != self.moment:
            raise NotAnswered(f"{self._path} has been written meanwhile")


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
