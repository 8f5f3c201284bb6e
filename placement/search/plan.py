"""A request, made ready to be searched for."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator

from placement.search.model import Group, Provider, Request, Snapshot

# What ``group_policy=isolate`` makes of each provider: something that has one seat,
# and each suffixed group takes a seat. So it is a class like those of resources.
SEAT = "group_policy=isolate"


@dataclasses.dataclass(frozen=True, slots=True)
class Want:
    """What a provider must be like to be picked, whoever else is.

    ``spreads`` says that the want is one of the group without suffix, which looks at
    the anchor as well. ``root_uuid`` is that of the only tree to pick from.
    """

    resources: tuple[tuple[str, int], ...]
    required: tuple[frozenset[str], ...]
    forbidden: frozenset[str]
    member_of: tuple[frozenset[str], ...]
    not_member_of: frozenset[str]
    root_uuid: str | None
    spreads: bool


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A place for one provider in a candidate.

    A suffixed group has one slot, the group without suffix one for each class.
    ``want`` counts the plan's wants. ``demands`` are the amounts by number of a
    contended class, and ``share`` is how much that is of what all slots demand.
    ``subtrees`` are the numbers of the ``same_subtree`` it is named in.
    """

    number: int
    suffix: str
    want: int
    amounts: tuple[tuple[str, int], ...]
    demands: tuple[tuple[int, int], ...]
    share: float
    subtrees: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A request, made ready to be searched for.

    A class is ``contended`` if several slots want some of it: only then can one pick
    leave too little for another. ``subtrees`` has the numbers of the slots that each
    ``same_subtree`` names. ``spread_traits`` are required of the group without
    suffix, whichever of its providers have them.
    """

    wants: tuple[Want, ...]
    slots: tuple[Slot, ...]
    contended: tuple[str, ...]
    subtrees: tuple[tuple[int, ...], ...]
    spread_traits: tuple[frozenset[str], ...]
    nested: bool

    def room(self, which: int, provider: Provider) -> int:
        """Return how much of a contended class a provider has for a candidate."""
        name = self.contended[which]
        return 1 if name == SEAT else provider.stocks[name].room

    @property
    def bound(self) -> int:
        """The bit of a provider that serves its own tree only."""
        return 1 << len(self.spread_traits)

    def bits_of(self, slot: Slot, provider: Provider) -> int:
        """Return what a pick has of what picks may have to have together, as bits.

        There is one for each of the spread traits, and ``bound``.
        """
        bits = 0 if provider.shares else self.bound
        if not slot.suffix:
            for number, one_of in enumerate(self.spread_traits):
                if not one_of.isdisjoint(provider.traits):
                    bits |= 1 << number
        return bits


def make(snapshot: Snapshot, request: Request) -> Plan | None:
    """Return the plan of a request; None if no provider can serve one of its groups."""
    if not all(_is_servable(group, snapshot) for group in request.groups):
        return None
    needs = [
        (group.suffix, want)
        for group in request.groups
        for want in _wants(group, snapshot)
    ]
    distinct = dict.fromkeys(want for _, want in needs)
    wants = {want: number for number, want in enumerate(distinct)}
    demands = [_demands(suffix, want, request) for suffix, want in needs]
    contended = _contended(demands)
    totals: Counter[str] = Counter()
    for name, amount in itertools.chain.from_iterable(demands):
        totals[name] += amount
    subtrees = list(_subtrees([suffix for suffix, _ in needs], request))
    slots = [
        Slot(
            number=number,
            suffix=suffix,
            want=wants[want],
            amounts=want.resources,
            demands=tuple(
                (contended.index(name), amount)
                for name, amount in demands[number]
                if name in contended
            ),
            share=sum(amount / totals[name] for name, amount in demands[number]),
            subtrees=tuple(
                which for which, members in enumerate(subtrees) if number in members
            ),
        )
        for number, (suffix, want) in enumerate(needs)
    ]
    return Plan(
        wants=tuple(wants),
        slots=tuple(slots),
        contended=tuple(contended),
        subtrees=tuple(subtrees),
        spread_traits=_spread_traits(request),
        nested=request.nested,
    )


def _is_servable(group: Group, snapshot: Snapshot) -> bool:
    """Tell whether the data, and what the group says, leave it a chance.

    A group without resources has to say something positive.
    """
    if group.in_tree is not None and group.in_tree not in snapshot.homes:
        return False
    return bool(group.resources or group.required or group.member_of)


def _spreads(group: Group) -> bool:
    """Tell whether several providers may serve a group together."""
    return not group.suffix and len(group.resources) > 1


def _wants(group: Group, snapshot: Snapshot) -> Iterator[Want]:
    """Return what the providers of a group must be like, one want for each slot."""
    root_uuid = None
    if group.in_tree is not None and group.resources:
        # Without resources, the parameter has no effect.
        root_uuid = snapshot.homes[group.in_tree].root.uuid
    amounts = tuple(group.resources.items())
    for resources in [amounts] if group.suffix else [(each,) for each in amounts]:
        yield Want(
            resources=resources,
            required=() if _spreads(group) else group.required,
            forbidden=group.forbidden,
            member_of=group.member_of,
            not_member_of=group.not_member_of,
            root_uuid=root_uuid,
            spreads=not group.suffix,
        )


def _demands(suffix: str, want: Want, request: Request) -> list[tuple[str, int]]:
    seats = [(SEAT, 1)] if suffix and request.isolate else []
    return [*want.resources, *seats]


def _contended(demands: Iterable[Iterable[tuple[str, int]]]) -> list[str]:
    demanding = Counter(name for of_slot in demands for name, _ in of_slot)
    return [name for name, count in demanding.items() if count > 1]


def _subtrees(suffixes: list[str], request: Request) -> Iterator[tuple[int, ...]]:
    """Return the numbers of the slots that each ``same_subtree`` binds to each other.

    One that names a single group binds nothing.
    """
    for names in dict.fromkeys(request.same_subtree):
        if len(names) > 1:
            yield tuple(
                number for number, suffix in enumerate(suffixes) if suffix in names
            )


def _spread_traits(request: Request) -> tuple[frozenset[str], ...]:
    return tuple(
        one_of
        for group in request.groups
        if _spreads(group)
        for one_of in dict.fromkeys(group.required)
    )
