"""``placement-request``: queries Placement for the needs of a flavor and an image."""

import argparse
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from placement_clients.client import Client
from placement_clients.errors import PlacementError, Unavailable
from placement_clients.option import add_way, placement_of
from placement_clients.output import (
    complain,
    read_text,
    run,
    show_json,
    show_table,
)
from placement_clients.record import Candidates, Json
from placement_clients.request import (
    boot,
    flavor,
    gang,
    image,
    node,
    option,
    preflight,
    request,
)
from placement_clients.request.boot import Placed
from placement_clients.request.errors import BadInput, NoValidHost, ServerTaken
from placement_clients.request.flavor import Flavor
from placement_clients.request.image import Image
from placement_clients.request.request import Request
from placement_foundation.serving import completion
from placement_foundation.serving.terminal import visible

PROGRAM = "placement-request"
GOOD, NO_HOST, BAD_INPUT = range(3)
# With more hosts than this, one request lists the names of all providers.
FEW_HOSTS = 25

DESCRIPTION = """\
Request a host from Placement as a scheduler does: by a flavor, which says how large a
server is and what else it needs, and by the image that it runs.
"""
EPILOG = """\
exit status:
  0  good
  1  no valid host, or a check that failed
  2  bad input: the message names the flavor key or image property at fault
  3  Placement could not be reached, or refuses

examples:
  openstack flavor show m1.small -f json > flavor.json
  openstack image show cirros -f json > image.json
  placement-request query --flavor flavor.json --image image.json
  placement-request candidates --flavor flavor.json --image image.json \\
      --url http://127.0.0.1:8778 --token admin

`placement-request COMMAND --help` lists the options of a command.
"""
# What each command does, in a few words and in some more.
QUERY = (
    "print the query string that would be sent to Placement",
    "Print the query string that would be sent to Placement, without sending it. A "
    "query that Placement would refuse is printed too, with the reason.",
)
CANDIDATES = (
    "print the hosts that can take the server",
    "Print the hosts that can take the server: what it would take from which "
    "providers, and which request groups these serve. Nothing is claimed.",
)
BOOT = (
    "choose hosts for servers, and claim what they need there",
    "Choose a host for a server, or for each of several, and claim what they need "
    "there: for all of them, or for none. A server that holds something already is "
    "not booted; of several servers, those that are there already keep what they "
    "have, so the same command may be run again.",
)
REBUILD_CHECK = (
    "check whether a server may be rebuilt from another image where it is",
    "Check whether a server may be rebuilt from another image where it is: whether "
    "what it holds has the traits that the new image requires. A full host is no "
    "obstacle.",
)
NODE_PATCH = (
    "print the patch that gives a bare metal node its instance's traits",
    "Print the JSON patch for PATCH /v1/nodes/NODE of the bare metal service: the "
    "traits that flavor and image require. It is empty if there are none.",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    return run(PROGRAM, partial(_run, arguments), unusable=BAD_INPUT)


def _run(arguments: Sequence[str] | None) -> int:
    asked = _parser().parse_args(arguments)
    try:
        status: int = asked.run(asked)
    except ServerTaken as exc:
        complain(PROGRAM, [str(exc)])
        return NO_HOST
    return status


# The commands


def show_query(asked: argparse.Namespace) -> int:
    """Print the query string, even one that Placement would refuse."""
    wanted = _request(asked)
    if asked.json:
        show_json(
            {
                "query": wanted.query,
                "parameters": wanted.parameters,
                "warnings": wanted.warnings,
                "problems": wanted.problems,
                "not_in_query": wanted.beside,
            }
        )
    else:
        print(wanted.query)
    complain(PROGRAM, wanted.problems)
    return BAD_INPUT if wanted.problems and not asked.lenient else GOOD


def show_candidates(asked: argparse.Namespace) -> int:
    """Print the hosts that can take the server, and the candidates there."""
    wanted = _request(asked)
    placement = placement_of(asked)
    try:
        found = boot.find(placement, wanted)
    except NoValidHost as exc:
        return _no_valid_host(asked, exc, {"query": wanted.query, "candidates": []})
    if asked.json:
        show_json(
            {
                "query": wanted.query,
                "candidates": [
                    {
                        "host": boot.host_of(each, found.summaries),
                        "allocations": each.allocations,
                        "mappings": each.mappings,
                    }
                    for each in found.found
                ],
                "provider_summaries": found.summaries,
            }
        )
        return GOOD
    hosts = {boot.host_of(each, found.summaries) for each in found.found}
    names = _names(placement, hosts)
    columns = ["#", "HOST", "PROVIDER", "UUID", "AMOUNTS", "GROUPS"]
    show_table(columns, _candidate_rows(found, names))
    print(
        f"\n{_counted(len(found.found), 'candidate')} on {_counted(len(hosts), 'host')}"
    )
    return GOOD


def boot_servers(asked: argparse.Namespace) -> int:
    """Choose hosts for servers and claim what they need: for all of them, or none."""
    wanted = _request(asked)
    wished = option.wishes_of(asked)
    servers = [
        boot.Server(uuid, asked.project, asked.user, asked.consumer_type)
        for uuid in option.servers_of(asked)
    ]
    placement = placement_of(asked)
    try:
        placed = gang.place(placement, servers, wanted, wished)
    except NoValidHost as exc:
        one = {"server": servers[0].uuid, "host": None}
        return _no_valid_host(asked, exc, {"servers": []} if servers[1:] else one)
    except Unavailable as exc:
        if not exc.may_have_succeeded:
            raise
        uuids = ", ".join(server.uuid for server in servers)
        raise Unavailable(
            f"{exc.reason}; {_plural(len(servers), 'server')} {uuids} may have been "
            "booted all the same",
            status=exc.status,
            request_id=exc.request_id,
        ) from exc
    documents = [
        {
            name: value
            for name, value in dataclasses.asdict(each).items()
            if name != "expires_at" or value
        }
        for each in placed
    ]
    if asked.json:
        show_json(documents[0] if len(servers) == 1 else {"servers": documents})
        return GOOD
    names = _names(placement, {each.host for each in placed})
    if len(placed) == 1:
        _show_server(placed[0], names)
    else:
        _show_servers(placed, names)
    return GOOD


def _show_server(placed: Placed, names: Mapping[str, str]) -> None:
    host = placed.host
    if host in names:
        host = f"{names[host]} ({host})"
    until = f" until {placed.expires_at}" if placed.expires_at else ""
    print(visible(f"server {placed.server} is on host {host}{until}") + "\n")
    columns = ["PROVIDER", "UUID", "AMOUNTS", "GROUPS"]
    show_table(columns, _provider_rows(placed.allocations, placed.mappings, names))


def _show_servers(placed: Sequence[Placed], names: Mapping[str, str]) -> None:
    rows = [
        (each.server, names.get(each.host, each.host), *row)
        for each in placed
        for row in _provider_rows(each.allocations, each.mappings, names)
    ]
    show_table(["SERVER", "HOST", "PROVIDER", "UUID", "AMOUNTS", "GROUPS"], rows)
    hosts = {each.host for each in placed}
    existed = sum(each.existed for each in placed)
    summary = f"{_counted(len(placed), 'server')} on {_counted(len(hosts), 'host')}"
    ends = [each.expires_at for each in placed if each.expires_at]
    more = [f"{existed} of them already"] if existed else []
    more += [f"the first of them until {min(ends)}"] if ends else []
    print("\n" + ", ".join([summary, *more]))


def check_rebuild(asked: argparse.Namespace) -> int:
    """Print whether a server may be rebuilt from another image where it is."""
    size = _flavor(asked)
    old, new = image.parse(_load(asked.old_image)), image.parse(_load(asked.image))
    verdict = preflight.foresee(size, old, new) or preflight.check_held(
        placement_of(asked), str(asked.server), new
    )
    if asked.json:
        show_json(
            {
                "verdict": "pass" if verdict.passed else "fail",
                "reason": verdict.reason,
                "missing": verdict.missing,
                "forbidden": verdict.forbidden,
                "traits": {each: sorted(has) for each, has in verdict.traits.items()},
            }
        )
    else:
        print(visible(f"{'pass' if verdict.passed else 'fail'}: {verdict.reason}"))
        if verdict.traits:
            print()
            rows = verdict.traits.items()
            show_table(
                ["PROVIDER", "TRAITS"],
                ((each, " ".join(sorted(traits)) or "-") for each, traits in rows),
            )
    return GOOD if verdict.passed else NO_HOST


def show_node_patch(asked: argparse.Namespace) -> int:
    """Print the patch that gives a bare metal node the traits of its instance."""
    show_json(node.patch(_flavor(asked), _image(asked)))
    return GOOD


# Shared by the commands


def _request(asked: argparse.Namespace) -> Request:
    """Return the request for the flavor and the image, and print its warnings."""
    wanted = request.build(
        _flavor(asked),
        _image(asked),
        volume_backed=asked.volume_backed,
        rules=list(option.rules_of(asked)),
        limit=asked.limit,
    )
    if wanted.warnings and not asked.lenient:
        raise BadInput(*wanted.warnings)
    beside = ", ".join(wanted.beside)
    notes = [f"not part of the query: {beside}"] if beside else []
    complain(f"{PROGRAM}: warning", [*wanted.warnings, *notes])
    return wanted


def _flavor(asked: argparse.Namespace) -> Flavor:
    files = [asked.flavor, asked.image, getattr(asked, "old_image", None)]
    if files.count("-") > 1:
        raise BadInput("only one file can come from standard input")
    return flavor.parse(_load(asked.flavor))


def _image(asked: argparse.Namespace) -> Image | None:
    return image.parse(_load(asked.image)) if asked.image else None


def _load(name: str) -> Json:
    """Return the JSON document in a file, or on standard input.

    :raises BadInput: it is not JSON
    """
    try:
        return json.loads(read_text(name))
    except (ValueError, RecursionError) as exc:
        raise BadInput(f"{name} is not JSON: {exc}") from exc


def _names(placement: Client, hosts: set[str]) -> dict[str, str]:
    """Return the names of the providers of some hosts, if Placement gives them."""
    trees: list[str | None] = [*sorted(hosts)] if len(hosts) <= FEW_HOSTS else [None]
    try:
        return {
            provider.uuid: provider.name
            for tree in trees
            for provider in placement.list_providers(in_tree=tree)
        }
    except PlacementError:
        return {}


def _counted(number: int, noun: str) -> str:
    return f"{number} {_plural(number, noun)}"


def _plural(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"


def _candidate_rows(
    found: Candidates, names: Mapping[str, str]
) -> Iterator[tuple[str, ...]]:
    for number, candidate in enumerate(found.found, 1):
        host = boot.host_of(candidate, found.summaries)
        for row in _provider_rows(candidate.allocations, candidate.mappings, names):
            yield (str(number), names.get(host, host), *row)


def _provider_rows(
    allocations: Json, mappings: Mapping[str, list[str]], names: Mapping[str, str]
) -> list[tuple[str, ...]]:
    """Return the name, UUID, amounts and served groups of each provider."""
    served = {
        provider: sorted(
            suffix for suffix, serving in mappings.items() if provider in serving
        )
        for provider in allocations
    }
    order = sorted(served, key=lambda each: (served[each], names.get(each, each)))
    return [
        (
            names.get(provider, "-"),
            provider,
            _amounts(allocations[provider]["resources"]),
            " ".join(suffix or "(no suffix)" for suffix in served[provider]),
        )
        for provider in order
    ]


def _amounts(resources: Mapping[str, int]) -> str:
    return " ".join(f"{name}:{amount}" for name, amount in sorted(resources.items()))


def _no_valid_host(
    asked: argparse.Namespace, exc: NoValidHost, document: dict[str, Json]
) -> int:
    """Report that there is no host, and why if the service explains it."""
    why = exc.explanation
    if asked.json:
        show_json({**document, "reason": exc.reason, "explanation": why})
    lines = [f"no valid host: {exc.reason}"]
    if why:
        # The same change may help with two constraints.
        texts = dict.fromkeys(each["text"] for each in why.get("changes", ()))
        lines += [why["summary"], *(f"what would help: {each}" for each in texts)]
    complain(PROGRAM, lines)
    return NO_HOST


# The arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    completion.add(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    needs = option.add_wanted, option.add_rules
    _add(commands, "query", show_query, QUERY, *needs)
    _add(commands, "candidates", show_candidates, CANDIDATES, *needs, add_way)
    gang = option.add_servers, option.add_wishes
    _add(commands, "boot", boot_servers, BOOT, *needs, add_way, *gang)
    check = option.add_rebuild, add_way
    _add(commands, "rebuild-check", check_rebuild, REBUILD_CHECK, *check)
    _add(commands, "node-patch", show_node_patch, NODE_PATCH, option.add_inputs)
    return parser


def _add(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    texts: tuple[str, str],
    *add_options: Callable[[argparse.ArgumentParser], None],
) -> None:
    """Add a command.

    :param texts: what it does, in a list of commands and in its own help
    """
    short, whole = texts
    parser = commands.add_parser(name, help=short, description=whole)
    for add in add_options:
        add(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.set_defaults(run=run)
