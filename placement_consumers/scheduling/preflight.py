"""Whether a server may be rebuilt from another image where it is.

The host and the flavor stay, so no room is asked for: a host that is full must not keep
a server from being rebuilt. What counts are the traits of the providers that the server
holds something of; others in the same tree do not count.
"""

import dataclasses
from collections.abc import Collection, Mapping

from placement_consumers.client import Client, NotFound
from placement_consumers.scheduling.flavor import Flavor
from placement_consumers.scheduling.image import Image


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a rebuild may go on, and if not, what is in its way.

    ``traits`` are those of each provider that was looked at, by UUID.
    """

    passed: bool
    reason: str
    missing: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    traits: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)


def check(
    placement: Client, server: str, flavor: Flavor, old: Image, new: Image
) -> Verdict:
    """Check whether a server of a flavor may change from one image to another."""
    wanted = new.required
    if new.is_same(old):
        return Verdict(True, "the image stays the same")
    if not wanted:
        return Verdict(True, "the new image requires no traits")
    forbidden = tuple(sorted(wanted.keys() & flavor_traits(flavor, "forbidden")))
    if forbidden:
        named = _named(forbidden, wanted)
        return Verdict(
            False,
            f"image traits are forbidden by the flavor: {named}",
            forbidden=forbidden,
        )
    held = placement.get_allocations(server).by_provider
    if not held:
        return Verdict(False, "the server holds nothing")
    traits = {provider: _traits(placement, provider) for provider in sorted(held)}
    missing = tuple(sorted(wanted.keys() - frozenset().union(*traits.values())))
    if missing:
        return Verdict(
            False,
            f"no valid host: the providers that the server is on, {', '.join(traits)}, "
            f"lack {_named(missing, wanted)}",
            missing=missing,
            traits=traits,
        )
    return Verdict(True, "what the server holds has the traits", traits=traits)


def flavor_traits(flavor: Flavor, value: str) -> frozenset[str]:
    """Return the traits that any key of a flavor gives a value, whatever its group."""
    return frozenset(
        key.partition(":")[2]
        for key, given in flavor.extra_specs.items()
        if key.startswith("trait") and ":" in key and given == value
    )


def _traits(placement: Client, provider: str) -> frozenset[str]:
    """Return the traits of a provider; one that has gone meanwhile has none."""
    try:
        return placement.get_traits(provider).names
    except NotFound:
        return frozenset()


def _named(traits: Collection[str], keys: Mapping[str, str]) -> str:
    return ", ".join(f"{name} (image property {keys[name]})" for name in traits)
