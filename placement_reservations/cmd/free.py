"""``placement-reservations free``: when a lease could start."""

import argparse
from typing import Any

from placement_clients import access, output, record
from placement_clients.access import Misconfigured
from placement_clients.client import Client
from placement_clients.errors import BadRequest, PlacementError
from placement_clients.option import add_options
from placement_foundation.serving import program
from placement_foundation.serving.program import Program

# The exit codes of the command, besides 0 and that of no answer.
NEVER, REFUSED = 1, 2
PARSE = record.parser_with(free=list, until=str)
COLUMNS = ("first_start", "last_start")
# The parameters of the API, and what they mean.
SIZES = {
    "vcpus": "processors of an instance",
    "memory_mb": "memory of an instance, in MB",
    "disk_gb": "disk of an instance, in GB",
    "amount": "how many instances",
}
OTHERS = {
    "affinity": ("None, True: all on one host, or False: all on different ones"),
    "resource_properties": 'what hosts must have: \'["==", "$gpu", "True"]\'',
    "minutes": "how long the lease is (60)",
    "start_date": 'not before: "YYYY-MM-DD HH:MM" in UTC (now)',
    "end_date": "not after (30 days later)",
}
OUTPUT_AND_WAY = {
    "--json": "print the answer as JSON",
    "--url URL": "URL of the reservation service, without /v1 (%(default)s)",
    "--token TOKEN": "token to send; by default the OS_* variables say how to get one",
}


def add(commands: Any, of: Program) -> None:
    """Add the command to those of a program."""

    def list_free(asked: argparse.Namespace) -> int:
        """List the times at which a lease could start, and what is lacking before."""
        return _run(of.name, asked)

    parser = program.add_command(commands, "free", list_free)
    for name, meaning in {**SIZES, **OTHERS}.items():
        parser.add_argument(
            "--" + name.removesuffix("_date").replace("_", "-"),
            dest=name,
            required=name in SIZES,
            metavar="N" if name in SIZES else "VALUE",
            help=meaning,
        )
    add_options(parser, OUTPUT_AND_WAY)
    parser.set_defaults(url=f"http://127.0.0.1:{of.port}")


def _run(name: str, asked: argparse.Namespace) -> int:
    try:
        found = _ask(asked)
    except (Misconfigured, PlacementError) as exc:
        refusal = isinstance(exc, BadRequest) and exc.document
        if refusal:
            output.complain(name, [str(refusal.get("error_message"))])
            return REFUSED
        output.complain(name, [f"the service could not be reached: {exc}"])
        return output.NO_ANSWER
    free = found["free"]
    if found.get("lacking"):
        output.complain(name, [f"{found['lacking']} {_advise(found)}"])
    if asked.json:
        output.show_json(found)
    elif free:
        rows = ([_shown(each[column]) for column in COLUMNS] for each in free)
        output.show_table(COLUMNS, rows)
    return 0 if free else NEVER


def _advise(found: dict[str, Any]) -> str:
    if not found["free"]:
        return f"It fits at no time up to {_shown(found['until'])}."
    return f"It would fit from {_shown(found['free'][0]['first_start'])}."


def _shown(moment: str) -> str:
    """Return a time as commands take it."""
    return moment[:16].replace("T", " ")


def _ask(asked: argparse.Namespace) -> dict[str, Any]:
    """Return the answer of the service.

    :raises PlacementError: it could not be reached, or answered something else
    """
    given = vars(asked)
    query = {name: given[name] for name in (*SIZES, *OTHERS) if given[name] is not None}
    way = access.from_environment(url=asked.url, token=asked.token)
    document = Client(way, service_type="reservation").get(
        "/v1/leases/free", version="1.0", query=query
    )
    found: dict[str, Any] = PARSE(document)
    return found
