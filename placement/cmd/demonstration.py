"""``placement-manage demo``: a cloud to look at, for users who have no data yet."""

import argparse
import functools
import sys
from typing import Any

from oslo_config import cfg

from placement import errors
from placement.demonstration import planting
from placement.objects.ledger import Ledger
from placement_foundation.observing import progress

CATEGORY = "demo"
MOST_HOSTS = 100_000


def add(categories: Any) -> None:
    """Add the command to those of ``placement-manage``."""
    parser = categories.add_parser(CATEGORY, help=run.__doc__, description=run.__doc__)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument(
        "--hosts",
        type=_hosts,
        metavar="<number>",
        help="Fill an empty database with a cloud of so many hosts. All names in it "
        "begin with demo-.",
    )
    group.add_argument(
        "--remove",
        action="store_true",
        help="Take the cloud away again, with all that was claimed of it.",
    )
    parser.set_defaults(action="", run=run, code_of_trouble=1)


def _hosts(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= MOST_HOSTS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number between 1 and {MOST_HOSTS}"
        )
    return number


def take_embedded(config: cfg.ConfigOpts) -> None:
    """Use the embedded database, as ``placement-api`` does without configuration."""
    # The other categories do not need the service, with its server.
    from placement.cmd import api
    from placement_foundation.serving import program

    url = program.embedded_url(api.PROGRAM)
    config.set_default("connection", url, "placement_database")


def run(ledger: Ledger, config: cfg.ConfigOpts) -> int:
    """Fill an empty database with a cloud to look at, or remove that cloud."""
    from placement.cmd import api
    from placement_foundation.serving import program

    arguments, work = config.category, planting.remove
    if not arguments.remove:
        work = functools.partial(planting.plant, hosts=arguments.hosts)
    try:
        program.prepare_database(api.PROGRAM, config)
        with progress.shown() as report:
            number = ledger.write(lambda tx: work(tx, report=report))
    except (errors.Conflict, program.Unusable) as exc:
        print(exc, file=sys.stderr)
        return 1
    if arguments.remove:
        print(f"{number} providers of the demonstration cloud are gone")
    else:
        print(f"{arguments.hosts} hosts, {number} providers in all")
    return 0
