"""Settings of the Python interpreter, in a process that does nothing but serve."""

import contextlib
import gc
import sys
from collections.abc import Iterator

# How many objects are created before the youngest are collected, and how many
# collections run before those of each older generation.
COLLECT_AFTER = (50_000, 20, 20)
# How long a thread computes before it makes room for one that waits.
SWITCH_SECONDS = 0.0005


def settle() -> None:
    """Set it so that no request waits long for what it does not need.

    The garbage collector does not examine objects that stay for good: a large answer
    creates so many that it would examine all objects of the process, in the middle of a
    request. And threads that compute for long make room for those that need a moment
    after each statement. See docs/decisions/interpreter.rst.

    This affects the whole interpreter, so the program calls it, not the application: a
    process that imports the application may do other things as well.
    """
    freeze()
    gc.set_threshold(*COLLECT_AFTER)
    sys.setswitchinterval(SWITCH_SECONDS)


def freeze() -> None:
    """Exempt all existing objects from the garbage collector.

    Before a server forks, this keeps its processes from touching, and so copying, the
    memory that they share.
    """
    gc.collect()
    gc.freeze()


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
