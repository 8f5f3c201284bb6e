"""The argument of a handler of this service."""

from typing import TypeAlias, TypeVar

from placement import conf
from placement_foundation.http import operation

S = TypeVar("S")

Call: TypeAlias = operation.Call[S, conf.Settings]
