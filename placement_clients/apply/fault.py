"""Faults of a file, and their places."""

import dataclasses

from placement_clients.output import Unusable


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """A place in a file: its name, a line from 1 up, and a path of so many members."""

    file: str
    line: int
    path: str = ""
    depth: int = 0

    def at(self, step: str | int, line: int | None = None) -> "Place":
        """Return a place within this one."""
        path = f"{self.path}[{step}]" if isinstance(step, int) else step
        if isinstance(step, str) and self.path:
            path = f"{self.path}.{step}"
        return Place(self.file, line or self.line, path, self.depth + 1)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.path}".removesuffix(": ")


class Fault(Unusable):
    """A file cannot be used. The message says where, and why."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
