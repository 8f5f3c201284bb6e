"""A filter of Nova's scheduler that keeps ordinary servers off reservable hosts.

Nova loads it by its name::

    [filter_scheduler]
    available_filters = nova.scheduler.filters.all_filters
    available_filters = placement_reservations.nova_filter.ReservedHostsFilter
    enabled_filters = ..., ReservedHostsFilter
"""

import re
from typing import Any

from nova.scheduler import filters

# The key of an extra spec that requests a slot of a reservation.
RESERVED = re.compile(r"resources[a-zA-Z0-9_-]{0,64}:CUSTOM_RESERVATION_.*", re.DOTALL)
# The host aggregate of reservable hosts; ``[free_pool] name`` of the service.
POOL = "freepool"


class ReservedHostsFilter(filters.BaseHostFilter):  # type: ignore[misc]
    """Passes a reservable host only for servers of a reservation.

    For another name of the host aggregate, name a subclass with another ``pool``.
    """

    # A rebuild stays on its host.
    RUN_ON_REBUILD = False
    # Aggregates and flavors are the same for all servers of a request.
    run_filter_once_per_request = True

    pool = POOL

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Return whether a server may be put on a host."""
        in_pool = any(each.name == self.pool for each in host_state.aggregates)
        extra_specs = spec_obj.flavor.extra_specs or {}
        return not in_pool or any(RESERVED.fullmatch(key) for key in extra_specs)
