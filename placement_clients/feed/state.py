"""The cursor of the change that was delivered last, in a file."""

import contextlib
import json
import os
import tempfile
from pathlib import Path

from placement_clients.output import Unusable


class State:
    """The cursor in a file, which is replaced as a whole; without a file, in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._cursor: str | None = None

    def load(self) -> str | None:
        """Return the cursor; None if there is none yet.

        :raises Unusable: the file has something else in it
        :raises OSError: it cannot be read
        """
        if self._path is None:
            return self._cursor
        try:
            return str(json.loads(self._path.read_text())["cursor"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as exc:
            raise Unusable(f"{self._path} is not a state of this program") from exc

    def save(self, cursor: str) -> None:
        """Store a cursor: everything up to it was delivered.

        :raises OSError: it cannot be written
        """
        self._cursor = cursor
        if self._path is not None:
            write(self._path, json.dumps({"cursor": cursor}) + "\n")


def write(path: Path, text: str) -> None:
    """Replace a file: at any moment, it has either the old content or the new one.

    :raises OSError: it cannot be written
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
