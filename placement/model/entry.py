"""Entries of the journal: what changed, and what it was before."""

import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from placement.model.inventory import Inventory
from placement.model.member import members_of

# Amounts by resource class name, by provider UUID.
Amounts: TypeAlias = Mapping[str, Mapping[str, int]]

# The beginnings of the types of entries whose subject is a provider.
OF_PROVIDERS = ("provider.", "inventory.", "traits.", "aggregates.")


class EntryType(enum.StrEnum):
    """What an entry says of its subject."""

    PROVIDER_CREATED = "provider.created"
    PROVIDER_UPDATED = "provider.updated"
    PROVIDER_DELETED = "provider.deleted"
    INVENTORY_CHANGED = "inventory.changed"
    TRAITS_CHANGED = "traits.changed"
    AGGREGATES_CHANGED = "aggregates.changed"
    ALLOCATIONS_CHANGED = "allocations.changed"
    CONSUMER_CHANGED = "consumer.changed"
    TRAIT_CREATED = "trait.created"
    TRAIT_DELETED = "trait.deleted"
    CLASS_CREATED = "resource_class.created"
    CLASS_RENAMED = "resource_class.renamed"
    CLASS_DELETED = "resource_class.deleted"
    LEASE_GRANTED = "lease.granted"
    LEASE_RENEWED = "lease.renewed"
    LEASE_CONFIRMED = "lease.confirmed"
    LEASE_EXPIRED = "lease.expired"
    GAP = "journal.gap"


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A change of one subject by a write.

    ``roots`` are the UUIDs of the trees it is about. ``generation`` is that of the
    subject after the change; that of a provider is added at the end of the write.
    ``names`` are those of the providers mentioned, by UUID; ``consumer`` is the owner
    of allocations. ``before`` and ``after`` are JSON.
    """

    type: EntryType
    subject: str | None
    before: Any = None
    after: Any = None
    roots: Sequence[str] = ()
    generation: int | None = None
    names: Mapping[str, str] | None = None
    consumer: Mapping[str, str | None] | None = None

    def then(self, other: "Entry") -> "Entry":
        """Return the entry for this change and a later one of the same subject."""
        return dataclasses.replace(
            other,
            before=self.before,
            roots=tuple(dict.fromkeys([*self.roots, *other.roots])),
            names={**(self.names or {}), **(other.names or {})} or None,
        )


class Node(NamedTuple):
    """The place of a provider: its name, its parent and its root, by UUID.

    The root is missing only where the database is damaged.
    """

    name: str
    parent: str | None
    root: str | None


class Ownership(NamedTuple):
    """The owner and type of a consumer; unknown if it has no record."""

    project_id: str | None = None
    user_id: str | None = None
    consumer_type: str | None = None


def of_provider(uuid: str, before: Node | None, after: Node | None) -> Entry:
    """Return the entry for a provider that was created, changed or deleted."""
    kind = EntryType.PROVIDER_UPDATED
    if before is None:
        kind = EntryType.PROVIDER_CREATED
    elif after is None:
        kind = EntryType.PROVIDER_DELETED
    roots = dict.fromkeys(node.root for node in (before, after) if node and node.root)
    return Entry(
        kind, uuid, before and before._asdict(), after and after._asdict(), tuple(roots)
    )


def of_inventories(
    uuid: str,
    root: str,
    before: Mapping[str, Inventory],
    after: Mapping[str, Inventory],
) -> list[Entry]:
    """Return the entry for the inventories of a provider; none if they are the same.

    :param before: the inventories by class name, at least those that change
    """
    changed = [
        name for name in {**before, **after} if before.get(name) != after.get(name)
    ]
    if not changed:
        return []
    old, new = (
        {name: members_of(each[name]) for name in changed if name in each}
        for each in (before, after)
    )
    return [Entry(EntryType.INVENTORY_CHANGED, uuid, old, new, (root,))]


def of_members(
    kind: EntryType, uuid: str, root: str, added: Iterable[str], removed: Iterable[str]
) -> list[Entry]:
    """Return the entry for traits or aggregates; none if they are the same."""
    after = {"added": sorted(added), "removed": sorted(removed)}
    if not (after["added"] or after["removed"]):
        return []
    return [Entry(kind, uuid, None, after, (root,))]


def of_consumer(
    uuid: str, before: Ownership, after: Ownership, generation: int
) -> list[Entry]:
    """Return the entry for a consumer; none if it belongs to the same owner."""
    if before == after:
        return []
    return [
        Entry(
            EntryType.CONSUMER_CHANGED,
            uuid,
            before._asdict(),
            after._asdict(),
            generation=generation,
        )
    ]


def of_allocations(
    uuid: str,
    before: Amounts,
    after: Amounts,
    *,
    places: Mapping[str, tuple[str, str]],
    owner: Ownership,
    generation: int | None,
) -> list[Entry]:
    """Return the entry for the allocations of a consumer; none if they are the same.

    :param places: the name and the root of each provider, by UUID; providers without a
        root, which another service may leave, are missing
    :param generation: that of the consumer; None if it is gone
    """
    if before == after:
        return []
    mentioned = [each for each in {**before, **after} if each in places]
    return [
        Entry(
            EntryType.ALLOCATIONS_CHANGED,
            uuid,
            before,
            after,
            tuple(dict.fromkeys(places[each][1] for each in mentioned)),
            generation,
            {each: places[each][0] for each in mentioned},
            owner._asdict(),
        )
    ]
