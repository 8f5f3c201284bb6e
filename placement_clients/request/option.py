"""The options of ``placement-request``, and how they are evaluated."""

import argparse
import uuid
from collections.abc import Iterator

from placement_clients.request import request, rule
from placement_clients.request.request import Rule


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
        help="the most candidates to ask for, or none (%(default)s)",
    )
    return parser


def rules() -> argparse.ArgumentParser:
    """Return the options for the rules of the deployment."""
    parser = argparse.ArgumentParser(add_help=False)
    group = parser.add_argument_group("rules of the deployment")
    group.add_argument(
        "--include-disabled-hosts",
        action="store_true",
        help="also ask for hosts whose compute service is disabled",
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
        "it, unless a CUSTOM_RESERVATION_... class is asked for",
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


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a UUID") from None


def _uuids(text: str) -> list[str]:
    return [_uuid(each) for each in text.split(",")]


def _isolated(text: str) -> tuple[str, set[str]]:
    aggregate, _, traits = text.partition("=")
    if not traits:
        raise argparse.ArgumentTypeError(f"{text!r} is not UUID=TRAIT[,TRAIT...]")
    return _uuid(aggregate), set(traits.split(","))


def _limit(text: str) -> int | None:
    if text == "none":
        return None
    if text.isascii() and text.isdigit() and int(text):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is neither a number above 0 nor none")


def rules_of(asked: argparse.Namespace) -> Iterator[Rule]:
    """Yield the rules that the options ask for."""
    if not asked.include_disabled_hosts:
        yield rule.without_disabled_hosts
    if asked.isolated_aggregate:
        yield rule.isolated_aggregates(dict(asked.isolated_aggregate))
    for aggregates in (asked.tenant_aggregates, asked.zone_aggregates):
        if aggregates:
            yield rule.within_aggregates(aggregates)
    if asked.free_pool:
        yield rule.outside_free_pool(asked.free_pool)
