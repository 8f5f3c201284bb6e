"""The microversion of the reservation API: there is only one."""

from collections.abc import Mapping, MutableMapping

from placement_foundation.http import version
from placement_foundation.http.version import Version

SERVICE = "reservation"
ONLY = Version(1, 0)


def negotiate(headers: MutableMapping[str, str]) -> Version:
    """Return the microversion in the headers of a request.

    :raises version.Malformed: the string is not a version
    :raises version.NotSupported: this service does not have it
    """
    return version.negotiate(headers, SERVICE, {ONLY})


def headers(spoken: Version | None) -> Mapping[str, str]:
    """Return the headers of an answer."""
    return {
        "OpenStack-API-Version": f"{SERVICE} {ONLY}",
        "Vary": "OpenStack-API-Version",
    }
