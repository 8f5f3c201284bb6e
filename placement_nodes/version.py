"""The microversions of the bare metal API that this service supports."""

import functools
from collections.abc import Mapping, MutableMapping

from placement_foundation import errors
from placement_foundation.http import version
from placement_foundation.http.version import Version

SERVICE = "baremetal"
LEGACY_HEADER = "X-OpenStack-Ironic-API-Version"

MINIMUM = Version(1, 1)
MAXIMUM = Version(1, 37)
VERSIONS = version.by_name(
    (1, minor) for minor in range(MINIMUM.minor, MAXIMUM.minor + 1)
)

# The features of this service, by the microversion that brought them.
NAMES = (1, 5)
RESOURCE_CLASS = (1, 21)
TRAITS = (1, 37)


def negotiate(headers: MutableMapping[str, str], **options: bool) -> Version:
    """Return the microversion in the headers of a request.

    :raises UnavailableVersion: there is no such version, or it cannot be parsed
    """
    try:
        return version.negotiate(headers, SERVICE, VERSIONS, [LEGACY_HEADER], **options)
    except (errors.MalformedVersion, errors.UnavailableVersion) as exc:
        raise errors.UnavailableVersion(
            f"{exc}. The versions of this service are {MINIMUM} to {MAXIMUM}."
        ) from exc


@functools.cache
def headers(spoken: Version | None) -> Mapping[str, str]:
    """Return the version headers of an answer, by which clients negotiate.

    :param spoken: None if no version was agreed on
    """
    bounds = {
        "X-OpenStack-Ironic-API-Minimum-Version": str(MINIMUM),
        "X-OpenStack-Ironic-API-Maximum-Version": str(MAXIMUM),
    }
    return bounds if spoken is None else {**bounds, LEGACY_HEADER: str(spoken)}
