"""Flavors: the size of a server, and its requirements."""

import dataclasses
from collections.abc import Mapping, Sequence

from placement_clients.record import Json
from placement_clients.request.document import parse_members, parse_properties
from placement_clients.request.errors import BadInput


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """The size of a server: memory and swap in MiB, disks in GiB."""

    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int = 0
    swap_mb: int = 0
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)


# The second names are those in the output of ``openstack flavor show -f json``.
NAMES = {
    "vcpus": ("vcpus",),
    "memory_mb": ("memory_mb", "ram"),
    "root_gb": ("root_gb", "disk"),
    "ephemeral_gb": ("ephemeral_gb", "OS-FLV-EXT-DATA:ephemeral"),
    "swap_mb": ("swap",),
}
# More than any real amount, and fewer digits than Python refuses to parse.
AMOUNT_DIGITS = 100
OPTIONAL = {"ephemeral_gb", "swap_mb"}
EXTRA_SPECS = ("extra_specs", "properties")


def parse(document: Json) -> Flavor:
    """Return a flavor from a map, or from the output of ``openstack flavor show``.

    :raises BadInput: members are missing or wrong; the message names all of them
    """
    members = parse_members(document, "the flavor")
    if set(members) == {"flavor"}:
        # The answer of the compute API.
        members = parse_members(members["flavor"], "the flavor")
    amounts: dict[str, int] = {}
    problems: list[str] = []
    for field, names in NAMES.items():
        name, value = _first(members, names)
        if value is None or (value == "" and field in OPTIONAL):
            if field not in OPTIONAL:
                problems.append(f"the flavor has no {' or '.join(names)}")
        elif (amount := parse_amount(value)) is None:
            problems.append(f"flavor {name} = {value!r}: not an integer of at least 0")
        else:
            amounts[field] = amount
    if problems:
        raise BadInput(*problems)
    name, properties = _first(members, EXTRA_SPECS)
    extra_specs = parse_properties(properties, f"flavor {name}")
    return Flavor(**amounts, extra_specs=extra_specs)


def parse_amount(value: Json) -> int | None:
    """Return an integer of at least 0, written as a number or as a string, or None."""
    if isinstance(value, str):
        short = len(value) <= AMOUNT_DIGITS
        return int(value) if short and value.isascii() and value.isdigit() else None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def _first(members: Mapping[str, Json], names: Sequence[str]) -> tuple[str, Json]:
    """Return the first of several members that is present, and its name."""
    there = (name for name in names if members.get(name) is not None)
    name = next(there, names[0])
    return name, members.get(name)
