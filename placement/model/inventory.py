"""Inventories: what a resource provider has, what is used of it, and what fits."""

import dataclasses

from placement.model.member import members_of

# The largest amount that an inventory can have.
LARGEST_AMOUNT = 0x7FFFFFFF


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """What a resource provider has of one resource class, in units of the class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = LARGEST_AMOUNT
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """The amount that can be allocated in all, rounded toward zero."""
        return capacity_of(self)


def capacity_of(inventory: Inventory) -> int:
    """Return the amount that can be allocated in all, rounded toward zero."""
    return int((inventory.total - inventory.reserved) * inventory.allocation_ratio)


@dataclasses.dataclass(frozen=True, slots=True)
class InventoryUsage(Inventory):
    """An inventory, and how much of it is used.

    ``room`` is the most that one consumer may take from what is left. Whether an amount
    fits is decided here and, for a whole request, by ``Resources`` among the
    constraints.
    """

    used: int = 0
    capacity: int = dataclasses.field(init=False, repr=False, compare=False)
    room: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Computed once: every search compares room with an amount, and shows capacity.
        object.__setattr__(self, "capacity", capacity_of(self))
        object.__setattr__(self, "room", min(self.max_unit, self.free))

    @classmethod
    def of(cls, inventory: Inventory, used: int) -> "InventoryUsage":
        """Return the usage of an inventory of which some is used."""
        return cls(**members_of(inventory), used=used)

    def with_more(self, amount: int) -> "InventoryUsage":
        """Return the same inventory when more of it is used; less, if negative."""
        return dataclasses.replace(self, used=self.used + amount) if amount else self

    @property
    def free(self) -> int:
        """What is left of the capacity; negative if too much is used."""
        return self.capacity - self.used

    def suits(self, amount: int) -> bool:
        """Return whether an amount respects the least and most units and the step."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0

    def holds(self, amount: int) -> bool:
        """Return whether there is room for an amount in addition to what is used."""
        return self.used + amount <= self.capacity


def complain(
    provider_uuid: str, name: str, inventory: Inventory, *, reserved_may_be_total: bool
) -> str | None:
    """Return what is wrong with an inventory that reserves too much of its total."""
    if inventory.capacity >= (0 if reserved_may_be_total else 1):
        return None
    compared = "greater than" if reserved_may_be_total else "greater than or equal to"
    return (
        f"Invalid inventory for '{name}' on resource provider '{provider_uuid}'. "
        f"The reserved value is {compared} total."
    )


FIELDS = [field.name for field in dataclasses.fields(Inventory)]
