"""The constraints on several picks, one function each.

Each is about a pick together with the picks before it. If a pick breaks one, further
picks never repair it. Constraints on single providers are in
``placement.model.constraint``.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from placement.model.constraint import Constraint
from placement.model.tree import Provider
from placement.search.plan import Plan, Slot
from placement.search.state import State

PickRule: TypeAlias = Callable[[State, Slot, Provider], bool]


def select(
    providers: Sequence[Provider], constraints: Iterable[Constraint]
) -> Sequence[Provider]:
    """Return the providers that meet some constraints, each by itself."""
    for constraint in constraints:
        providers = [each for each in providers if constraint.meets(each)]
    return providers


def meets(provider: Provider, constraints: Iterable[Constraint]) -> bool:
    """Return whether a provider meets some constraints."""
    # For so few, a generator takes longer.
    for constraint in constraints:  # noqa: SIM110
        if not constraint.meets(provider):
            return False
    return True


def leaves_room(state: State, slot: Slot, provider: Provider) -> bool:
    """A provider has room for what all groups take from it together.

    ``group_policy=isolate``: no provider serves two suffixed groups. Each provider
    has one unit of :data:`plan.ISOLATION` for them.
    """
    # For so few, a generator takes longer.
    for which, amount in slot.demands:  # noqa: SIM110
        if amount > state.left[which][provider]:
            return False
    return True


def reaches_top(state: State, slot: Slot, provider: Provider) -> bool:
    """``same_subtree``: one of the providers is the others' ancestor, or the same.

    That ancestor is already decided; it must still serve one of the slots.
    """
    for which in slot.subtrees:
        top = state.tops[which]
        if top is None or top is provider:
            continue
        members = state.plan.subtrees[which]
        if not any(
            may_be_top(state, state.plan.slots[member], top)
            for member in members
            if member != slot.number
        ):
            return False
    return True


def may_be_top(state: State, slot: Slot, top: Provider) -> bool:
    """Return whether the top of a ``same_subtree`` serves a slot, or may serve it."""
    pick = state.picks[slot.number]
    if pick:
        return pick is top
    return top in state.domains[slot.number] and leaves_room(state, slot, top)


def reaches_traits(state: State, slot: Slot, provider: Provider) -> bool:
    """``required`` without suffix: some provider of the group has each trait."""
    have = state.have | state.bits_of(slot, provider)
    return state.may_follow(slot, state.wanted & ~have)


def gives_alone(state: State, slot: Slot, provider: Provider) -> bool:
    """Before 1.29, a candidate uses at most one provider of each tree."""
    if not slot.amounts:
        return True
    used = state.used_in(provider.root_uuid)
    return used is None or used is provider


def pick_rules(plan: Plan, wanted: int) -> tuple[PickRule, ...]:
    """Return the rules by which the picks of a plan can exclude each other.

    :param wanted: the bits that all picks together must have
    """
    rules: dict[PickRule, object] = {
        leaves_room: plan.contended,
        reaches_top: plan.subtrees,
        reaches_traits: wanted,
        gives_alone: not plan.nested and len(plan.slots) > 1,
    }
    return tuple(rule for rule, matters in rules.items() if matters)
