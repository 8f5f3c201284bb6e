"""The microversions of the API, and which of them a request asks for."""

import bisect
from collections.abc import Mapping, MutableMapping
from typing import Generic, NamedTuple, TypeVar

import microversion_parse

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SERVICE = "placement"

VERSIONS = {
    (1, 0): "resource providers, inventories, usages, allocations",
    (1, 1): "aggregates of a resource provider",
    (1, 2): "resource classes",
    (1, 3): "member_of filters resource providers",
    (1, 4): "resources filters resource providers",
    (1, 5): "delete all inventories of a resource provider",
    (1, 6): "traits, and traits of a resource provider",
    (1, 7): "PUT of a resource class creates or confirms it",
    (1, 8): "project and user are required when allocations are written",
    (1, 9): "usages of a project",
    (1, 10): "allocation candidates",
    (1, 11): "resource providers link to their allocations",
    (1, 12): "allocations are written as they are read, keyed by provider",
    (1, 13): "POST allocations of several consumers",
    (1, 14): "nested resource providers, in_tree filter",
    (1, 15): "last-modified and cache-control",
    (1, 16): "limit on allocation candidates",
    (1, 17): "required on allocation candidates, traits in summaries",
    (1, 18): "required filters resource providers",
    (1, 19): "generation in aggregates",
    (1, 20): "POST of a resource provider answers with it",
    (1, 21): "member_of on allocation candidates",
    (1, 22): "forbidden traits",
    (1, 23): "codes in errors",
    (1, 24): "member_of may be repeated",
    (1, 25): "granular request groups, group_policy",
    (1, 26): "reserved may equal total",
    (1, 27): "summaries show every resource class",
    (1, 28): "consumer generations",
    (1, 29): "candidates from nested resource providers",
    (1, 30): "the reshaper",
    (1, 31): "in_tree on allocation candidates",
    (1, 32): "forbidden aggregates",
    (1, 33): "request group suffixes may be text",
    (1, 34): "mappings of request groups to resource providers",
    (1, 35): "root_required on allocation candidates",
    (1, 36): "same_subtree, request groups without resources",
    (1, 37): "resource providers may move to another tree",
    (1, 38): "consumer types",
    (1, 39): "any of several traits, required may be repeated",
}


class Version(NamedTuple):
    """A microversion; compares as numbers do."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


MINIMUM = Version(*min(VERSIONS))
MAXIMUM = Version(*max(VERSIONS))


class Malformed(ValueError):
    """The header names this service, but no microversion can be read from it."""


class Unavailable(ValueError):
    """The header asks for a microversion that this service does not have."""


def negotiate(headers: MutableMapping[str, str]) -> Version:
    """Return the microversion that a request's headers ask for.

    :raises Malformed: the text is not a version
    :raises Unavailable: the version is not one of ``VERSIONS``
    """
    text = microversion_parse.get_version(headers, SERVICE)
    if not text:
        return MINIMUM
    if text == "latest":
        return MAXIMUM
    try:
        version = Version(*microversion_parse.parse_version_string(text))
    except TypeError as exc:
        raise Malformed(
            f"Invalid microversion: invalid version string: {text}; {exc}"
        ) from exc
    if version not in VERSIONS:
        raise Unavailable(f"Invalid microversion: Unacceptable version header: {text}")
    return version


class ByVersion(Generic[T_co]):
    """A value with a history: what it was from each microversion on.

    Before its first microversion the value does not exist (``None``).
    """

    def __init__(self, history: Mapping[tuple[int, int], T_co]) -> None:
        self._since = [Version(*version) for version in history]
        self._values = list(history.values())
        if self._since != sorted(self._since):
            raise ValueError("microversions are listed oldest first")

    def at(self, version: Version) -> T_co | None:
        """Return the value at a microversion."""
        age = bisect.bisect_right(self._since, version)
        return self._values[age - 1] if age else None

    def values(self) -> list[T_co]:
        """Return every value there ever was, oldest first."""
        return list(self._values)

    def versions(self) -> list[Version]:
        """Return the microversions at which the value changed, oldest first."""
        return list(self._since)


def always(value: T) -> ByVersion[T]:
    """Return a value that never changed."""
    return ByVersion({MINIMUM: value})


def since(major: int, minor: int, value: T) -> ByVersion[T]:
    """Return a value that did not exist before a microversion."""
    return ByVersion({(major, minor): value})
