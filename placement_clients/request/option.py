"""The options of ``placement-request``, and how they are evaluated."""

import argparse
import uuid
from collections.abc import Iterator

from placement_clients.record import Json
from placement_clients.request import request, rule
from placement_clients.request.errors import BadInput
from placement_clients.request.request import Rule

QUALITIES = ("trait", "aggregate", "host", "free")
# The largest weight of a preference.
HEAVIEST = 1000


def wanted() -> argparse.ArgumentParser:
    """Return the options that describe the server."""
    parser = argparse.ArgumentParser(add_help=False)
    add_flavor(parser)
    add_image(parser)
    parser.add_argument(
        "--volume-backed",
        action="store_true",
        help="the root disk is a volume, and takes no room on the host; the image is "
        "then the output of `openstack volume show -f json`",
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="ignore extra specs that cannot be parsed, with a warning; without this "
        "option they are errors",
    )
    parser.add_argument(
        "--limit",
        type=_limit,
        default=request.LIMIT,
        metavar="N",
        help="the most candidates to request, or none (%(default)s)",
    )
    return parser


def rules() -> argparse.ArgumentParser:
    """Return the options for the rules of the deployment."""
    parser = argparse.ArgumentParser(add_help=False)
    group = parser.add_argument_group("rules of the deployment")
    group.add_argument(
        "--include-disabled-hosts",
        action="store_true",
        help="include hosts whose compute service is disabled",
    )
    group.add_argument(
        "--isolated-aggregate",
        action="append",
        type=_isolated,
        metavar="UUID=TRAIT[,TRAIT...]",
        help="an aggregate only for requests that require all these traits; may be "
        "repeated",
    )
    group.add_argument(
        "--tenant-aggregates",
        type=_uuids,
        metavar="UUID[,UUID...]",
        help="aggregates of the tenant: the host must be in one of them",
    )
    group.add_argument(
        "--zone-aggregates",
        type=_uuids,
        metavar="UUID[,UUID...]",
        help="aggregates of the availability zone: the host must be in one of them",
    )
    group.add_argument(
        "--free-pool",
        type=_uuid,
        metavar="UUID",
        help="aggregate of the hosts kept for reservations: the host must not be in "
        "it, unless the flavor has a CUSTOM_RESERVATION_... class",
    )
    return parser


def add_flavor(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the flavor."""
    parser.add_argument(
        "--flavor",
        required=True,
        metavar="FILE",
        help="flavor: the output of `openstack flavor show -f json`; - is standard "
        "input",
    )


def add_image(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the image, which is optional."""
    parser.add_argument(
        "--image",
        metavar="FILE",
        help="image: the output of `openstack image show -f json`, or a map of its "
        "properties; - is standard input",
    )


def add_server(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the server."""
    parser.add_argument(
        "--server", required=True, type=_uuid, metavar="UUID", help="the server"
    )


def add_servers(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which servers, and how many."""
    parser.add_argument(
        "--server",
        action="append",
        default=[],
        type=_uuid,
        metavar="UUID",
        help="a server; may be repeated",
    )
    parser.add_argument(
        "--count",
        type=_positive,
        metavar="N",
        help="how many servers; those that --server does not name get new UUIDs",
    )


def add_wish(parser: argparse.ArgumentParser) -> None:
    """Add the options for the spread, the preferences and the lease of servers."""
    group = parser.add_argument_group(
        "how they are placed",
        "These need a Placement with /ledger/v1/placements, like several servers; any "
        "other takes one server at a time.",
    )
    group.add_argument(
        "--spread",
        type=_domains,
        metavar="host|UUID[,UUID...]",
        help="spread the servers over hosts, or over these aggregates",
    )
    group.add_argument(
        "--at-most",
        type=_positive,
        metavar="N",
        help="with --spread: at most so many in each (1)",
    )
    group.add_argument(
        "--prefer",
        action="append",
        default=[],
        type=_preference,
        metavar="QUALITY=NAME[:WEIGHT]",
        help="prefer hosts by trait=NAME, aggregate=UUID, host=UUID or free=CLASS, "
        "the free part of a resource class; a negative weight is a dislike; may be "
        "repeated",
    )
    group.add_argument(
        "--lease",
        type=_positive,
        metavar="SECONDS",
        help="what is claimed ends by itself after that time, unless it is confirmed",
    )


def servers_of(asked: argparse.Namespace) -> list[str]:
    """Return the UUIDs of the servers to boot, new ones where none are given.

    :raises BadInput: there are none, more than are counted, or one is named twice
    """
    named: list[str] = asked.server
    count = len(named) if asked.count is None else asked.count
    if not count:
        raise BadInput(["give --server or --count"])
    if len(named) > count:
        raise BadInput([f"--count {count}: --server names {len(named)} servers"])
    if twice := sorted({each for each in named if named.count(each) > 1}):
        raise BadInput([f"--server names {', '.join(twice)} twice"])
    return [*named, *(str(uuid.uuid4()) for _ in range(count - len(named)))]


def wishes_of(asked: argparse.Namespace) -> dict[str, Json]:
    """Return the members that the options add to a request for placements.

    :raises BadInput: --at-most is given without --spread
    """
    if asked.at_most and asked.spread is None:
        raise BadInput(["--at-most needs --spread"])
    spread = asked.spread and {"per": asked.spread, "at_most": asked.at_most or 1}
    wishes = {
        "spread": spread,
        "prefer": asked.prefer,
        "lease_seconds": asked.lease,
    }
    return {name: value for name, value in wishes.items() if value}


def _domains(text: str) -> Json:
    return text if text == "host" else {"aggregates": _uuids(text)}


def _preference(text: str) -> Json:
    quality, _, rest = text.partition("=")
    name, _, weight = rest.partition(":")
    if quality not in QUALITIES or not name:
        qualities = "=..., ".join(QUALITIES)
        raise argparse.ArgumentTypeError(f"{text!r} is none of {qualities}=...")
    if quality in ("aggregate", "host"):
        name = _uuid(name)
    try:
        value = float(weight) if weight else 1.0
    except ValueError:
        value = 0.0
    if not (value and abs(value) <= HEAVIEST):
        raise argparse.ArgumentTypeError(
            f"the weight {weight!r} is 0, or not a number from -{HEAVIEST} to "
            f"{HEAVIEST}"
        )
    return {quality: name, "weight": value}


def _positive(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a UUID") from None


def _uuids(text: str) -> list[str]:
    return [_uuid(each) for each in text.split(",")]


def _isolated(text: str) -> tuple[str, set[str]]:
    aggregate, _, named = text.partition("=")
    traits = named.split(",")
    if not all(traits):
        raise argparse.ArgumentTypeError(f"{text!r} is not UUID=TRAIT[,TRAIT...]")
    return _uuid(aggregate), set(traits)


def _limit(text: str) -> int | None:
    if text == "none":
        return None
    try:
        return _positive(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number above 0 nor none"
        ) from None


def rules_of(asked: argparse.Namespace) -> Iterator[Rule]:
    """Yield the rules that the options select."""
    if not asked.include_disabled_hosts:
        yield rule.without_disabled_hosts
    if asked.isolated_aggregate:
        needed: dict[str, set[str]] = {}
        for aggregate, traits in asked.isolated_aggregate:
            needed.setdefault(aggregate, set()).update(traits)
        yield rule.isolated_aggregates(needed)
    for aggregates in (asked.tenant_aggregates, asked.zone_aggregates):
        if aggregates:
            yield rule.within_aggregates(aggregates)
    if asked.free_pool:
        yield rule.outside_free_pool(asked.free_pool)
