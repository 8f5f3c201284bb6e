"""A ledger in memory: the slowest program that is obviously right."""

import copy
import dataclasses
from collections.abc import Mapping, Sequence

# Amounts by resource class name, by the name of the provider.
Amounts = Mapping[str, Mapping[str, int]]

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")


class Refused(Exception):
    """A write that must not succeed: the status, and a phrase of the reason."""

    def __init__(self, status: int, phrase: str) -> None:
        super().__init__(status, phrase)
        self.status = status
        self.phrase = phrase


@dataclasses.dataclass(frozen=True)
class Inventory:
    """How much of a class a provider has."""

    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float


@dataclasses.dataclass
class Provider:
    """A provider, with its inventories by class name."""

    generation: int = 0
    inventories: dict[str, Inventory] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Consumer:
    """A consumer with allocations."""

    generation: int
    project: str
    user: str
    type: str | None
    amounts: Amounts


@dataclasses.dataclass(frozen=True)
class Claim:
    """What a consumer is to use. An unguarded one says nothing of generations."""

    consumer: str
    amounts: Amounts
    project: str
    user: str
    type: str | None
    guarded: bool
    generation: int | None


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a provider of some generation is to have."""

    generation: int
    inventories: Mapping[str, Inventory]


@dataclasses.dataclass
class Ledger:
    """Providers and consumers by name."""

    providers: dict[str, Provider] = dataclasses.field(default_factory=dict)
    consumers: dict[str, Consumer] = dataclasses.field(default_factory=dict)

    def used(self, provider: str, name: str) -> int:
        """Return how much of a class is used of a provider."""
        return sum(
            consumer.amounts.get(provider, {}).get(name, 0)
            for consumer in self.consumers.values()
        )

    def set_inventories(
        self, provider: str, inventories: Mapping[str, Inventory]
    ) -> None:
        """Replace all inventories of a provider, whose generation is known."""
        gone = self.providers[provider].inventories.keys() - inventories.keys()
        if any(self.used(provider, name) for name in gone):
            raise Refused(409, "in use")
        self.providers[provider].inventories = dict(inventories)
        self.providers[provider].generation += 1

    def write(self, claims: Sequence[Claim]) -> None:
        """Replace all that some consumers use, or nothing at all."""
        self._take_over(self._draft(claims))

    def delete(self, consumer: str) -> None:
        """Remove a consumer; no generation changes."""
        if consumer not in self.consumers:
            raise Refused(404, "No allocations for consumer")
        del self.consumers[consumer]

    def reshape(self, shapes: Mapping[str, Shape], claims: Sequence[Claim]) -> None:
        """Replace inventories and what consumers use, or nothing at all."""
        for provider, shape in shapes.items():
            if self.providers[provider].generation != shape.generation:
                raise Refused(409, "resource provider generation conflict")
        draft = copy.deepcopy(self)
        for name, shape in shapes.items():
            changed = draft.providers[name]
            if shape.inventories:
                changed.inventories = {**changed.inventories, **shape.inventories}
                changed.generation += 1
        draft = draft._draft(claims)
        for name, shape in shapes.items():
            draft.set_inventories(name, shape.inventories)
        self._take_over(draft)

    def _take_over(self, draft: "Ledger") -> None:
        self.providers, self.consumers = draft.providers, draft.consumers

    def _draft(self, claims: Sequence[Claim]) -> "Ledger":
        draft = copy.deepcopy(self)
        for claim in claims:
            self._check_generation(claim)
        for claim in claims:
            for provider in claim.amounts:
                if provider not in self.providers:
                    raise Refused(400, "that does not exist")
        self._check_inventories(claims)
        bumped: set[str] = set()
        for claim in claims:
            old = draft.consumers.pop(claim.consumer, None)
            if claim.amounts:
                bumped.update(claim.amounts)
            elif old:
                bumped.update(old.amounts)
        for claim in claims:
            if claim.amounts:
                self._add(draft, claim)
        for provider in bumped:
            draft.providers[provider].generation += 1
        return draft

    def _check_generation(self, claim: Claim) -> None:
        known = self.consumers.get(claim.consumer)
        actual = known.generation if known else None
        if claim.guarded and claim.generation != actual:
            raise Refused(409, "consumer generation conflict")

    def _check_inventories(self, claims: Sequence[Claim]) -> None:
        classes = {
            name
            for claim in claims
            for amounts in claim.amounts.values()
            for name in amounts
        }
        if not classes <= set(CLASSES):
            raise Refused(400, "No such resource class")
        for claim in claims:
            for provider in claim.amounts:
                if not classes & self.providers[provider].inventories.keys():
                    raise Refused(409, "invalid")

    def _add(self, draft: "Ledger", claim: Claim) -> None:
        """Add a consumer, if it fits besides those already there."""
        for provider, amounts in claim.amounts.items():
            for name, amount in amounts.items():
                inventory = self.providers[provider].inventories.get(name)
                if inventory is None:
                    raise Refused(409, "invalid")
                if (
                    amount < inventory.min_unit
                    or amount > inventory.max_unit
                    or amount % inventory.step_size
                ):
                    raise Refused(409, "would violate inventory constraints")
                used = draft.used(provider, name) + amount
                free = inventory.total - inventory.reserved
                too_much = used > free * inventory.allocation_ratio
                if too_much and used > self.used(provider, name):
                    raise Refused(409, "would exceed the capacity")
        old = self.consumers.get(claim.consumer)
        draft.consumers[claim.consumer] = Consumer(
            (old.generation if old else 0) + 1,
            claim.project,
            claim.user,
            claim.type or (old.type if old else None),
            claim.amounts,
        )
