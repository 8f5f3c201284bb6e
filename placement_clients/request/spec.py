"""The single requirements of a flavor or an image."""

import dataclasses
import re

import os_resource_classes

from placement_clients.request.flavor import parse_amount

CUSTOM_CLASS = re.compile(r"CUSTOM_[A-Z0-9_]+")
REQUIRED, FORBIDDEN = "required", "forbidden"


@dataclasses.dataclass(frozen=True, slots=True)
class Spec:
    """One requirement of a flavor or an image, and where it is written."""

    kind: str
    suffix: str
    name: str
    value: str
    origin: str

    @property
    def objection(self) -> str | None:
        """Why it has no effect, if that is so."""
        if self.kind == "resources":
            if not _is_resource_class(self.name):
                return f"{self.name!r} is neither a standard nor a custom class"
            if parse_amount(self.value) is None:
                return "the amount is not an integer of at least 0"
        elif self.value not in (REQUIRED, FORBIDDEN):
            return "the value is neither 'required' nor 'forbidden'"
        return None


def _is_resource_class(name: str) -> bool:
    is_standard = name in os_resource_classes.STANDARDS
    return is_standard or CUSTOM_CLASS.fullmatch(name) is not None
