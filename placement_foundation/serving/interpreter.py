"""Settings of the Python interpreter, in a process that does nothing but serve."""

import contextlib
import ctypes
import gc
import os
import sys
from collections.abc import Iterable, Iterator

# How many objects are created before the youngest are collected, and how many
# collections run before those of each older generation.
COLLECT_AFTER = (50_000, 20, 20)
# How long a thread computes before it makes room for one that waits.
SWITCH_SECONDS = 0.0005
# Blocks up to this size are taken from the memory that the process has already, and so
# much at its end stays with the process when it is free. It is the most that the C
# library can set.
MOST_KEPT = 32 * 1024 * 1024
# The numbers of these settings in the C library of GNU. The last one is for the number
# of places from which threads take memory, each of which would keep as much.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
# What sets the same in the environment: a variable, or a name in ``GLIBC_TUNABLES``.
THRESHOLDS = (
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_",
    "glibc.malloc.trim_threshold",
    "glibc.malloc.mmap_threshold",
)
ARENAS = ("MALLOC_ARENA_MAX", "glibc.malloc.arena_max")


def settle() -> None:
    """Set it so that no request waits long for what it does not need.

    The garbage collector does not examine objects that stay for good: a large answer
    creates so many that it would examine all objects of the process, in the middle of a
    request. And threads that compute for long make room for those that need a moment
    after each statement. The memory of large answers is used again for the next ones.
    See docs/decisions/garbage-collection.rst, docs/decisions/switch-interval.rst and
    docs/decisions/memory-of-answers.rst.

    This affects the whole interpreter, so the program calls it, not the application: a
    process that imports the application may do other things as well.
    """
    freeze()
    gc.set_threshold(*COLLECT_AFTER)
    sys.setswitchinterval(SWITCH_SECONDS)
    _keep_memory()


def freeze() -> None:
    """Let the garbage collector examine nothing any more of all that exists now.

    Before a server forks, this keeps its processes from touching, and so copying, the
    memory that they share.
    """
    gc.collect()
    gc.freeze()


def _keep_memory() -> None:
    """Let the C library keep the memory of large answers, if it can.

    What the environment sets stays as it is.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if not set_option:
        return
    if not _is_set(ARENAS):
        set_option(M_ARENA_MAX, 1)
    # One without the other would keep the memory of small blocks only.
    if not _is_set(THRESHOLDS) and set_option(M_MMAP_THRESHOLD, MOST_KEPT):
        set_option(M_TRIM_THRESHOLD, MOST_KEPT)


def _is_set(names: Iterable[str]) -> bool:
    """Return whether the environment sets one of the C library's settings."""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return any(name in os.environ or f"{name}=" in tunables for name in names)


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """Create many objects that stay, without examining them again and again.

    This affects the whole interpreter, so it is for the start of a program.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
