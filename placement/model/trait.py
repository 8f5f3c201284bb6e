"""Traits: the qualities of resource providers."""

import dataclasses
import datetime

CUSTOM_PREFIX = "CUSTOM_"


LONGEST_NAME = 255


UNKNOWN_TRAIT = "No such trait(s): {name}."
# In the query of a list of providers.
UNKNOWN_REQUIRED = f'Invalid trait(s) in "required" parameter: {UNKNOWN_TRAIT}'


def is_custom(name: str) -> bool:
    """Return whether an API call may create a trait, or a class, of this name."""
    return name.startswith(CUSTOM_PREFIX) and name != CUSTOM_PREFIX


@dataclasses.dataclass(frozen=True, slots=True)
class Trait:
    """A trait; ``modified`` is in UTC."""

    id: int
    name: str
    modified: datetime.datetime | None

    @property
    def is_standard(self) -> bool:
        """Whether it is in the catalogue that all services share."""
        return not self.name.startswith(CUSTOM_PREFIX)


@dataclasses.dataclass(frozen=True, slots=True)
class TraitFilters:
    """Filters for a list of traits. None does not filter.

    ``associated`` selects traits that some provider has, or that none has.
    """

    names: frozenset[str] | None = None
    prefix: str | None = None
    associated: bool | None = None

    def accepts(self, name: str) -> bool:
        """Return whether a name passes the filter."""
        listed = self.names is None or name in self.names
        return listed and (self.prefix is None or name.startswith(self.prefix))
