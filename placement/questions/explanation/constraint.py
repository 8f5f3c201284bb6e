"""The constraints of a request: what each means for a host, and its words.

All that a kind of constraint is stands in its class: which parts of a request it is
about, what a provider must have, and how that is said. The request without it is made
by ``relaxation``.
"""

# The methods of a kind are those of ``Constraint``, which says what they return.
# ruff: noqa: D102

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

from placement.model.inventory import InventoryUsage
from placement.model.request import Group, Request
from placement.model.tree import Provider, Tree

Value: TypeAlias = str | int | tuple[str, ...] | None
# What is needed, or what is there, in the form for a document.
Shown: TypeAlias = Any

# The kinds that are about the root of a tree, and those about all groups together.
OF_ROOT = ("root_required", "root_forbidden")
OF_ALL = ("together", "isolate", "same_subtree")
# The kinds that are about an amount of a class.
OF_AMOUNT = ("unit", "room")
# How many groups are named.
MOST_NAMED = 5


def joined(words: Sequence[str], last: str = "and") -> str:
    """Join words as in speech: a, b and c."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def group_of(suffix: str | None) -> str:
    """Return the phrase that names a group at the end of a clause, if it has a name."""
    return f" for group {suffix}" if suffix else ""


@dataclasses.dataclass(frozen=True, slots=True)
class Constraint:
    """One thing that a request asks for.

    ``suffix`` belongs to the group that asks for it; None stands for all groups.
    ``value`` is a name, an amount, or several names of which one will do. It
    ``forbids`` what it names, or requires it. It ``is_testable`` if one look at the
    providers of a host shows whether the host lacks what it names.
    """

    kind: ClassVar[str] = ""
    forbids: ClassVar[bool] = False
    is_testable: ClassVar[bool] = False

    suffix: str | None
    value: Value
    resource_class: str | None = None

    @property
    def id(self) -> str:
        """Its identifier, unique in the request."""
        value = self.value
        if self.resource_class is not None:
            value = self.resource_class
        elif isinstance(value, tuple):
            value = ",".join(value)
        name = f"{self.kind}{self.suffix or ''}"
        return name if value is None or self.kind == "together" else f"{name}:{value}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of which one will do, if it has several."""
        return self.value if isinstance(self.value, tuple) else ()

    @property
    def needs(self) -> Shown:
        """What is needed."""
        return f"!{self.value}" if self.forbids else self.value

    @property
    def group(self) -> str:
        """The phrase that names its group, if the group has a name."""
        return group_of(self.suffix)

    @property
    def serves(self) -> str:
        """The verb of a provider that serves its group."""
        return f"serves group {self.suffix}" if self.suffix else "serves"

    def text(self) -> str:
        """Return it as a sentence without a full stop."""
        raise NotImplementedError

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        """Return what hosts that it keeps out lack, as a predicate.

        :param classes: those that one provider would have to have
        """
        raise NotImplementedError

    def thing(self) -> str:
        """Return what to do without if it is left out, if that is a thing."""
        return ""

    def instead(self) -> str:
        """Return what it means to leave it out, if that is no thing."""
        return f"do without {self.thing()}"

    def meets(self, provider: Provider, classes: Collection[str]) -> bool:
        """Return whether a provider has what it names."""
        raise NotImplementedError

    def lacks(
        self, tree: Tree, reach: Iterable[Provider], classes: Collection[str]
    ) -> bool:
        """Return whether a host lacks what it names.

        :param reach: the providers of the tree, and those that share with it
        :param classes: those that one provider would have to have
        """
        return not any(self.meets(each, classes) for each in reach)

    def has(self, provider: Provider) -> Shown:
        """Return what a provider that does not meet it has instead."""
        return self.value if self.forbids else None

    def inventory_of(self, provider: Provider) -> InventoryUsage | None:
        """Return the inventory of a provider that its amount is about, if any."""
        if self.kind not in OF_AMOUNT:
            return None
        return provider.inventories.get(self.resource_class or "")


class RootRequired(Constraint):
    """``root_required``: the root has a trait."""

    __slots__ = ()
    kind = "root_required"

    def text(self) -> str:
        return f"the host itself has {self.value}"

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        return f"{_lack(plural)} {self.value}"

    def thing(self) -> str:
        return str(self.value)

    def meets(self, provider: Provider, classes: Collection[str]) -> bool:
        return self.value in provider.traits

    def has(self, provider: Provider) -> Shown:
        return []


class TraitForbidden(Constraint):
    """``required=!``: no provider of the group has a trait."""

    __slots__ = ()
    kind = "forbidden"
    forbids = True
    is_testable = True

    def text(self) -> str:
        return f"no provider that {self.serves} has {self.value}"

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        return f"{_have(plural)} {self.value}, which is forbidden{self.group}"

    def instead(self) -> str:
        return f"put up with {self.value}{self.group}"

    def meets(self, provider: Provider, classes: Collection[str]) -> bool:
        return self.value not in provider.traits

    def lacks(
        self, tree: Tree, reach: Iterable[Provider], classes: Collection[str]
    ) -> bool:
        return not all(self.meets(each, classes) for each in tree.members)


class RootForbidden(TraitForbidden):
    """``root_required=!``: the root does not have a trait."""

    __slots__ = ()
    kind = "root_forbidden"
    is_testable = False

    def text(self) -> str:
        return f"the host itself does not have {self.value}"


class HasInventory(Constraint):
    """``resources``: there is inventory of a class."""

    __slots__ = ()
    kind = "inventory"
    is_testable = True

    def text(self) -> str:
        return f"there is {self.thing()}"

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        provider = "provider with " if len(classes) > 1 else ""
        return f"{_have(plural)} no {provider}{joined(classes)}{self.group}"

    def thing(self) -> str:
        return f"{self.resource_class}{self.group}"

    def meets(self, provider: Provider, classes: Collection[str]) -> bool:
        return provider.inventories.keys() >= set(classes)

    def has(self, provider: Provider) -> Shown:
        return sorted(provider.inventories)


class InTree(Constraint):
    """``in_tree``: the provider is in the tree of another."""

    __slots__ = ()
    kind = "in_tree"
    is_testable = True

    def text(self) -> str:
        return f"what {self.serves} is in the tree of {self.value}"

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        belong = "belong" if plural else "belongs"
        return f"{belong} to another tree than that of {self.value}{self.group}"

    def instead(self) -> str:
        return f"look at all hosts, not only that of {self.value}{self.group}"

    def lacks(
        self, tree: Tree, reach: Iterable[Provider], classes: Collection[str]
    ) -> bool:
        return all(each.uuid != self.value for each in tree.members)

    def has(self, provider: Provider) -> Shown:
        return provider.root_uuid


class MemberOf(Constraint):
    """``member_of``: the provider is in one of some aggregates."""

    __slots__ = ()
    kind = "member_of"
    is_testable = True

    def text(self) -> str:
        return f"what {self.serves} is in aggregate {joined(self.names, 'or')}"

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        outside = f"aggregate {self.names[0]}"
        if len(self.names) > 1:
            outside = f"the {len(self.names)} aggregates that were named"
        return f"{_are(plural)} outside {outside}{self.group}"

    def instead(self) -> str:
        named = "aggregate" if len(self.names) == 1 else "aggregates"
        return f"look outside {named} {joined(self.names)}{self.group}"

    def meets(self, provider: Provider, classes: Collection[str]) -> bool:
        return not provider.aggregates.isdisjoint(self.names)

    def has(self, provider: Provider) -> Shown:
        return sorted(provider.aggregates)


class NotMemberOf(Constraint):
    """``member_of=!``: the provider is not in an aggregate, nor is the root."""

    __slots__ = ()
    kind = "not_member_of"
    forbids = True
    is_testable = True

    def text(self) -> str:
        return f"what {self.serves} is not in aggregate {self.value}"

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        return (
            f"{_are(plural)} in aggregate {self.value}, which is ruled out{self.group}"
        )

    def instead(self) -> str:
        return f"look in aggregate {self.value} as well{self.group}"

    def lacks(
        self, tree: Tree, reach: Iterable[Provider], classes: Collection[str]
    ) -> bool:
        return self.value in tree.root.aggregates


class TraitRequired(Constraint):
    """``required``: a provider has one of some traits."""

    __slots__ = ()
    kind = "required"
    is_testable = True

    def text(self) -> str:
        return f"one provider that {self.serves} has {joined(self.names, 'or')}"

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        if self.suffix:
            return f"{_have(plural)} no provider with {self.thing()}"
        if len(self.names) == 1:
            return f"{_lack(plural)} {self.names[0]}"
        return f"{_have(plural)} none of {joined(self.names)}"

    def thing(self) -> str:
        return f"{joined(self.names, 'or')}{self.group}"

    def meets(self, provider: Provider, classes: Collection[str]) -> bool:
        return not provider.traits.isdisjoint(self.names)

    def has(self, provider: Provider) -> Shown:
        return []


class _Amount(Constraint):
    """A constraint on an amount of a class."""

    __slots__ = ()
    is_testable = True

    @property
    def amount(self) -> int:
        """How much is asked for."""
        return int(str(self.value))

    @property
    def said(self) -> str:
        """The amount and its class."""
        return f"{self.value} {self.resource_class}"

    def meets(self, provider: Provider, classes: Collection[str]) -> bool:
        inventory = self.inventory_of(provider)
        return inventory is not None and self.is_met_by(inventory)

    def is_met_by(self, inventory: InventoryUsage) -> bool:
        """Return whether an inventory has the amount, as far as this is about it."""
        raise NotImplementedError


class Unit(_Amount):
    """``resources``: one consumer may have an amount of a class."""

    __slots__ = ()
    kind = "unit"

    def text(self) -> str:
        return f"one consumer may have {self.said}{self.group}"

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        refuse = "refuse" if plural else "refuses"
        return f"{refuse} {self.said} to one consumer{self.group}"

    def instead(self) -> str:
        return f"let one consumer have {self.said}{self.group}"

    def is_met_by(self, inventory: InventoryUsage) -> bool:
        return inventory.suits(self.amount)

    def has(self, provider: Provider) -> Shown:
        inventory = self.inventory_of(provider)
        names = ("min_unit", "max_unit", "step_size")
        return inventory and {name: getattr(inventory, name) for name in names}


class Room(_Amount):
    """``resources``: an amount of a class is free."""

    __slots__ = ()
    kind = "room"

    def text(self) -> str:
        are = "is" if self.value == 1 else "are"
        return f"{self.said} {are} free on one provider{self.group}"

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        return f"{_have(plural)} less than {self.said} free on one provider{self.group}"

    def instead(self) -> str:
        if self.suffix:
            # Room alone may not do for what several groups take together.
            return f"count {self.said}{self.group} as nothing"
        return f"make room for {self.said}"

    def is_met_by(self, inventory: InventoryUsage) -> bool:
        return inventory.holds(self.amount)

    def has(self, provider: Provider) -> Shown:
        inventory = self.inventory_of(provider)
        return max(0, inventory.free) if inventory else 0


class _OfGroups(Constraint):
    """A constraint on groups, given by their suffixes."""

    __slots__ = ()

    @property
    def groups(self) -> str:
        """The names of the groups as a phrase: groups 1 and 2."""
        named = [suffix or "without suffix" for suffix in self.names]
        if len(named) > MOST_NAMED:
            named[MOST_NAMED - 1 :] = [f"{len(named) - MOST_NAMED + 1} more"]
        return f"group {named[0]}" if len(named) == 1 else f"groups {joined(named)}"


class Together(_OfGroups):
    """Several groups: one host serves all of them."""

    __slots__ = ()
    kind = "together"

    def text(self) -> str:
        return f"one host serves {self.groups} at the same time"

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        return f"cannot serve {self.groups} at the same time"

    def instead(self) -> str:
        return f"ask for {self.groups} one by one"


class Isolate(Constraint):
    """``group_policy=isolate``: each group with a suffix has its own provider."""

    __slots__ = ()
    kind = "isolate"

    def text(self) -> str:
        return "each group with a suffix has a provider of its own"

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        return "cannot give each group a provider of its own"

    def instead(self) -> str:
        return "let groups share a provider (group_policy=none)"


class SameSubtree(_OfGroups):
    """``same_subtree``: some groups are served below one provider."""

    __slots__ = ()
    kind = "same_subtree"

    def text(self) -> str:
        return f"{self.groups} are served from one subtree"

    def lack(self, classes: Sequence[str], *, plural: bool) -> str:
        return f"cannot serve {self.groups} from one subtree"

    def instead(self) -> str:
        return f"do not ask for {self.groups} in one subtree"


# All kinds. Where several could be to blame, the earliest here is.
TO_BLAME = tuple(
    each.kind
    for each in (
        SameSubtree,
        Isolate,
        Together,
        Room,
        Unit,
        TraitForbidden,
        NotMemberOf,
        MemberOf,
        TraitRequired,
        InTree,
        RootForbidden,
        RootRequired,
        HasInventory,
    )
)


def _have(plural: bool) -> str:
    return "have" if plural else "has"


def _lack(plural: bool) -> str:
    return "lack" if plural else "lacks"


def _are(plural: bool) -> str:
    return "are" if plural else "is"


def constraints_of(request: Request) -> tuple[Constraint, ...]:
    """Return the constraints of a request, in the order of the funnel."""
    listed = [*_of_root(request)]
    for group in request.groups:
        listed += _of_group(group)
    return tuple(dict.fromkeys([*listed, *_of_all(request)]))


def classes_so_far(
    constraints: Sequence[Constraint], constraint: Constraint
) -> list[str]:
    """Return the classes that one provider must have once a class is considered.

    The group without suffix takes them from any provider.
    """
    classes = [
        str(each.resource_class)
        for each in constraints[: constraints.index(constraint) + 1]
        if each.kind == "inventory" and each.suffix == constraint.suffix
    ]
    return classes if constraint.suffix else classes[-1:]


def weight(some: Iterable[Constraint]) -> int:
    """Return how far from serving a host is that does not meet some constraints.

    Those on the amount of a class count once, and a class that is not there counts for
    more than too little of it.
    """
    some = tuple(some)
    others = [each for each in some if each.kind not in OF_AMOUNT]
    gone = {
        (each.suffix, each.resource_class)
        for each in others
        if each.kind == "inventory"
    }
    amounts = {
        (each.suffix, each.resource_class) for each in some if each.kind in OF_AMOUNT
    }
    return len(amounts - gone) + len(others) + len(gone)


def _of_root(request: Request) -> Iterator[Constraint]:
    for name in sorted(request.root_required):
        yield RootRequired(None, name)
    for name in sorted(request.root_forbidden):
        yield RootForbidden(None, name)


def _of_group(group: Group) -> Iterator[Constraint]:
    suffix = group.suffix
    for name in group.resources:
        yield HasInventory(suffix, name, name)
    if group.in_tree is not None:
        yield InTree(suffix, group.in_tree)
    for one_of in group.member_of:
        yield MemberOf(suffix, tuple(sorted(one_of)))
    for aggregate in sorted(group.not_member_of):
        yield NotMemberOf(suffix, aggregate)
    for one_of in group.required:
        yield TraitRequired(suffix, tuple(sorted(one_of)))
    for name in sorted(group.forbidden):
        yield TraitForbidden(suffix, name)
    for kind in (Unit, Room):
        for name, amount in group.resources.items():
            yield kind(suffix, amount, name)


def _of_all(request: Request) -> Iterator[Constraint]:
    if len(request.groups) > 1:
        yield Together(None, tuple(group.suffix for group in request.groups))
    if request.isolate:
        yield Isolate(None, None)
    for names in request.same_subtree:
        yield SameSubtree(None, tuple(sorted(names)))
