"""``placement-explain``: why nothing fits, how much still does, and what there is."""

import argparse
import json
import sys
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rich.console import Console

from placement_clients.client import Client
from placement_clients.errors import BadRequest, NotFound
from placement_clients.explain import drawing, history
from placement_clients.option import add_options, parser_of, placement_of
from placement_clients.output import Unusable, complain, console_of, run, show_json
from placement_clients.record import Json
from placement_foundation.observing import progress

PROGRAM = "placement-explain"
SERVES, NONE_SERVES, BAD_QUERY = range(3)
# Parameters of the fleet that change its document.
DOCUMENT_ONLY = ("fields", "repeats")
USAGE = """\
placement-explain QUERY [--host NAME] [--holders] [options]
       placement-explain capacity QUERY [options]
       placement-explain fleet [FILTERS] [--format table|json|csv] [options]
       placement-explain history CONSUMER|PROVIDER|NAME [--json] [options]"""
DESCRIPTION = """\
Explain why hosts do not serve a request, and what would help. A QUERY is that of
GET /allocation_candidates, FILTERS are those of GET /resource_providers. History says
what has changed, the newest first, and by which request.
"""
EPILOG = """\
exit status:
  0  some host serves; history: something has changed
  1  none does; history: nothing is known
  2  bad query
  3  no answer

examples:
  placement-explain 'resources=VCPU:16&required=CUSTOM_TRUSTED' --host compute-12
  placement-explain capacity 'resources=VCPU:4,MEMORY_MB:8192'
  placement-explain history compute-7
  placement-explain fleet --format csv 'member_of=7b6c0b5e-...' > fleet.csv
"""
OPTIONS = {
    "--host NAME...": "explain why this host, by name or UUID, does not serve; may be "
    "repeated",
    "--holders": "name the consumers that hold most of what the nearest hosts lack",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    return run(PROGRAM, partial(_run, arguments), unusable=BAD_QUERY)


def _run(arguments: Sequence[str] | None) -> int:
    command, query, asked = _parse(arguments)
    try:
        return COMMANDS[command](placement_of(asked), query, asked)
    except BadRequest as exc:
        raise Unusable(str(exc)) from exc


def explain(placement: Client, query: str, asked: argparse.Namespace) -> int:
    """Print why hosts do not serve a request."""
    own = [f"host={urllib.parse.quote(host, safe='')}" for host in asked.host]
    if asked.holders:
        own.append("holders=true")
    try:
        document = _get(
            placement,
            "explanation",
            "&".join([query, *own]),
            summary=str,
            serves=int,
            hosts=int,
            complete=bool,
            constraints=list,
        )
    except NotFound as exc:
        if asked.host and "No resource provider" in exc.detail:
            raise Unusable(exc.reason) from exc
        raise
    _show(document, asked, drawing.draw_explanation)
    return SERVES if document["serves"] else NONE_SERVES


def count(placement: Client, query: str, asked: argparse.Namespace) -> int:
    """Print how many times a request could be claimed."""
    document = _get(placement, "capacity", query, total=int, exact=bool, hosts=list)
    _show(document, asked, drawing.draw_capacity)
    return SERVES if document["total"] else NONE_SERVES


def show_fleet(placement: Client, query: str, asked: argparse.Namespace) -> int:
    """Print the fleet."""
    document = _get(placement, "fleet", query, providers=list)
    if asked.format == "json":
        print(json.dumps(document))
    elif asked.format == "csv":
        print(drawing.fleet_as_csv(document), end="")
    else:
        drawing.draw_fleet(console_of(sys.stdout), document)
    return SERVES


def show_history(placement: Client, what: str, asked: argparse.Namespace) -> int:
    """Print the history of a provider or a consumer."""
    for filters in history.filters_of(placement, what):
        query = f"{filters}&limit={history.LIMIT}"
        document = _get(placement, "history", query, history=list)
        is_known = history.has_changes(document["history"])
        if is_known:
            break
    _show(document, asked, history.draw)
    if not is_known:
        complain(PROGRAM, [f"nothing is known of {what}"])
    return SERVES if is_known else NONE_SERVES


def _show(
    document: Json, asked: argparse.Namespace, draw: Callable[[Console, Json], None]
) -> None:
    """Print a document, as it is or as a person reads it."""
    if asked.format == "json":
        show_json(document)
    else:
        draw(console_of(sys.stdout), document)


COMMANDS: Mapping[str, Callable[[Client, str, argparse.Namespace], int]] = {
    "explain": explain,
    "capacity": count,
    "fleet": show_fleet,
    "history": show_history,
}


def _get(placement: Client, name: str, query: str, **members: type) -> Json:
    with progress.shown() as report:
        report.begin("waiting for Placement")
        return placement.get_ledger(name, query, **members)


def _parse(arguments: Sequence[str] | None) -> tuple[str, str, argparse.Namespace]:
    """Return the command, which need not be given, its query, and the options.

    No option may be without effect.
    """
    parser = _parser()
    asked = parser.parse_args(arguments)
    command, *queries = (
        asked.what if asked.what[0] in COMMANDS else ("explain", *asked.what)
    )
    query = "".join(queries[:1])
    if len(queries) > 1:
        parser.error(f"only one query is possible: {' '.join(queries[1:])}")
    # An empty one, as of a shell's unset variable, would mean any provider.
    if not query and command != "fleet":
        parser.error("a query is needed")
    if command != "explain" and (asked.host or asked.holders):
        parser.error(f"--host and --holders explain a request: {command} has neither")
    if command != "fleet":
        if asked.format in ("table", "csv"):
            parser.error("--format is for the fleet; --json prints the document")
    elif asked.format != "json":
        for name, _ in urllib.parse.parse_qsl(query, keep_blank_values=True):
            if name in DOCUMENT_ONLY:
                parser.error(f"{name}= needs --json: a table has all of its columns")
    return command, query, asked


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(PROGRAM, DESCRIPTION, EPILOG, USAGE)
    parser.add_argument("what", nargs="+", metavar="QUERY", help="the request")
    add_options(parser, OPTIONS)
    parser.add_argument(
        "--json",
        action="store_const",
        const="json",
        dest="format",
        help="print the document",
    )
    parser.add_argument(
        "--format",
        choices=["table", "json", "csv"],
        help="how the fleet is printed (table)",
    )
    return parser
