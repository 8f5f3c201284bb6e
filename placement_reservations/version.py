"""The microversion of the reservation API: there is only one."""

import functools
from collections.abc import Mapping

from placement_foundation.http import version
from placement_foundation.http.version import Version

SERVICE = "reservation"
ONLY = Version(1, 0)


# Returns the microversion in the headers of a request.
negotiate = functools.partial(
    version.negotiate, service=SERVICE, versions=version.by_name([ONLY])
)


@functools.cache
def headers(spoken: Version | None) -> Mapping[str, str]:
    """Return the headers of an answer."""
    return {
        "OpenStack-API-Version": f"{SERVICE} {ONLY}",
        "Vary": "OpenStack-API-Version",
    }
