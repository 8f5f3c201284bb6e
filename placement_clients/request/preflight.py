"""Whether a server may be rebuilt from another image where it is.

The host and the flavor stay the same, so no room is requested: a full host must not
prevent a rebuild. Only the traits of the providers from which the server has
allocations count, not those of others in the same tree.
"""

import dataclasses
from collections.abc import Collection, Mapping

from placement_clients.client import Client
from placement_clients.errors import NotFound
from placement_clients.record import TRAITS
from placement_clients.request.flavor import Flavor
from placement_clients.request.image import Image


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a rebuild is possible, and if not, what prevents it.

    ``traits`` are those of each checked provider, by UUID.
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
    return foresee(flavor, old, new) or check_held(placement, server, new)


def foresee(flavor: Flavor, old: Image, new: Image) -> Verdict | None:
    """Return the verdict if it is certain without a request to Placement."""
    if new.is_same(old):
        return Verdict(True, "the image stays the same")
    if not new.required:
        return Verdict(True, "the new image requires no traits")
    both = new.required.keys() & flavor_traits(flavor, "forbidden")
    if not both:
        return None
    forbidden = tuple(sorted(both))
    named = _named(forbidden, new)
    reason = f"image traits are forbidden by the flavor: {named}"
    return Verdict(False, reason, forbidden=forbidden)


def check_held(placement: Client, server: str, new: Image) -> Verdict:
    """Check whether the providers of a server have the traits required by an image."""
    held = placement.get_allocations(server)
    if not held:
        return Verdict(False, "the server holds nothing")
    traits = {provider: _traits(placement, provider) for provider in sorted(held)}
    missing = tuple(sorted(new.required.keys() - frozenset().union(*traits.values())))
    if not missing:
        return Verdict(True, "what the server holds has the traits", traits=traits)
    reason = (
        f"no valid host: the providers that the server is on, {', '.join(traits)}, "
        f"lack {_named(missing, new)}"
    )
    return Verdict(False, reason, missing=missing, traits=traits)


def flavor_traits(flavor: Flavor, value: str) -> frozenset[str]:
    """Return the traits with a given value under any key of a flavor, in any group."""
    return frozenset(
        key.partition(":")[2]
        for key, given in flavor.extra_specs.items()
        if key.startswith("trait") and ":" in key and given == value
    )


def _traits(placement: Client, provider: str) -> frozenset[str]:
    """Return the traits of a provider; one that has been deleted meanwhile has none."""
    try:
        return frozenset(placement.get_part(provider, TRAITS).value)
    except NotFound:
        return frozenset()


def _named(traits: Collection[str], image: Image) -> str:
    keys = image.required
    return ", ".join(f"{name} (image property {keys[name]})" for name in traits)
