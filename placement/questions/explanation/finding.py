"""Which providers of a host meet a constraint, and which comes closest to it."""

import dataclasses
from collections import Counter
from collections.abc import Container, Sequence
from typing import TypeAlias

from placement.model.allocation import Holder
from placement.model.constraint import Constraint, Room
from placement.model.inventory import InventoryUsage
from placement.model.tree import Provider, Tree
from placement.questions.explanation.survey import Survey

# How many of the constraints of a group, given by suffix, a provider meets.
Met: TypeAlias = Counter[tuple[str | None, Provider]]


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Which providers of a host meet a constraint, and the closest that does not.

    A constraint on all groups together is not about providers: both are empty. It is
    ``met`` if it does not keep the host out. ``holders`` are the consumers with most of
    the ``room``, None if they were not requested.
    """

    constraint: Constraint
    met: bool
    meeting: tuple[Provider, ...] = ()
    closest: Provider | None = None
    holders: Sequence[Holder] | None = None

    @property
    def room(self) -> InventoryUsage | None:
        """The inventory of the closest provider, if it has too little room."""
        if self.closest and isinstance(self.constraint, Room):
            return self.constraint.inventory_of(self.closest)
        return None


def judge(
    asked: Survey, tree: Tree, unmet: Container[Constraint] = ()
) -> dict[Constraint, Verdict]:
    """Return the verdict on each constraint for a host.

    :param unmet: those that keep it out
    """
    reach = asked.reach(tree)
    meeting = {
        constraint: meeting_of(constraint, tree, reach)
        for constraint in asked.relaxations.constraints
    }
    met = Counter(
        (constraint.suffix, provider)
        for constraint, providers in meeting.items()
        for provider in providers or ()
    )
    return {
        constraint: Verdict(
            constraint,
            constraint not in unmet,
            providers or (),
            _closest(constraint, tree, reach, providers, met),
        )
        for constraint, providers in meeting.items()
    }


def meeting_of(
    constraint: Constraint, tree: Tree, reach: Sequence[Provider]
) -> tuple[Provider, ...] | None:
    """Return the providers of a host that meet a constraint by themselves.

    :returns: the providers; None if it is about all groups together
    """
    if constraint.of_root:
        return tuple(filter(constraint.meets, [tree.root]))
    if constraint.suffix is None:
        return None
    if not constraint.suffix:
        is_met = constraint.meets(tree.root)
        if constraint.of_anchor and not is_met:
            return ()
        if constraint.of_tree and is_met:
            members = frozenset(tree.members)
            return tuple(
                each for each in reach if each in members or constraint.meets(each)
            )
    return tuple(filter(constraint.meets, reach))


def _closest(
    constraint: Constraint,
    tree: Tree,
    reach: Sequence[Provider],
    meeting: tuple[Provider, ...] | None,
    met: Met,
) -> Provider | None:
    """Return which of the providers that do not meet a constraint comes closest."""
    if meeting is None:
        return None
    if constraint.of_root:
        return None if meeting else tree.root
    return max(
        (provider for provider in reach if provider not in meeting),
        # The first one wins a tie.
        key=lambda each: _closeness(constraint, each, met),
        default=None,
    )


def _closeness(
    constraint: Constraint, provider: Provider, met: Met
) -> tuple[bool, int, int]:
    """Return how close a provider comes to the constraints of a group.

    A provider without the class is never the closest to having an amount of it.
    """
    inventory = provider.inventories.get(constraint.resource_class or "")
    return (
        inventory is not None,
        met[constraint.suffix, provider],
        inventory.free if inventory else 0,
    )
