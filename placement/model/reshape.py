"""The result of a reshaping for one provider."""

import dataclasses
from collections.abc import Mapping, Sequence

from placement.model.inventory import Inventory


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """The inventories that a provider is to have, and its expected generation.

    ``class_names`` are all names that were given, in order. A name that no class can
    have is not in ``inventories``.
    """

    generation: int
    class_names: Sequence[str]
    inventories: Mapping[str, Inventory]
