"""The constraints of a request: the meaning of each, and its words.

Everything about a kind of constraint is in its class: which field of a request it comes
from, and how that field is made of constraints; which providers meet it, by which an
index leaves out trees; and the words for that. Constraints on several providers
together are rules in ``placement/search/state.py``.
"""

# The methods of a kind are those of ``Constraint``, which says what they return.
# ruff: noqa: D102

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

from placement.model.inventory import InventoryUsage
from placement.model.request import Group, Request
from placement.model.tree import Provider, Tree

# A name, an amount, or several names.
Value: TypeAlias = Any
# A value that is needed, or one that is present, in the form for a document.
Shown: TypeAlias = Any

# The most groups that a phrase names.
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
    """One requirement of a request.

    ``kind`` names the field of a request or group that it comes from, unless that is
    ``resources``. ``suffix`` belongs to the group that has it; None stands for all
    groups, or for any. ``value`` is a name, an amount, or several names of which one
    will do. It ``forbids`` what it names, or requires it. ``among`` names the field of
    a provider that has the names, if it is about names. It ``is_testable`` if one look
    at the providers of a host shows whether the host lacks what it names.

    It is ``of_root`` if it is about the root of a tree, and ``of_amount`` if it is
    about an amount of a class. Two flags are about the group without suffix: the root
    must meet a constraint ``of_anchor``, too; and if the root meets one ``of_tree``,
    all members of its tree count as meeting it.
    """

    kind: ClassVar[str] = ""
    among: ClassVar[str] = ""
    forbids: ClassVar[bool] = False
    is_testable: ClassVar[bool] = False
    of_root: ClassVar[bool] = False
    of_amount: ClassVar[bool] = False
    of_anchor: ClassVar[bool] = False
    of_tree: ClassVar[bool] = False

    suffix: str | None
    value: Value
    resource_class: str | None = None

    @classmethod
    def values_in(cls, asked: Any) -> Iterable[Value]:
        """Return the values of the constraints of this kind on a request or a group."""
        return sorted(getattr(asked, cls.kind))

    @staticmethod
    def field_of(some: "Sequence[Constraint]") -> Any:
        """Return the field of a request or group with just these constraints."""
        return frozenset([each.value for each in some])

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
        """The names of which one will do, or the only one."""
        return self.value if isinstance(self.value, tuple) else (self.value,)

    @property
    def needs(self) -> Shown:
        """What is needed."""
        return f"!{self.value}" if self.forbids else self.value

    @property
    def amount(self) -> int:
        """The requested amount, if it is about an amount."""
        return int(self.value)

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

    def lack(self, *, plural: bool) -> str:
        """Return the predicate of hosts that it keeps out, such as "lack AVX2"."""
        raise NotImplementedError

    def lack_of_one(self) -> str:
        """Return the predicate of one host, if no other constraint matters."""
        return self.lack(plural=False)

    def thing(self) -> str:
        """Return the noun for what it requires, which ``instead`` needs by default."""
        return ""

    def instead(self) -> str:
        """Return the phrase for leaving it out."""
        return f"do without {self.thing()}"

    def meets(self, provider: Provider) -> bool:
        """Return whether a provider meets it by itself."""
        having: frozenset[str] = getattr(provider, self.among)
        value = self.value
        if isinstance(value, tuple):
            return not having.isdisjoint(value)
        return (value in having) != self.forbids

    def lacks(self, tree: Tree, reach: Iterable[Provider]) -> bool:
        """Return whether a host lacks what it names.

        :param reach: the providers of the tree, and those that share with it
        """
        return not any(map(self.meets, reach))

    def has(self, provider: Provider) -> Shown:
        """Return what a provider that does not meet it has instead."""
        return self.value if self.forbids else None

    def missing(self, provider: Provider) -> float:
        """Return which part of an amount a provider does not have, from 0 to 1."""
        return 0.0

    def remarks(self, hosts: Sequence[Sequence[InventoryUsage]]) -> list[str]:
        """Return phrases about what the hosts that it keeps out have instead.

        :param hosts: the inventories of each host that its amount is about
        """
        return []

    def in_vain(self) -> str:
        """Return the phrase for a name that occurs nowhere in the cloud, or none."""
        return ""

    def instead_has(self, provider: Provider) -> str:
        """Return what a provider that does not meet it has instead, in brackets."""
        return ""

    def inventory_of(self, provider: Provider) -> InventoryUsage | None:
        """Return the inventory of a provider that its amount is about, if any."""
        if not self.of_amount:
            return None
        return provider.inventories.get(str(self.resource_class))


class _OneOf(Constraint):
    """A constraint with several names. Its field has a set for each."""

    __slots__ = ()

    @classmethod
    def values_in(cls, asked: Any) -> Iterable[Value]:
        return [tuple(sorted(names)) for names in getattr(asked, cls.kind)]

    @staticmethod
    def field_of(some: Sequence[Constraint]) -> Any:
        return tuple([frozenset(each.names) for each in some])


class RootRequired(Constraint):
    """``root_required``: the root has a trait."""

    __slots__ = ()
    kind = "root_required"
    among = "traits"
    of_root = True

    def text(self) -> str:
        return f"the host itself has {self.value}"

    def lack(self, *, plural: bool) -> str:
        return f"{_lack(plural)} {self.value}"

    def thing(self) -> str:
        return str(self.value)

    def has(self, provider: Provider) -> Shown:
        return []


class TraitForbidden(Constraint):
    """``required=!``: no provider of the group has a trait."""

    __slots__ = ()
    kind = "forbidden"
    among = "traits"
    forbids = True
    is_testable = True

    def text(self) -> str:
        return f"no provider that {self.serves} has {self.value}"

    def lack(self, *, plural: bool) -> str:
        return f"{_have(plural)} {self.value}, which is forbidden{self.group}"

    def instead(self) -> str:
        return f"put up with {self.value}{self.group}"

    def lacks(self, tree: Tree, reach: Iterable[Provider]) -> bool:
        return not all(map(self.meets, tree.members))


class RootForbidden(TraitForbidden):
    """``root_required=!``: the root does not have a trait."""

    __slots__ = ()
    kind = "root_forbidden"
    is_testable = False
    of_root = True

    def text(self) -> str:
        return f"the host itself does not have {self.value}"


@dataclasses.dataclass(frozen=True, slots=True)
class HasInventory(Constraint):
    """``resources``: there is inventory of a class.

    ``classes`` are those that one provider must have together with it.
    """

    kind: ClassVar[str] = "inventory"
    is_testable: ClassVar[bool] = True

    classes: tuple[str, ...] = dataclasses.field(default=(), compare=False)

    def text(self) -> str:
        return f"there is {self.thing()}"

    def lack(self, *, plural: bool) -> str:
        classes = [*self.classes, str(self.resource_class)]
        provider = "provider with " if self.classes else ""
        return f"{_have(plural)} no {provider}{joined(classes)}{self.group}"

    def lack_of_one(self) -> str:
        return f"has no {self.thing()}"

    def thing(self) -> str:
        return f"{self.resource_class}{self.group}"

    def meets(self, provider: Provider) -> bool:
        return self.resource_class in provider.inventories

    def lacks(self, tree: Tree, reach: Iterable[Provider]) -> bool:
        classes = {*self.classes, self.resource_class}
        return not any(each.inventories.keys() >= classes for each in reach)

    def missing(self, provider: Provider) -> float:
        return 1.0

    def has(self, provider: Provider) -> Shown:
        return sorted(provider.inventories)


@dataclasses.dataclass(frozen=True, slots=True)
class InTree(Constraint):
    """``in_tree``: the provider is in the tree of another.

    ``root_uuid`` is that of the tree: empty if there is none. It is None in a group
    that never had resources, where ``in_tree`` has no effect.
    """

    kind: ClassVar[str] = "in_tree"
    is_testable: ClassVar[bool] = True
    of_anchor: ClassVar[bool] = True

    root_uuid: str | None = None

    @classmethod
    def values_in(cls, asked: Any) -> Iterable[Value]:
        return () if asked.in_tree is None else (asked.in_tree,)

    @staticmethod
    def field_of(some: Sequence[Constraint]) -> Any:
        return some[0].value if some else None

    def text(self) -> str:
        return f"what {self.serves} is in the tree of {self.value}"

    def lack(self, *, plural: bool) -> str:
        belong = "belong" if plural else "belongs"
        return f"{belong} to another tree than that of {self.value}{self.group}"

    def instead(self) -> str:
        return f"look at all hosts, not only that of {self.value}{self.group}"

    def in_vain(self) -> str:
        return "no provider has this UUID"

    def meets(self, provider: Provider) -> bool:
        return self.root_uuid in (None, provider.root_uuid)

    def lacks(self, tree: Tree, reach: Iterable[Provider]) -> bool:
        return not self.meets(tree.root)

    def has(self, provider: Provider) -> Shown:
        return provider.root_uuid


class MemberOf(_OneOf):
    """``member_of``: the provider is in one of some aggregates."""

    __slots__ = ()
    kind = "member_of"
    among = "aggregates"
    is_testable = True
    of_tree = True

    def text(self) -> str:
        return f"what {self.serves} is in aggregate {joined(self.names, 'or')}"

    def lack(self, *, plural: bool) -> str:
        outside = f"aggregate {self.names[0]}"
        if len(self.names) > 1:
            outside = f"the {len(self.names)} aggregates that were named"
        return f"{_are(plural)} outside {outside}{self.group}"

    def instead(self) -> str:
        named = "aggregate" if len(self.names) == 1 else "aggregates"
        return f"look outside {named} {joined(self.names)}{self.group}"

    def in_vain(self) -> str:
        return f"no provider is in {'it' if len(self.names) == 1 else 'any'}"

    def has(self, provider: Provider) -> Shown:
        return sorted(provider.aggregates)


class NotMemberOf(Constraint):
    """``member_of=!``: the provider is not in an aggregate, nor is the root."""

    __slots__ = ()
    kind = "not_member_of"
    among = "aggregates"
    forbids = True
    is_testable = True
    of_anchor = True

    def text(self) -> str:
        return f"what {self.serves} is not in aggregate {self.value}"

    def lack(self, *, plural: bool) -> str:
        return (
            f"{_are(plural)} in aggregate {self.value}, which is ruled out{self.group}"
        )

    def instead(self) -> str:
        return f"look in aggregate {self.value} as well{self.group}"

    def lacks(self, tree: Tree, reach: Iterable[Provider]) -> bool:
        return not self.meets(tree.root)


class TraitRequired(_OneOf):
    """``required``: a provider has one of some traits."""

    __slots__ = ()
    kind = "required"
    among = "traits"
    is_testable = True

    def text(self) -> str:
        return f"one provider that {self.serves} has {joined(self.names, 'or')}"

    def lack(self, *, plural: bool) -> str:
        if self.suffix:
            return f"{_have(plural)} no provider with {self.thing()}"
        if len(self.names) == 1:
            return f"{_lack(plural)} {self.names[0]}"
        return f"{_have(plural)} none of {joined(self.names)}"

    def thing(self) -> str:
        return f"{joined(self.names, 'or')}{self.group}"

    def has(self, provider: Provider) -> Shown:
        return []


class Resources(Constraint):
    """``resources``: one provider can give amounts, which are pairs with their class.

    To explain it, it is divided: into ``HasInventory``, ``Unit`` and ``Room``.
    """

    __slots__ = ()

    def meets(self, provider: Provider) -> bool:
        for name, amount in self.value:
            inventory = provider.inventories.get(name)
            # There is never more room than the most units.
            if (
                inventory is None
                or not inventory.min_unit <= amount <= inventory.room
                or amount % inventory.step_size
            ):
                return False
        return True


class _PartOfAmount(Constraint):
    """A condition of an amount on an existing inventory of its class."""

    __slots__ = ()
    is_testable = True
    of_amount = True

    @property
    def said(self) -> str:
        """The amount and its class."""
        return f"{self.value} {self.resource_class}"

    def meets(self, provider: Provider) -> bool:
        inventory = self.inventory_of(provider)
        return inventory is not None and self.is_met_by(inventory)

    def missing(self, provider: Provider) -> float:
        inventory = self.inventory_of(provider)
        most = self.most_of(inventory) if inventory else 0
        return 1 - max(0, min(self.amount, most)) / self.amount

    def is_met_by(self, inventory: InventoryUsage) -> bool:
        """Return whether an inventory meets this condition for the amount."""
        raise NotImplementedError

    def most_of(self, inventory: InventoryUsage) -> int:
        """Return the largest amount that this condition on an inventory allows."""
        raise NotImplementedError


class Unit(_PartOfAmount):
    """``resources``: one consumer may have an amount of a class."""

    __slots__ = ()
    kind = "unit"

    def text(self) -> str:
        return f"one consumer may have {self.said}{self.group}"

    def lack(self, *, plural: bool) -> str:
        refuse = "refuse" if plural else "refuses"
        return f"{refuse} {self.said} to one consumer{self.group}"

    def instead(self) -> str:
        return f"let one consumer have {self.said}{self.group}"

    def is_met_by(self, inventory: InventoryUsage) -> bool:
        return inventory.suits(self.amount)

    def most_of(self, inventory: InventoryUsage) -> int:
        return inventory.max_unit

    def remarks(self, hosts: Sequence[Sequence[InventoryUsage]]) -> list[str]:
        inventories = [each for of_host in hosts for each in of_host]
        most = max((each.max_unit for each in inventories), default=self.amount)
        least = min((each.min_unit for each in inventories), default=self.amount)
        if self.amount > most:
            return [f"max_unit {most}"]
        if self.amount < least:
            return [f"min_unit {least}"]
        steps = {each.step_size for each in inventories}
        if len(steps) == 1 and self.amount % min(steps):
            return [f"step_size {min(steps)}"]
        return []

    def instead_has(self, provider: Provider) -> str:
        limits = self.has(provider) or {}
        said = ", ".join(f"{name} {value}" for name, value in limits.items())
        return f" ({said})" if said else ""

    def has(self, provider: Provider) -> Shown:
        inventory = self.inventory_of(provider)
        names = ("min_unit", "max_unit", "step_size")
        return inventory and {name: getattr(inventory, name) for name in names}


class Room(_PartOfAmount):
    """``resources``: an amount of a class is free."""

    __slots__ = ()
    kind = "room"

    def text(self) -> str:
        are = "is" if self.value == 1 else "are"
        return f"{self.said} {are} free on one provider{self.group}"

    def lack(self, *, plural: bool) -> str:
        return f"{_have(plural)} less than {self.said} free on one provider{self.group}"

    def instead(self) -> str:
        if self.suffix:
            # Room for this amount may be too little for several groups together.
            return f"count {self.said}{self.group} as nothing"
        return f"make room for {self.said}"

    def is_met_by(self, inventory: InventoryUsage) -> bool:
        return inventory.holds(self.amount)

    def most_of(self, inventory: InventoryUsage) -> int:
        return inventory.free

    def remarks(self, hosts: Sequence[Sequence[InventoryUsage]]) -> list[str]:
        best = max((each for of_host in hosts for each in of_host), key=self.most_of)
        in_all = max(sum(max(0, each.free) for each in of_host) for of_host in hosts)
        most = max(0, best.free)
        said = [f"{most} at most"]
        if in_all > most:
            said.append(f"{in_all} for one host in all")
        is_reduced = best.reserved or best.allocation_ratio != 1
        if is_reduced and best.capacity < self.amount:
            said.append(_shares(best))
        return said

    def instead_has(self, provider: Provider) -> str:
        inventory = self.inventory_of(provider)
        if inventory is None:
            return ""
        # A host may have other providers.
        where = f" on {provider.name or provider.uuid}" if provider.parent_uuid else ""
        return f" ({max(0, inventory.free)} free{where}: {_shares(inventory)})"

    def has(self, provider: Provider) -> Shown:
        inventory = self.inventory_of(provider)
        return max(0, inventory.free) if inventory else 0


class _OfGroups(_OneOf):
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

    def lack(self, *, plural: bool) -> str:
        return f"cannot serve {self.groups} at the same time"

    def instead(self) -> str:
        return f"ask for {self.groups} one by one"


class Isolate(Constraint):
    """``group_policy=isolate``: each group with a suffix has its own provider."""

    __slots__ = ()
    kind = "isolate"

    @classmethod
    def values_in(cls, asked: Any) -> Iterable[Value]:
        return (None,) if asked.isolate else ()

    @staticmethod
    def field_of(some: Sequence[Constraint]) -> Any:
        return bool(some)

    def text(self) -> str:
        return "each group with a suffix has a provider of its own"

    def lack(self, *, plural: bool) -> str:
        return "cannot give each group a provider of its own"

    def instead(self) -> str:
        return "let groups share a provider (group_policy=none)"


class SameSubtree(_OfGroups):
    """``same_subtree``: some groups are served below one provider."""

    __slots__ = ()
    kind = "same_subtree"

    def text(self) -> str:
        return f"{self.groups} are served from one subtree"

    def lack(self, *, plural: bool) -> str:
        return f"cannot serve {self.groups} from one subtree"

    def instead(self) -> str:
        return f"do not ask for {self.groups} in one subtree"


# The kinds by what they are about, in the order of the funnel.
OF_ROOT = (RootRequired, RootForbidden)
OF_PROVIDER = (InTree, MemberOf, NotMemberOf, TraitRequired, TraitForbidden)
OF_PICKS = (Isolate, SameSubtree)


class Need(NamedTuple):
    """A constraint on some member of a tree, or on its root.

    ``helping`` are the aggregates of the providers that meet it and share with the
    trees that have such an aggregate.
    """

    constraint: Constraint
    helping: frozenset[str] = frozenset()

    def may_be_met(self, tree: Tree) -> bool:
        """Return whether a tree, or what shares with it, has a provider for this."""
        members = tree.members[:1] if self.constraint.of_root else tree.members
        return not self.helping.isdisjoint(tree.aggregates) or any(
            map(self.constraint.meets, members)
        )


def meets_all(provider: Provider, constraints: Iterable[Constraint]) -> bool:
    """Return whether a provider meets some constraints by itself."""
    # For so few, a generator takes longer.
    for each in constraints:  # noqa: SIM110
        if not each.meets(provider):
            return False
    return True


def select(
    providers: Sequence[Provider], constraints: Iterable[Constraint]
) -> Sequence[Provider]:
    """Return the providers that meet some constraints, each by itself."""
    for each in constraints:
        providers = [provider for provider in providers if each.meets(provider)]
    return providers


def of_root(request: Request) -> tuple[Constraint, ...]:
    """Return the constraints on the root of a tree."""
    return tuple(_of_kinds(OF_ROOT, request))


def of_provider(
    group: Group, trees: Mapping[str, Tree], suffix: str | None = None
) -> tuple[Constraint, ...]:
    """Return the constraints of a group on a provider, but for amounts.

    :param trees: the trees by the UUIDs of their members
    :param suffix: the suffix of the constraints; None if it does not matter
    """
    constraints = _of_kinds(OF_PROVIDER, group, suffix)
    if group.in_tree is None:
        return tuple(constraints)
    tree = trees.get(group.in_tree)
    root_uuid: str | None = tree.root.uuid if tree else ""
    if tree and not group.resources and not group.relaxed:
        root_uuid = None
    return tuple(
        dataclasses.replace(each, root_uuid=root_uuid)
        if isinstance(each, InTree)
        else each
        for each in constraints
    )


def needs_of(
    request: Request, trees: Mapping[str, Tree], sharing: Sequence[Provider]
) -> list[Need]:
    """Return what a tree, or what shares with it, must have to serve a request.

    :param trees: the trees by the UUIDs of their members
    :param sharing: the providers that serve other trees as well
    """
    listed: list[Constraint] = [*of_root(request)]
    for group in request.groups:
        listed += of_provider(group, trees)
        listed += [Resources(None, (each,)) for each in group.resources.items()]
    return [_need(each, sharing) for each in dict.fromkeys(listed)]


def _need(each: Constraint, sharing: Iterable[Provider]) -> Need:
    helping = [] if each.of_root else filter(each.meets, sharing)
    return Need(each, frozenset().union(*(provider.aggregates for provider in helping)))


def of_picks(request: Request) -> tuple[Constraint, ...]:
    """Return the constraints on what several groups pick."""
    return tuple(_of_kinds(OF_PICKS, request))


def _of_kinds(
    kinds: Iterable[type[Constraint]],
    asked: Request | Group,
    suffix: str | None = None,
) -> list[Constraint]:
    return [kind(suffix, value) for kind in kinds for value in kind.values_in(asked)]


def _shares(inventory: InventoryUsage) -> str:
    return (
        f"total {inventory.total}, reserved {inventory.reserved}, "
        f"allocation_ratio {inventory.allocation_ratio:g}, used {inventory.used}"
    )


def _have(plural: bool) -> str:
    return "have" if plural else "has"


def _lack(plural: bool) -> str:
    return "lack" if plural else "lacks"


def _are(plural: bool) -> str:
    return "are" if plural else "is"
