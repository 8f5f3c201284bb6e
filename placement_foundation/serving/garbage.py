"""Python's garbage collector, in a process that does nothing but serve."""

import gc

# How many objects are created before the youngest are collected, and how many
# collections run before those of each older generation.
COLLECT_AFTER = (50_000, 20, 20)


def settle() -> None:
    """Keep the garbage collector from examining objects that stay for good.

    A large answer creates so many objects that the collector would examine all objects
    of the process, in the middle of a request. See
    docs/decisions/garbage-collection.rst.

    This affects the whole interpreter, so the program calls it, not the application: a
    process that imports the application may do other things as well.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
