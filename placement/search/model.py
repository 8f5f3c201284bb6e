"""The values that the search for allocation candidates works on."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Stock:
    """An inventory of a resource provider, and what is taken of it.

    Amounts are in units of the resource class. Whether an amount fits is decided
    here, for the search and for writing allocations alike.
    """

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 0x7FFFFFFF
    step_size: int = 1
    allocation_ratio: float = 1.0
    used: int = 0

    @property
    def capacity(self) -> int:
        """What can be allocated in all, rounded toward zero."""
        return int((self.total - self.reserved) * self.allocation_ratio)

    def suits(self, amount: int) -> bool:
        """Tell whether one consumer may take an amount: its least, most and step."""
        return self.min_unit <= amount <= self.max_unit and amount % self.step_size == 0

    def holds(self, amount: int) -> bool:
        """Tell whether there is room for an amount beside what is taken."""
        return self.used + amount <= self.capacity

    def fits(self, amount: int) -> bool:
        """Tell whether an amount can be allocated."""
        return self.suits(amount) and self.holds(amount)
