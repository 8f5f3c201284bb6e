"""Microversions: their negotiation, and values that differ between them."""

import bisect
import functools
from collections.abc import Collection, Iterable, Mapping, MutableMapping
from typing import Generic, NamedTuple, TypeVar

import microversion_parse

from placement_foundation import errors

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Version(NamedTuple):
    """A microversion; compares as numbers do."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


# How many headers are remembered; clients send a few different ones.
MOST_REMEMBERED = 100
# No service has a microversion before this one.
FIRST = Version(1, 0)
LATEST = "latest"


def by_name(versions: Iterable[tuple[int, int]]) -> dict[str, Version]:
    """Return the microversions of a service as callers name them, the oldest first."""
    ordered = [Version(*each) for each in sorted(versions)]
    return {**{str(each): each for each in ordered}, LATEST: ordered[-1]}


def negotiate(
    headers: MutableMapping[str, str],
    service: str,
    versions: Mapping[str, Version],
    legacy_headers: Collection[str] = (),
    *,
    newest_by_default: bool = False,
) -> Version:
    """Return the microversion that a request's headers name.

    :param service: the name that ``OpenStack-API-Version`` has for the service
    :param versions: the microversions of the service, from ``by_name``
    :param legacy_headers: other headers that may carry the version
    :param newest_by_default: whether a request without a header gets the highest one
        instead of the lowest
    :raises MalformedVersion: the string is not a version
    :raises UnavailableVersion: the version is not one of these
    """
    names = (microversion_parse.STANDARD_HEADER, *legacy_headers)
    # The library folds every header that it gets.
    sent = tuple([(name, headers[name]) for name in names if name in headers])
    text = _find_text(sent, service, tuple(legacy_headers))
    if not text:
        text = LATEST if newest_by_default else next(iter(versions))
    if text in versions:
        return versions[text]
    try:
        numbers = microversion_parse.parse_version_string(text)
    except TypeError as exc:
        raise errors.MalformedVersion(
            "Invalid microversion: invalid version string: "
            f"{errors.quote(text)}; it is not two numbers with a dot between"
        ) from exc
    # The library also reads other spellings: 1.05 is 1.5.
    version = versions.get(str(Version(*numbers)))
    if version is None:
        raise errors.UnavailableVersion(
            f"Invalid microversion: Unacceptable version header: {errors.quote(text)}"
        )
    return version


@functools.lru_cache(MOST_REMEMBERED)
def _find_text(
    sent: tuple[tuple[str, str], ...], service: str, legacy: tuple[str, ...]
) -> str | None:
    """Return the version of a service that some headers name, if any."""
    text: str | None = microversion_parse.get_version(dict(sent), service, list(legacy))
    return text


class ByVersion(Generic[T_co]):
    """A value with a history: what it is from each microversion on.

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
        """Return every value of the history, oldest first."""
        return list(self._values)

    def versions(self) -> list[Version]:
        """Return the microversions at which the value changed, oldest first."""
        return list(self._since)


def always(value: T) -> ByVersion[T]:
    """Return a value that is the same at every microversion."""
    return ByVersion({FIRST: value})


def since(major: int, minor: int, value: T) -> ByVersion[T]:
    """Return a value that exists from a microversion on."""
    return ByVersion({(major, minor): value})
