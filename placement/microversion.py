"""The microversions of the API, and their negotiation."""

import functools
from collections.abc import Callable
from typing import TypeVar

from placement_foundation.http import version
from placement_foundation.http.version import ByVersion, Version

T = TypeVar("T")

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

MINIMUM = Version(*min(VERSIONS))
MAXIMUM = Version(*max(VERSIONS))

BY_NAME = version.by_name(VERSIONS)
# Returns the microversion that a request's headers name.
negotiate = functools.partial(version.negotiate, service=SERVICE, versions=BY_NAME)


def made_from(first: tuple[int, int], make: Callable[[Version], T]) -> ByVersion[T]:
    """Return a value that is made for each microversion from the first one on."""
    since = [each for each in VERSIONS if each >= first]
    return ByVersion({each: make(Version(*each)) for each in since})
