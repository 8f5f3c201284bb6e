"""Writes the hardware in Placement as a file that declares it."""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any

from placement_clients.apply.drawing import DEFAULTS
from placement_clients.client import Client
from placement_clients.output import Unusable
from placement_clients.record import Json

CUSTOM = "CUSTOM_"
FIELDS = ("total", *DEFAULTS)

# Whether to write the inventory of a class, or a trait, of a provider.
Wanted = Callable[[str, str], bool]


def export(placement: Client, hosts: Collection[str], *, everything: bool) -> Json:
    """Return the hosts with these names or UUIDs, or all, as a file declares them.

    :param everything: also write standard traits and classes that no owner declared,
        which agents report
    :raises Unusable: there is no such host
    """
    fleet = placement.get_ledger("fleet", providers=list)["providers"]
    declared = _declared(placement)

    def wanted(uuid: str, name: str) -> bool:
        return everything or name.startswith(CUSTOM) or (uuid, name) in declared

    trees = _trees(fleet, wanted)
    chosen = [
        tree for tree in trees if not hosts or {tree["name"], tree["uuid"]} & {*hosts}
    ]
    identifiers = {each for tree in chosen for each in (tree["name"], tree["uuid"])}
    for host in hosts:
        if host not in identifiers:
            raise Unusable(f"There is no host {host}.")
    return {**_names(placement, chosen, everywhere=not hosts), "trees": chosen}


def _names(
    placement: Client, trees: Sequence[Json], *, everywhere: bool
) -> dict[str, Json]:
    """Return the names of aggregates of some trees, or all names, as maps."""
    names_by_kind = placement.get_ledger("names", aggregates=dict, projects=dict)
    used = set(_aggregates(trees))
    maps: dict[str, Json] = {"aggregates": {}, "projects": {}}
    for kind, given in maps.items():
        for uuid, name in sorted(names_by_kind[kind].items()):
            if everywhere or uuid in used:
                # Owners may give one name to two things; a file may not.
                given.setdefault(name, uuid)
    return {kind: given for kind, given in maps.items() if given}


def _aggregates(trees: Iterable[Json]) -> Iterator[str]:
    for tree in trees:
        yield from tree.get("aggregates", ())
        yield from _aggregates(tree.get("children", ()))


def _declared(placement: Client) -> set[tuple[str, str]]:
    """Return the names that some owner declared, each with its provider."""
    document = placement.get_ledger("declared", declared=list)
    return {
        (each["uuid"], name)
        for each in document["declared"]
        for name in (*each["inventories"], *each["traits"])
    }


def _trees(fleet: Iterable[Mapping[str, Any]], wanted: Wanted) -> list[Json]:
    """Return providers as trees, by name, the children inside their parents."""
    fleet = sorted(fleet, key=lambda each: str(each["name"]))
    rendered = {each["uuid"]: _render(each, wanted) for each in fleet}
    roots = []
    for each in fleet:
        parent = each["parent_provider_uuid"]
        if parent is None:
            roots.append(rendered[each["uuid"]])
        else:
            rendered[parent].setdefault("children", []).append(rendered[each["uuid"]])
    return roots


def _render(provider: Mapping[str, Any], wanted: Wanted) -> Json:
    uuid = provider["uuid"]
    members = {
        "inventories": {
            name: _render_inventory(record)
            for name, record in sorted(provider["inventories"].items())
            if wanted(uuid, name)
        },
        "traits": sorted(name for name in provider["traits"] if wanted(uuid, name)),
        "aggregates": sorted(provider["aggregates"]),
    }
    return {
        "name": provider["name"],
        "uuid": uuid,
        **{name: value for name, value in members.items() if value},
    }


def _render_inventory(record: Mapping[str, Any]) -> Json:
    """Return the members that differ from the defaults: often the total alone."""
    rendered = {
        name: record[name]
        for name in FIELDS
        if name == "total" or record[name] != DEFAULTS[name]
    }
    return rendered["total"] if len(rendered) == 1 else rendered
