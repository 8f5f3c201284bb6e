"""The options of ``placement-request``, and how they are evaluated."""

import argparse
import uuid
from collections.abc import Iterator

from placement_clients.option import add_options
from placement_clients.record import Json
from placement_clients.request import request, rule
from placement_clients.request.errors import BadInput
from placement_clients.request.request import Rule

FLAVOR = "flavor: the output of `openstack flavor show -f json`; - is standard input"
INPUTS = {
    "--image FILE": "image: the output of `openstack image show -f json`, or a map of "
    "its properties; - is standard input",
}
WANTED = {
    "--volume-backed": "the root disk is a volume, and takes no room on the host; the "
    "image is then the output of `openstack volume show -f json`",
    "--lenient": "ignore extra specs that cannot be parsed, with a warning; without "
    "this option they are errors",
    "--limit N": "the most candidates to request, or none (%(default)s)",
}
RULES = {
    "--include-disabled-hosts": "include hosts whose compute service is disabled",
    "--isolated-aggregate UUID=TRAIT[,TRAIT...]...": "an aggregate only for requests "
    "that require all these traits; may be repeated",
    "--tenant-aggregates UUID[,UUID...]": "aggregates of the tenant: the host must be "
    "in one of them",
    "--zone-aggregates UUID[,UUID...]": "aggregates of the availability zone: the host "
    "must be in one of them",
    "--free-pool UUID": "aggregate of the hosts kept for reservations: the host must "
    "not be in it, unless the flavor has a CUSTOM_RESERVATION_... class",
}
SERVERS = {
    "--server UUID...": "a server; may be repeated",
    "--count N": "how many servers; those that --server does not name get new UUIDs",
}
CONSUMER = {
    "--consumer-type TYPE": "consumer type to record in Placement, such as INSTANCE; "
    "needs a Placement with microversion 1.38",
}
WISHES = {
    "--spread host|UUID[,UUID...]": "spread the servers over hosts, or over these "
    "aggregates",
    "--at-most N": "with --spread: at most so many in each (1)",
    "--prefer QUALITY=NAME[:WEIGHT]...": "prefer hosts by trait=NAME, aggregate=UUID, "
    "host=UUID or free=CLASS, the free part of a resource class; a negative weight is "
    "a dislike; may be repeated",
    "--lease SECONDS": "what is claimed ends by itself after that time, unless it is "
    "confirmed",
}


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the flavor and the image."""
    parser.add_argument("--flavor", required=True, metavar="FILE", help=FLAVOR)
    add_options(parser, INPUTS)


def add_wanted(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe the server."""
    add_inputs(parser)
    add_options(parser, WANTED, {"--limit": limit})
    parser.set_defaults(limit=request.LIMIT)


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add the options for the rules of the deployment."""
    group = parser.add_argument_group("rules of the deployment")
    add_options(group, RULES, {"--isolated-aggregate": isolation})


def add_rebuild(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a server, its flavor and its images."""
    parser.add_argument(
        "--server", required=True, type=uuid.UUID, metavar="UUID", help="the server"
    )
    for name, meaning in (
        ("--flavor", FLAVOR),
        ("--old-image", "image that the server runs"),
        ("--image", "image to rebuild from"),
    ):
        parser.add_argument(name, required=True, metavar="FILE", help=meaning)


def add_servers(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which servers, how many, and whose."""
    add_options(parser, SERVERS, {"--server": uuid.UUID, "--count": positive})
    parser.add_argument("--project", required=True, help="project of the server")
    parser.add_argument("--user", required=True, help="user of the server")
    add_options(parser, CONSUMER)


def add_wishes(parser: argparse.ArgumentParser) -> None:
    """Add the options for the spread, the preferences and the lease of servers."""
    group = parser.add_argument_group(
        "how they are placed",
        "These need a Placement with /ledger/v1/placements, like several servers; any "
        "other takes one server at a time.",
    )
    numbers = dict.fromkeys(("--at-most", "--lease"), positive)
    add_options(group, WISHES, {"--spread": domains, "--prefer": preference, **numbers})


def servers_of(asked: argparse.Namespace) -> list[str]:
    """Return the UUIDs of the servers to boot, new ones where none are given.

    :raises BadInput: there are none, more than are counted, or one is named twice
    """
    named = [str(each) for each in asked.server]
    count = len(named) if asked.count is None else asked.count
    if not count:
        raise BadInput("give --server or --count")
    if len(named) > count:
        raise BadInput(f"--count {count}: --server names {len(named)} servers")
    if twice := sorted({each for each in named if named.count(each) > 1}):
        raise BadInput(f"--server names {', '.join(twice)} twice")
    return [*named, *(str(uuid.uuid4()) for _ in range(count - len(named)))]


def wishes_of(asked: argparse.Namespace) -> dict[str, Json]:
    """Return the members that the options add to a request for placements.

    :raises BadInput: --at-most is given without --spread
    """
    if asked.at_most and asked.spread is None:
        raise BadInput("--at-most needs --spread")
    spread = asked.spread and {"per": asked.spread, "at_most": asked.at_most or 1}
    members = {"spread": spread, "prefer": asked.prefer, "lease_seconds": asked.lease}
    return {name: value for name, value in members.items() if value}


def rules_of(asked: argparse.Namespace) -> Iterator[Rule]:
    """Yield the rules that the options select."""
    if not asked.include_disabled_hosts:
        yield rule.without_disabled_hosts
    needed: dict[str, set[str]] = {}
    for aggregate, traits in asked.isolated_aggregate:
        needed.setdefault(aggregate, set()).update(traits)
    yield rule.isolated_aggregates(needed)
    # An empty one, as of a shell's unset variable, is refused and not ignored.
    for aggregates in (asked.tenant_aggregates, asked.zone_aggregates):
        if aggregates is not None:
            yield rule.within_aggregates(aggregates.split(","))
    if asked.free_pool is not None:
        yield rule.outside_free_pool(asked.free_pool)


# The types of options. The service checks the names and UUIDs in them.


def positive(text: str) -> int:
    """Return a number above 0."""
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def limit(text: str) -> int | None:
    """Return a number above 0, or None for no limit."""
    return None if text == "none" else positive(text)


def domains(text: str) -> Json:
    """Return over what servers are spread."""
    return text if text == "host" else {"aggregates": text.split(",")}


def preference(text: str) -> Json:
    """Return a preference such as ``trait=CUSTOM_SSD:2``."""
    quality, name = text.split("=")
    name, _, weight = name.partition(":")
    return {quality: name, "weight": float(weight or 1)}


def isolation(text: str) -> tuple[str, set[str]]:
    """Return an aggregate, and the traits that open it."""
    aggregate, traits = text.split("=")
    if not all(traits.split(",")):
        raise ValueError(text)
    return aggregate, set(traits.split(","))
