"""Which instances may go to hosts that are kept for reservations."""

import re
from collections.abc import Iterable

RESERVED = re.compile(r"resources[a-zA-Z0-9_-]{0,64}:CUSTOM_RESERVATION_.*", re.DOTALL)


def passes(in_pool: bool, extra_specs: Iterable[str]) -> bool:
    """Return whether a scheduler may put an instance on a host.

    :param in_pool: whether the host is kept for reservations
    :param extra_specs: the extra specs of the flavor; only the keys matter
    """
    return not in_pool or any(RESERVED.fullmatch(key) for key in extra_specs)
