"""A file that lists living consumers: lines of JSON."""

import datetime
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from placement_clients.audit.life import Expected, Living, NotAnswered, Source
from placement_clients.output import Unusable
from placement_clients.record import Json

MEMBERS = ("uuid", "host", "resources")


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
    except (ValueError, RecursionError) as exc:
        raise Unusable(f"{place}: this is not JSON: {exc}") from exc
    if not isinstance(document, dict):
        raise Unusable(f"{place}: a line is an object with {', '.join(MEMBERS)}")
    if unknown := sorted(document.keys() - set(MEMBERS)):
        raise Unusable(
            f"{place}: unknown member {unknown[0]!r}; there are: {', '.join(MEMBERS)}"
        )
    host = document.get("host")
    if not (host is None or (isinstance(host, str) and host)):
        raise Unusable(f"{place}: host: this must be a name or a UUID")
    resources = _parse_resources(place, document.get("resources"))
    return Living(_parse_uuid(place, document), Expected(host, resources))


def _parse_uuid(place: str, document: Json) -> str:
    try:
        return str(uuid.UUID(document["uuid"]))
    except KeyError:
        raise Unusable(f"{place}: uuid is missing") from None
    except (ValueError, TypeError, AttributeError):
        raise Unusable(f"{place}: uuid: {document['uuid']!r} is not a UUID") from None


def _parse_resources(place: str, resources: Json) -> dict[str, int] | None:
    if resources is None:
        return None
    if not isinstance(resources, dict):
        raise Unusable(f"{place}: resources: these must be amounts by class")
    for name, amount in resources.items():
        if type(amount) is not int or amount < 0:
            raise Unusable(f"{place}: resources: {name}: {amount!r} is not an amount")
    return {name: amount for name, amount in resources.items() if amount}
