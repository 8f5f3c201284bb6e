"""The resource providers that belong to the agent, recorded in a file."""

import contextlib
import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from placement_clients.feed import state
from placement_nodes.sync import plan

VERSION = 1


class Unusable(Exception):
    """The file cannot be read or written. The message says why."""


class Memory:
    """The UUIDs of the providers that the agent has created or adopted.

    ``missing`` has the times since which nodes are missing, in seconds since 1970.
    Every change is written to disk at once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.providers, self.missing = _read(path)

    def miss(self, uuids: Iterable[str], now: float) -> None:
        """Note which nodes are missing; all others are present."""
        missing = {uuid: self.missing.get(uuid, now) for uuid in uuids}
        self._replace(self.providers, missing)

    def add(self, uuids: Iterable[str]) -> None:
        """Add providers."""
        self._replace(self.providers.union(uuids), self.missing)

    def forget(self, uuids: Iterable[str]) -> None:
        """Remove providers."""
        left = self.providers.difference(uuids)
        missing = {uuid: at for uuid, at in self.missing.items() if uuid in left}
        self._replace(left, missing)

    def _replace(self, providers: frozenset[str], missing: Mapping[str, float]) -> None:
        if (providers, missing) != (self.providers, self.missing):
            _write(self._path, providers, missing)
            self.providers, self.missing = providers, missing


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Memory]:
    """Open the memory in a file, which no other agent can open meanwhile.

    :raises Unusable: another agent has it open, or it cannot be used
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A lock on the file itself would be lost, as each change replaces the file.
        with path.with_name(f"{path.name}.lock").open("w") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield Memory(path)
    except BlockingIOError as exc:
        raise Unusable(f"another agent is using {path}") from exc


def _read(path: Path) -> tuple[frozenset[str], Mapping[str, float]]:
    try:
        document = json.loads(path.read_text())
        if document["version"] != VERSION:
            raise Unusable(f"{path} was written by a newer agent")
        # Earlier releases kept the spelling of Ironic.
        providers = frozenset(map(plan.spelled, document["providers"]))
        return providers, {
            uuid: float(at) for uuid, at in document.get("missing", {}).items()
        }
    except FileNotFoundError:
        return frozenset(), {}
    except (OSError, ValueError) as exc:
        raise Unusable(f"{path} cannot be read: {exc}") from exc
    except (AttributeError, KeyError, TypeError) as exc:
        raise Unusable(f"{path} was not written by this agent") from exc


def _write(path: Path, providers: frozenset[str], missing: Mapping[str, float]) -> None:
    document = {
        "version": VERSION,
        "providers": sorted(providers),
        "missing": dict(missing),
    }
    try:
        state.write(path, json.dumps(document, indent=1))
    except OSError as exc:
        raise Unusable(f"{path} cannot be written: {exc}") from exc
