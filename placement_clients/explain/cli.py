"""``placement-explain``: why nothing fits, how much still does, and what there is."""

import argparse
import json
import sys
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NoReturn

from placement_clients import record
from placement_clients.client import Client
from placement_clients.errors import BadRequest, NotFound
from placement_clients.explain import drawing, history
from placement_clients.option import parser_of, placement_of
from placement_clients.output import complain, console_of, run, show_json
from placement_clients.record import Json
from placement_foundation.observing import progress
from placement_foundation.serving.terminal import visible

PROGRAM = "placement-explain"
SERVES, NONE_SERVES, BAD_QUERY = range(3)
VERSION = "latest"
# Parameters of the fleet that change its document.
DOCUMENT_ONLY = ("fields", "repeats")
# The documents of the ledger API that the commands read.
PARSERS: Mapping[str, Callable[[Json], Json]] = {
    "explanation": record.parser_with(
        summary=str, serves=int, hosts=int, complete=bool, constraints=list
    ),
    "capacity": record.parser_with(total=int, exact=bool, hosts=list),
    "fleet": record.parser_with(providers=list),
    "history": record.parser_with(history=list),
}

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    return run(PROGRAM, partial(_run, arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    asked = parser.parse_args(arguments)
    command, query = _divide(asked.what, parser.error)
    _check_options(command, query, asked, parser.error)
    try:
        return COMMANDS[command](placement_of(asked), query, asked)
    except (BadRequest, UnknownHost) as exc:
        complain(PROGRAM, [str(exc)])
        return BAD_QUERY


class UnknownHost(Exception):
    """A host in the query does not exist."""


def explain(placement: Client, query: str, asked: argparse.Namespace) -> int:
    """Print why hosts do not serve a request."""
    own = [f"host={urllib.parse.quote(host, safe='')}" for host in asked.host]
    if asked.holders:
        own.append("holders=true")
    try:
        document = _get(placement, "explanation", "&".join([query, *own]))
    except NotFound as exc:
        if asked.host and "No resource provider" in exc.detail:
            raise UnknownHost(exc.reason) from exc
        raise
    if asked.json:
        show_json(document)
    else:
        drawing.draw_explanation(console_of(sys.stdout), document)
    return SERVES if document["serves"] else NONE_SERVES


def count(placement: Client, query: str, asked: argparse.Namespace) -> int:
    """Print how many times a request could be claimed."""
    document = _get(placement, "capacity", query)
    if asked.json:
        show_json(document)
    else:
        drawing.draw_capacity(console_of(sys.stdout), document)
    return SERVES if document["total"] else NONE_SERVES


def show_fleet(placement: Client, query: str, asked: argparse.Namespace) -> int:
    """Print the fleet."""
    document = _get(placement, "fleet", query)
    kind = _format_of(asked)
    if kind == "json":
        print(json.dumps(document))
    elif kind == "csv":
        print(drawing.fleet_as_csv(document), end="")
    else:
        drawing.draw_fleet(console_of(sys.stdout), document)
    return SERVES


def show_history(placement: Client, what: str, asked: argparse.Namespace) -> int:
    """Print the history of a provider or a consumer."""
    for filters in history.filters_of(placement, what):
        query = f"{filters}&limit={history.LIMIT}"
        document = _get(placement, "history", query)
        is_known = history.has_changes(document["history"])
        if is_known:
            break
    if asked.json:
        show_json(document)
    else:
        for line in history.lines_of(document["history"]):
            print(visible(line))
    if not is_known:
        complain(PROGRAM, [f"nothing is known of {what}"])
    return SERVES if is_known else NONE_SERVES


COMMANDS: Mapping[str, Callable[[Client, str, argparse.Namespace], int]] = {
    "explain": explain,
    "capacity": count,
    "fleet": show_fleet,
    "history": show_history,
}


def _get(placement: Client, name: str, query: str) -> Json:
    with progress.shown() as report:
        report.begin("waiting for Placement")
        document = placement.get(f"/ledger/v1/{name}", version=VERSION, query=query)
    return PARSERS[name](document)


def _divide(what: Sequence[str], refuse: Callable[[str], NoReturn]) -> tuple[str, str]:
    """Return the command, which need not be given, and its query."""
    command, *queries = what if what[0] in COMMANDS else ("explain", *what)
    if len(queries) > 1:
        refuse(f"only one query is possible: {' '.join(queries[1:])}")
    # An empty one, as of a shell's unset variable, would mean any provider.
    if not any(queries) and command != "fleet":
        refuse("a query is needed")
    return command, "".join(queries)


def _check_options(
    command: str,
    query: str,
    asked: argparse.Namespace,
    refuse: Callable[[str], NoReturn],
) -> None:
    """Check that no option would be without effect."""
    if command != "explain" and (asked.host or asked.holders):
        refuse(f"--host and --holders explain a request: {command} has neither")
    if command != "fleet":
        if asked.format:
            refuse("--format is for the fleet; --json prints the document")
    elif _format_of(asked) != "json":
        for name, _ in urllib.parse.parse_qsl(query, keep_blank_values=True):
            if name in DOCUMENT_ONLY:
                refuse(f"{name}= needs --json: a table has all of its columns")


def _format_of(asked: argparse.Namespace) -> str:
    return "json" if asked.json else asked.format or "table"


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(PROGRAM, DESCRIPTION, EPILOG, USAGE)
    parser.add_argument("what", nargs="+", metavar="QUERY", help="the request")
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="NAME",
        help="explain why this host, by name or UUID, does not serve; may be repeated",
    )
    parser.add_argument(
        "--holders",
        action="store_true",
        help="name the consumers that hold most of what the nearest hosts lack",
    )
    parser.add_argument("--json", action="store_true", help="print the document")
    parser.add_argument(
        "--format",
        choices=["table", "json", "csv"],
        help="how the fleet is printed (table)",
    )
    return parser
