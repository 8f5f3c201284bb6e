"""Resource providers as the API shows them, and which ones to list."""

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from placement.model.tree import Provider

T_co = TypeVar("T_co", covariant=True)

UNKNOWN_PROVIDER = "No resource provider with uuid {uuid} found"


# Made by the thousand for a list, which takes a frozen dataclass four times as long.
class ResourceProvider(NamedTuple):
    """A resource provider as the ledger has it; ``modified`` is in UTC."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_uuid: str | None
    root_uuid: str
    modified: datetime.datetime | None
    root_id: int


@dataclasses.dataclass(frozen=True, slots=True)
class Belongings(Generic[T_co]):
    """Belongings of a provider, and the provider's generation.

    Before 1.19, a request for aggregates carries no generation, and none is checked.
    """

    parts: T_co
    generation: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderFilters:
    """Filters for a list of providers.

    ``traits`` and ``aggregates`` require one of each set. ``resources`` are amounts by
    resource class name; the provider itself must have room for each.
    """

    name: str | None = None
    uuid: str | None = None
    in_tree: str | None = None
    traits: Sequence[frozenset[str]] = ()
    forbidden_traits: frozenset[str] = frozenset()
    aggregates: Sequence[frozenset[str]] = ()
    forbidden_aggregates: frozenset[str] = frozenset()
    resources: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def accepts(self, provider: ResourceProvider | Provider) -> bool:
        """Return whether a provider has exactly the name and UUID in the filters."""
        return (self.name is None or provider.name == self.name) and (
            self.uuid is None or provider.uuid == self.uuid
        )
