"""Resource classes: the kinds of resources that there are."""

import dataclasses
import datetime

# Classes below this id are standard: they can neither be renamed nor deleted.
FIRST_CUSTOM_ID = 10000


UNKNOWN_CLASS = "No such resource class {name}."
# In a query.
UNKNOWN_IN_RESOURCES = f"Invalid resource class in resources parameter: {UNKNOWN_CLASS}"


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceClass:
    """A resource class; ``modified`` is in UTC."""

    id: int
    name: str
    modified: datetime.datetime | None

    @property
    def is_standard(self) -> bool:
        """Whether it is one of those that every service has."""
        return self.id < FIRST_CUSTOM_ID
