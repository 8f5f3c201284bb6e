"""The constraints on allocation candidates, one function each.

The first are unary: they are about one provider by itself. The others are about a pick
together with the picks before it. If a pick breaks one, further picks never repair it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from placement.model.request import Group, Request
from placement.model.tree import Provider
from placement.search.plan import Plan, Slot, Want
from placement.search.state import State

ProviderRule: TypeAlias = Callable[[Provider, Want], bool]
PickRule: TypeAlias = Callable[[State, Slot, Provider], bool]


def fits(provider: Provider, want: Want) -> bool:
    """``resources``: one provider has inventory and room for each amount."""
    return bool(with_room((provider,), want.resources))


def with_room(
    providers: Sequence[Provider], resources: Iterable[tuple[str, int]]
) -> Sequence[Provider]:
    """Return the providers from which each of some amounts can be allocated."""
    for name, amount in resources:
        providers = [each for each in providers if each.gives(name, amount)]
    return providers


def fits_in_part(provider: Provider, want: Want) -> bool:
    """``resources``, as far as they still matter in a relaxed group."""
    for part in want.parts:
        inventory = provider.inventories.get(part.resource_class)
        if inventory is None:
            return False
        if part.unit and not inventory.suits(part.amount):
            return False
        if part.room and not inventory.holds(part.amount):
            return False
    return True


def has_required_traits(provider: Provider, want: Want) -> bool:
    """``required``: a provider has each trait, or one of those after ``in:``."""
    return bool(with_traits((provider,), want.required))


def with_traits(
    providers: Sequence[Provider], required: Iterable[frozenset[str]]
) -> Sequence[Provider]:
    """Return the providers that have one trait of each of some sets."""
    for one_of in required:
        providers = [
            provider for provider in providers if not one_of.isdisjoint(provider.traits)
        ]
    return providers


def has_no_forbidden_trait(provider: Provider, want: Want) -> bool:
    """``required=!``: no provider has any of the traits."""
    return want.forbidden.isdisjoint(provider.traits)


def is_member(provider: Provider, want: Want | Group) -> bool:
    """``member_of``: a provider is in each aggregate, or one of those after ``in:``.

    For the group without suffix, a tree whose root is a member counts as a whole.
    """
    return not any(one_of.isdisjoint(provider.aggregates) for one_of in want.member_of)


def is_no_member(provider: Provider, want: Want) -> bool:
    """``member_of=!``: a provider is in none of the aggregates.

    For the group without suffix, neither is the anchor.
    """
    return want.not_member_of.isdisjoint(provider.aggregates)


def is_in_tree(provider: Provider, want: Want) -> bool:
    """``in_tree``: a provider is in the same tree as the one that it names."""
    return want.root_uuid in (None, provider.root_uuid)


def rules_of(want: Want) -> tuple[ProviderRule, ...]:
    """Return the rules that can refuse a provider for a want."""
    rules: dict[ProviderRule, object] = {
        is_in_tree: want.root_uuid,
        is_member: want.member_of,
        is_no_member: want.not_member_of,
        fits: want.resources,
        fits_in_part: want.parts,
        has_required_traits: want.required,
        has_no_forbidden_trait: want.forbidden,
    }
    return tuple(rule for rule, matters in rules.items() if matters)


def anchor_rules_of(want: Want) -> tuple[ProviderRule, ...]:
    """Return the rules that are about the anchor as well as the provider."""
    about_both = (is_in_tree, is_no_member) if want.spreads else ()
    return tuple(rule for rule in rules_of(want) if rule in about_both)


def select(
    providers: Sequence[Provider], want: Want, rules: Iterable[ProviderRule]
) -> Sequence[Provider]:
    """Return the providers that suit a want."""
    for rule in rules:
        # The usual rules have a loop of their own.
        if rule is fits:
            providers = with_room(providers, want.resources)
        elif rule is has_required_traits:
            providers = with_traits(providers, want.required)
        else:
            providers = [provider for provider in providers if rule(provider, want)]
    return providers


def suits_root(root: Provider, request: Request) -> bool:
    """``root_required``: the anchor has all of the traits, and none after ``!``."""
    return request.root_required <= root.traits and request.root_forbidden.isdisjoint(
        root.traits
    )


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

    It was decided before which one; it must still serve one of the slots.
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
