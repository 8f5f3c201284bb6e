"""Builds the request to Placement from a flavor and an image."""

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from placement_clients.client import encode_query
from placement_clients.errors import BadRequest
from placement_clients.request import translation
from placement_clients.request.errors import BadInput
from placement_clients.request.flavor import Flavor
from placement_clients.request.image import Image
from placement_clients.request.spec import FORBIDDEN, REQUIRED, Spec

LIMIT = 1000
MIB_PER_GIB = 1024

KEY = re.compile(r"(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)", re.DOTALL)
# The characters of a trait's name. Others have a meaning in queries.
TRAIT_NAME = re.compile(r"[A-Za-z0-9_]+")
GROUP_POLICY = "group_policy"
POLICIES = ("none", "isolate")


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """One request group: amounts by class, traits, aggregates.

    ``member_of`` are values of that parameter, one for each condition.
    """

    resources: Mapping[str, int] = dataclasses.field(default_factory=dict)
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """The request to Placement.

    ``groups`` are by suffix. ``specs`` are the requirements of the flavor and the
    image, ``warnings`` name those of them that have no effect, ``beside`` the extra
    specs by which Nova chooses a host in other ways than by a query.
    """

    groups: Mapping[str, Group]
    group_policy: str | None = None
    root_required: tuple[str, ...] = ()
    limit: int | None = LIMIT
    specs: tuple[Spec, ...] = ()
    warnings: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()

    @property
    def required(self) -> frozenset[str]:
        """The traits that any group requires."""
        return frozenset().union(*(group.required for group in self.groups.values()))

    @property
    def resource_classes(self) -> frozenset[str]:
        """The classes that any group requests."""
        return frozenset().union(*(group.resources for group in self.groups.values()))

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The parameters of its query, sorted; a name may occur several times."""
        whole = {
            "group_policy": self.group_policy,
            "limit": None if self.limit is None else str(self.limit),
            "root_required": ",".join(self.root_required),
        }
        return sorted(
            [
                *((name, value) for name, value in whole.items() if value),
                *(
                    pair
                    for suffix, group in self.groups.items()
                    for pair in _parameters(suffix, group)
                ),
            ]
        )

    @property
    def query(self) -> str:
        """The query string, percent-encoded."""
        return encode_query(self.parameters)

    @property
    def problems(self) -> tuple[str, ...]:
        """The reasons for which Placement would refuse the request."""
        return tuple(_problems(self))

    def with_member_of(self, value: str) -> "Request":
        """Return this request with another condition on the aggregates of its host."""
        group = self.groups.get("", Group())
        group = dataclasses.replace(group, member_of=(*group.member_of, value))
        return dataclasses.replace(self, groups={**self.groups, "": group})


Rule = Callable[[Request], Request]


def build(
    flavor: Flavor,
    image: Image | None = None,
    *,
    volume_backed: bool = False,
    rules: Iterable[Rule] = (),
    limit: int | None = LIMIT,
    strict: bool = False,
) -> Request:
    """Return the request for a server with a flavor and an image.

    :param volume_backed: the root disk is a volume, so it takes no room on the host
    :param rules: what the deployment adds to any request, see ``rule``
    :param strict: refuse a request that has warnings or problems
    :raises BadInput: the request is refused
    """
    translated, objections = translation.translate(flavor, image)
    specs = _override([*flavor_specs(flavor), *image_specs(image)], translated)
    policy = flavor.extra_specs.get(GROUP_POLICY)
    accepted = tuple(spec for spec in specs if not spec.objection)
    request = Request(
        _groups(accepted, _implicit(flavor, volume_backed, _amounts(accepted))),
        policy if policy in POLICIES else None,
        limit=limit,
        specs=accepted,
        warnings=(*_warnings(specs, policy), *objections),
        beside=tuple(translation.list_beside(flavor)),
    )
    for rule in rules:
        request = rule(request)
    if strict and (refused := request.warnings or request.problems):
        raise BadInput(*refused)
    return request


def _override(specs: list[Spec], translated: Iterable[Spec]) -> list[Spec]:
    """Return the specs of flavor and image, with those that Nova derives from policies.

    The number of dedicated CPUs is that of the policy; other amounts that a flavor
    names itself stay.
    """
    named = {
        spec.name for spec in specs if spec.kind == "resources" and not spec.suffix
    }
    added = [
        spec
        for spec in translated
        if spec.kind == "trait" or spec.name == "PCPU" or spec.name not in named
    ]
    if any(spec.name == "PCPU" for spec in added):
        specs = [spec for spec in specs if (spec.suffix, spec.name) != ("", "PCPU")]
    return [*specs, *added]


def flavor_specs(flavor: Flavor) -> Iterator[Spec]:
    """Yield the requirements in the extra specs of a flavor, ignoring all others."""
    for key, value in flavor.extra_specs.items():
        if match := KEY.fullmatch(key):
            kind, suffix, name = match.groups(default="")
            yield Spec(kind, suffix, name, value, f"flavor extra spec {key}")


def image_specs(image: Image | None) -> Iterator[Spec]:
    """Yield the requirements in the properties of an image."""
    for name, key in (image.required if image else {}).items():
        yield Spec("trait", "", name, REQUIRED, f"image property {key}")


def refusal(request: Request, exc: BadRequest) -> BadInput:
    """Return the input error behind a refusal of Placement.

    Names in the refusal, such as a trait that does not exist, are traced to their
    origins.
    """
    words = set(re.findall(r"\w+", exc.detail))
    origins = [spec.origin for spec in request.specs if spec.name in words]
    named = f"{', '.join(origins)}: " if origins else ""
    return BadInput(f"{named}Placement refuses this: {exc.reason}")


def _warnings(specs: Iterable[Spec], policy: str | None) -> Iterator[str]:
    for spec in specs:
        if spec.objection:
            yield f"{spec.origin} = {spec.value!r}: {spec.objection}"
    if policy is not None and policy not in POLICIES:
        yield (
            f"flavor extra spec {GROUP_POLICY} = {policy!r}: "
            "the value is neither 'none' nor 'isolate'"
        )


def _amounts(specs: Iterable[Spec]) -> list[Spec]:
    return [spec for spec in specs if spec.kind == "resources"]


def _implicit(
    flavor: Flavor, volume_backed: bool, amounts: Iterable[Spec]
) -> dict[str, int]:
    """Return the amounts of a flavor's own members, except for classes it names."""
    named = {spec.name for spec in amounts}
    swap_gb = -(-flavor.swap_mb // MIB_PER_GIB)
    root_gb = 0 if volume_backed else flavor.root_gb
    own_amounts = {
        "VCPU": flavor.vcpus,
        "MEMORY_MB": flavor.memory_mb,
        "DISK_GB": flavor.ephemeral_gb + swap_gb + root_gb,
    }
    if "PCPU" in named:
        named.add("VCPU")
    return {name: amount for name, amount in own_amounts.items() if name not in named}


def _groups(specs: Sequence[Spec], implicit: Mapping[str, int]) -> dict[str, Group]:
    """Return the groups that are not empty, by suffix."""
    groups = {}
    for suffix in sorted({"", *(spec.suffix for spec in specs)}):
        mine = [spec for spec in specs if spec.suffix == suffix]
        amounts = {spec.name: int(spec.value) for spec in _amounts(mine)}
        if not suffix:
            amounts.update(implicit)
        groups[suffix] = Group(
            {name: amount for name, amount in sorted(amounts.items()) if amount},
            _traits(mine, REQUIRED),
            _traits(mine, FORBIDDEN),
        )
    return {suffix: group for suffix, group in groups.items() if group != Group()}


def _traits(specs: Iterable[Spec], value: str) -> frozenset[str]:
    traits = (spec for spec in specs if spec.kind == "trait" and spec.value == value)
    return frozenset(spec.name for spec in traits)


def _parameters(suffix: str, group: Group) -> Iterator[tuple[str, str]]:
    if group.resources:
        amounts = sorted(group.resources.items())
        value = ",".join(f"{name}:{amount}" for name, amount in amounts)
        yield f"resources{suffix}", value
    if group.required or group.forbidden:
        forbidden = (f"!{name}" for name in sorted(group.forbidden))
        yield f"required{suffix}", ",".join([*sorted(group.required), *forbidden])
    for value in group.member_of:
        yield f"member_of{suffix}", value


def _problems(request: Request) -> Iterator[str]:
    """Yield the reasons for which Placement would refuse a request."""
    traits = [spec for spec in request.specs if spec.kind == "trait"]
    yield from _trait_problems(request, traits)
    if not any(group.resources for group in request.groups.values()):
        yield (
            "flavor: it has no amounts, neither by vcpus, memory_mb and disks nor "
            "by resources:…"
        )
        return
    yield from _group_problems(request, traits)


def _trait_problems(request: Request, traits: Iterable[Spec]) -> Iterator[str]:
    for spec in traits:
        if not TRAIT_NAME.fullmatch(spec.name):
            yield f"{spec.origin}: {spec.name!r} cannot be the name of a trait"
    for suffix, group in request.groups.items():
        for name in sorted(group.required & group.forbidden):
            yield f"{name} is {_both(traits, suffix, name)}"


def _group_problems(request: Request, traits: Iterable[Spec]) -> Iterator[str]:
    for suffix, group in request.groups.items():
        if not group.resources:
            yield _without_resources(traits, suffix)
    suffixed = [suffix for suffix in request.groups if suffix]
    if len(suffixed) > 1 and not request.group_policy:
        keys = ", ".join(f"resources{suffix}:…" for suffix in suffixed)
        yield (
            f"flavor extra specs {keys}: more than one group, and no group_policy; "
            "it is none or isolate"
        )


def _both(traits: Iterable[Spec], suffix: str, name: str) -> str:
    """Return which inputs require a trait and which forbid it."""
    mine = [spec for spec in traits if (spec.suffix, spec.name) == (suffix, name)]
    return " and ".join(
        f"{value} by {', '.join(spec.origin for spec in mine if spec.value == value)}"
        for value in (REQUIRED, FORBIDDEN)
    )


def _without_resources(traits: Iterable[Spec], suffix: str) -> str:
    """Return which inputs use a group that has no amounts."""
    asking: Collection[str] = [
        spec.origin for spec in traits if spec.suffix == suffix
    ] or ["a rule about aggregates"]
    return f"{', '.join(asking)}: there is no amount of any resources{suffix}:…"
