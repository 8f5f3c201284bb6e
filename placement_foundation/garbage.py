"""Python's garbage collector, in a process that does nothing but serve."""

import gc

# How many objects are made before the young ones are looked at for garbage, and how
# often that is done before the older ones are.
COLLECT_AFTER = (50_000, 20, 20)


def settle() -> None:
    """Keep the garbage collector from looking at objects that stay for good.

    A large answer makes so many objects that the collector looks at everything there
    is, in the middle of a request. See docs/decisions/garbage-collection.rst.

    It changes the whole interpreter, so the program decides, and not the application:
    a process that imports the application may do other things as well.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
