"""Requests for allocation candidates: request groups and what holds for all of them."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """The requirements of one request group.

    ``resources`` are amounts by resource class. A provider must have one of each set
    in ``required`` and be in one of each set in ``member_of``. The group with the empty
    suffix may spread over several providers.

    A ``relaxed`` group leaves out some of the constraints: for classes in ``any_unit``
    every amount is suitable, those in ``no_room`` need no room and take none, and if no
    resources are left, any one provider that meets the rest may serve it.
    """

    suffix: str = ""
    resources: Mapping[str, int] = dataclasses.field(default_factory=dict)
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    not_member_of: frozenset[str] = frozenset()
    in_tree: str | None = None
    relaxed: bool = False
    any_unit: frozenset[str] = frozenset()
    no_room: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """A request for allocation candidates.

    ``root_required`` and ``root_forbidden`` are traits of the anchor, each set in
    ``same_subtree`` names groups by suffix. Without ``nested``, as before microversion
    1.29, a candidate uses at most one provider of each tree.
    """

    groups: tuple[Group, ...]
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    isolate: bool = False
    same_subtree: tuple[frozenset[str], ...] = ()
    nested: bool = True
