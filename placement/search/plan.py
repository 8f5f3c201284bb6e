"""A request, prepared for the search: its variables and its constraints."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from placement.model import constraint
from placement.model.constraint import Constraint, HasInventory, Resources, Room, Unit
from placement.model.request import Group, Request
from placement.model.tree import Provider, Snapshot, Tree

# ``group_policy=isolate`` as one more resource class: each provider has one unit of it,
# and each suffixed group takes one.
ISOLATION = "group_policy=isolate"
# What is left of a class, whatever its ``max_unit``, as one more class: if a relaxed
# group takes from it, that is what all groups share.
FREE = "free "


@dataclasses.dataclass(frozen=True, slots=True)
class Want:
    """The unary constraints on a slot: what its provider must meet by itself.

    ``resources`` are the amounts without any relaxation, ``taken`` those that a pick
    takes. ``spreads`` says that the want belongs to the group without suffix, which
    also considers the anchor.
    """

    resources: tuple[tuple[str, int], ...]
    taken: tuple[tuple[str, int], ...]
    constraints: tuple[Constraint, ...]
    spreads: bool


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A variable of the search: one provider in a candidate, not yet known.

    A suffixed group has one slot; the group without suffix has one for each class.
    ``want`` is the number of its want in the plan. ``demands`` are the amounts by
    number of a contended class, and ``share`` is their part of what all slots demand.
    ``subtrees`` are the numbers of each ``same_subtree`` that names it.
    """

    number: int
    suffix: str
    want: int
    amounts: tuple[tuple[str, int], ...]
    demands: tuple[tuple[int, int], ...]
    share: float
    subtrees: tuple[int, ...]


class Takers(NamedTuple):
    """The numbers of the slots that want a contended class, and the least amount."""

    numbers: tuple[int, ...]
    least: int


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The variables of a request, and what constrains them, or the root of a tree.

    A class is ``contended`` if several slots want some of it: only then can one pick
    leave too little for another. ``takers`` are these slots, for each such class.
    ``subtrees`` has the numbers of the slots that each ``same_subtree`` names. The
    group without suffix requires ``spread_traits``, whichever of its providers have
    them. It ``is_free`` if picks exclude each other only by these, if at all; ``bound``
    is the bit of a provider that serves only its own tree.
    """

    of_root: tuple[Constraint, ...]
    wants: tuple[Want, ...]
    slots: tuple[Slot, ...]
    contended: tuple[str, ...]
    takers: tuple[Takers, ...]
    subtrees: tuple[tuple[int, ...], ...]
    spread_traits: tuple[frozenset[str], ...]
    nested: bool
    is_free: bool
    bound: int

    def room(self, which: int, provider: Provider) -> int:
        """Return how much of a contended class a provider has for a candidate."""
        name = self.contended[which]
        if name == ISOLATION:
            return 1
        inventory = provider.inventories.get(name.removeprefix(FREE))
        if inventory is None:
            return 0
        return inventory.free if name.startswith(FREE) else inventory.room

    def bits_of(self, slot: Slot, provider: Provider) -> int:
        """Return what a pick contributes to the constraints on all picks together.

        There is a bit for each of the spread traits, and ``bound``.
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
        for want in wants_of(group, snapshot.tree_by_uuid)
    ]
    distinct = dict.fromkeys(want for _, want in needs)
    wants = {want: number for number, want in enumerate(distinct)}
    free = frozenset().union(
        *(group.any_unit - group.no_room for group in request.groups)
    )
    demands = [_demands(suffix, want, request, free) for suffix, want in needs]
    contended = _contended(demands)
    subtrees = list(_subtrees([suffix for suffix, _ in needs], request))
    slots = _slots(needs, wants, demands, contended, subtrees)
    spread_traits = _spread_traits(request)
    is_single = request.nested or len(slots) < 2
    return Plan(
        of_root=constraint.of_root(request),
        wants=tuple(wants),
        slots=slots,
        contended=tuple(contended),
        takers=tuple([_takers(name, demands) for name in contended]),
        subtrees=tuple(subtrees),
        spread_traits=spread_traits,
        nested=request.nested,
        is_free=is_single and not contended and not subtrees,
        bound=1 << len(spread_traits),
    )


def _slots(
    needs: Sequence[tuple[str, Want]],
    wants: Mapping[Want, int],
    demands: Sequence[Sequence[tuple[str, int]]],
    contended: Sequence[str],
    subtrees: Sequence[Sequence[int]],
) -> tuple[Slot, ...]:
    """Return a slot for each need, which is a suffix and a want.

    :param wants: the number of each want
    :param demands: what each slot takes that others may want, too
    :param subtrees: the numbers of the slots that each ``same_subtree`` names
    """
    totals: Counter[str] = Counter()
    for name, amount in itertools.chain.from_iterable(demands):
        totals[name] += amount
    return tuple(
        [
            Slot(
                number=number,
                suffix=suffix,
                want=wants[want],
                amounts=want.taken,
                # Lists: for so few, a generator takes longer.
                demands=tuple(
                    [
                        (contended.index(name), amount)
                        for name, amount in demands[number]
                        if name in contended
                    ]
                ),
                share=sum([amount / totals[name] for name, amount in demands[number]]),
                subtrees=tuple(
                    [
                        which
                        for which, members in enumerate(subtrees)
                        if number in members
                    ]
                ),
            )
            for number, (suffix, want) in enumerate(needs)
        ]
    )


def _is_servable(group: Group, snapshot: Snapshot) -> bool:
    """Return whether a group can be served, judging by the group alone.

    A group without resources must require a trait or an aggregate, unless it is
    relaxed; ``in_tree`` must name a provider that exists.
    """
    if group.in_tree is not None and group.in_tree not in snapshot.tree_by_uuid:
        return False
    return bool(group.resources or group.required or group.member_of or group.relaxed)


def _spreads(group: Group) -> bool:
    """Return whether several providers may serve a group together."""
    return not group.suffix and len(group.resources) > 1


def wants_of(group: Group, trees: Mapping[str, Tree]) -> Iterator[Want]:
    """Yield the wants of a group, one for each slot.

    :param trees: the trees by the UUIDs of their members
    """
    if _spreads(group):
        group = dataclasses.replace(group, required=())
    qualities = constraint.of_provider(group, trees)
    amounts = tuple(group.resources.items())
    alone = group.suffix or not amounts
    for resources in [amounts] if alone else [(each,) for each in amounts]:
        yield Want(
            resources=_without(resources, group.any_unit | group.no_room),
            taken=_without(resources, group.no_room),
            constraints=(*_of_amounts(resources, group), *qualities),
            spreads=not group.suffix,
        )


def _without(
    resources: tuple[tuple[str, int], ...], names: frozenset[str]
) -> tuple[tuple[str, int], ...]:
    if not names:
        return resources
    return tuple([each for each in resources if each[0] not in names])


def _of_amounts(
    resources: tuple[tuple[str, int], ...], group: Group
) -> Iterator[Constraint]:
    """Yield the constraints on amounts, those of relaxed ones as far as they matter."""
    relaxed = group.any_unit | group.no_room
    plain = _without(resources, relaxed)
    if plain:
        yield Resources(None, plain)
    for name, amount in resources if relaxed else ():
        if name in relaxed:
            yield HasInventory(None, name, name)
            if name not in group.any_unit:
                yield Unit(None, amount, name)
            if name not in group.no_room:
                yield Room(None, amount, name)


def _demands(
    suffix: str, want: Want, request: Request, free: frozenset[str]
) -> list[tuple[str, int]]:
    """Return what a slot takes that others may want, too: amounts by class.

    :param free: the classes from which something is taken whatever ``max_unit`` says
    """
    isolated = [(ISOLATION, 1)] if suffix and request.isolate else []
    taken = want.taken if free else ()
    of_free = [(FREE + name, amount) for name, amount in taken if name in free]
    return [*want.resources, *of_free, *isolated]


def _contended(demands: Iterable[Iterable[tuple[str, int]]]) -> list[str]:
    demanding = Counter(name for of_slot in demands for name, _ in of_slot)
    return [name for name, count in demanding.items() if count > 1]


def _takers(name: str, demands: Sequence[Sequence[tuple[str, int]]]) -> Takers:
    taking = [
        (number, amount)
        for number, of_slot in enumerate(demands)
        for demanded, amount in of_slot
        if demanded == name
    ]
    numbers, amounts = zip(*taking, strict=True)
    return Takers(numbers, min(amounts))


def _subtrees(suffixes: list[str], request: Request) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of the slots that each ``same_subtree`` constrains.

    A ``same_subtree`` that names a single group constrains nothing.
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
