"""The numbers of processes that have ended, added up in one file of each kind.

Where processes are replaced again and again, their files would become more and more,
and reading them all would take longer and longer.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

# What prometheus_client adds up over all files of a kind, whatever the process.
KINDS = ("counter", "histogram", "summary")
# Stands for the id of a process in the names of files.
ALL = "ended"


class Writer(Protocol):
    """A file of numbers that is written."""

    def write_value(self, key: str, value: float, timestamp: float) -> None:
        """Write a number."""

    def close(self) -> None:
        """Close the file."""


@contextlib.contextmanager
def unchanged(directory: Path) -> Iterator[None]:
    """Let no files be added up while they are read."""
    with contextlib.ExitStack() as stack:
        # What cleans up after programs may have removed it, and all files with it.
        with contextlib.suppress(FileNotFoundError):
            lock = stack.enter_context(_opened(directory))
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextlib.contextmanager
def _opened(directory: Path) -> Iterator[int]:
    """Open the directory itself, to lock it: that takes neither room nor rights."""
    opened = os.open(directory, os.O_RDONLY)
    try:
        yield opened
    finally:
        os.close(opened)


def add_up(
    directory: Path, pids: Iterable[int], writer: Callable[[str], Writer]
) -> set[int]:
    """Add the files of some processes to those of all that ended, and remove them.

    :param writer: returns a new file, by its path
    :return: the processes of which this was done: not those whose id another process
        has by now, and none if files are being read at this moment
    :raises OSError: there is no room; nothing is lost
    """
    with _opened(directory) as lock:
        try:
            # The server cannot wait: it takes care of its processes.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return set()
        gone = {pid for pid in set(pids) if not _is_alive(pid)}
        for kind in KINDS:
            _add_up_kind(directory, kind, gone, writer)
    return gone


def _add_up_kind(
    directory: Path, kind: str, pids: Iterable[int], writer: Callable[[str], Writer]
) -> None:
    from prometheus_client.mmap_dict import MmapedDict

    files = [directory / f"{kind}_{pid}.db" for pid in sorted(pids)]
    # Files that are empty have no numbers yet, and never will.
    files = [file for file in files if file.exists()]
    total = directory / f"{kind}_{ALL}.db"
    sums: dict[str, float] = {}
    for file in (total, *files):
        if file.exists() and file.stat().st_size:
            rows = MmapedDict.read_all_values_from_file(file)  # type: ignore[no-untyped-call]
            for key, value, _, _ in rows:
                sums[key] = sums.get(key, 0.0) + value
    if sums and files:
        new = total.with_suffix(".new")
        new.unlink(missing_ok=True)
        written = writer(str(new))
        for key, value in sums.items():
            written.write_value(key, value, 0.0)
        written.close()
        new.replace(total)
    for file in files:
        file.unlink()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
