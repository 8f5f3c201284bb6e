"""``placement-audit``: the command."""

import argparse
import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from placement_clients.audit import drawing, release
from placement_clients.audit.alive import AliveFile
from placement_clients.audit.audit import Audit, Counts
from placement_clients.audit.judging import ORPHAN, Finding
from placement_clients.audit.life import Source
from placement_clients.audit.release import LEFT
from placement_clients.audit.reserved import Reservations
from placement_clients.client import Client
from placement_clients.option import (
    add_options,
    from_environment,
    parser_of,
    placement_of,
)
from placement_clients.output import Unusable, agrees, check_can_ask, complain, run
from placement_foundation.observing import progress
from placement_foundation.serving.terminal import visible

PROGRAM = "placement-audit"
NOTHING, FOUND, ERROR = range(3)
USAGE = """\
placement-audit SOURCE... [--type NAME]... [--format table|json|csv] [options]
       placement-audit SOURCE... --release [--older-than 1h] [--yes] [options]
       placement-audit --undo FILE [options]"""
DESCRIPTION = """\
Find claims in Placement whose consumer no longer lives, consumers that live and claim
nothing, and claims on another host or of other amounts than the consumer's. A SOURCE
of living consumers is --nova, --ironic, --reservations or --alive. Nothing is changed
without --release.
"""
EPILOG = """\
exit status:
  0  nothing was found, or everything that was found is released or restored
  1  something was found, or could not be released or restored
  2  wrong options, a file that cannot be used, or a service did not answer

examples:
  placement-audit --nova
  placement-audit --nova --ironic --format csv > audit.csv
  placement-audit --nova --record nova
  placement-audit --alive alive.ndjson --release --older-than 1d
  placement-audit --undo placement-audit-undo-20261122T100000Z.ndjson
"""
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
LIVING = {
    "--nova": "servers of all projects, and migrations; reached as by the openstack "
    "command line, or as the [nova] section of --config-file says",
    "--ironic": "instances of nodes; the section is [ironic]",
    "--reservations URL": "reservations of this service, such as "
    "http://127.0.0.1:1234/v1: claims of reserved slots live as long as these",
    "--alive FILE...": "lines of JSON with uuid, maybe host, maybe resources; may be "
    "repeated",
}
TYPES = {
    "--type NAME...": "look only for orphans of this consumer type; may be repeated",
}
RELEASE = {
    "--release": "delete the claims of orphans, after a confirmation",
    "--older-than TIME": "release only claims that are older, such as 30m, 1h or 2d "
    "(%(default)s); 0 means all",
    "--yes": "need no confirmation",
    "--undo-file FILE": "write what is released there; by default a new file in this "
    "directory",
    "--undo FILE": "claim again what was released, from this file",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    work = partial(_run, arguments)
    return run(PROGRAM, work, unusable=ERROR, no_answer=ERROR)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    asked = parser.parse_args(arguments)
    named = asked.nova or asked.ironic or asked.reservations or asked.alive
    if not (named or asked.undo):
        parser.error("one of --nova, --ironic, --reservations and --alive is needed")
    if asked.undo and (named or asked.release or asked.record):
        parser.error("--undo goes with nothing else")
    return asked


def _run(arguments: Sequence[str] | None) -> int:
    asked = _parse(arguments)
    if asked.undo:
        return restore(placement_of(asked), asked.undo)
    placement, sources = placement_of(asked), list(_sources(asked))
    if asked.type:
        for source in sources:
            source.types = frozenset(asked.type)
    return audit(placement, sources, asked)


def audit(
    placement: Client, sources: Sequence[Source], asked: argparse.Namespace
) -> int:
    """Print the findings, and release orphans if requested."""
    if asked.release and not asked.yes:
        check_can_ask()
    with progress.shown() as shown:
        work = Audit(placement, sources, shown)
        findings = work.run(twice=asked.release)
    try:
        return _report(work, findings, asked)
    finally:
        # The findings are true even if their release was refused.
        if asked.record:
            drawing.record(placement, asked.record, findings, work.counts)


def _report(work: Audit, found: Sequence[Finding], asked: argparse.Namespace) -> int:
    """Print the findings, release orphans if requested, and return the status."""
    show = FORMATS[asked.format]
    orphans = [each for each in found if each.kind == ORPHAN]
    if not (asked.release and orphans):
        show(found, work.counts)
        return FOUND if found else NOTHING
    if asked.format == "table":
        show(found, work.counts)
    _check_release(work, len(orphans), asked)
    now = datetime.datetime.now(datetime.UTC)
    new = Path(f"placement-audit-undo-{now:%Y%m%dT%H%M%SZ}.ndjson")
    path = asked.undo_file or new
    complain(PROGRAM, [f"--undo {path} claims again what is released now"])
    report = _say if asked.format == "table" else lambda *_: None
    try:
        release.release(work, orphans, asked.older_than[1], path, report)
    finally:
        # After any interruption, the releases so far are shown.
        if asked.format != "table":
            show(found, work.counts)
    return NOTHING if all(each.result == release.RELEASED for each in found) else FOUND


def _check_release(work: Audit, orphans: int, asked: argparse.Namespace) -> None:
    """Check that orphans are to be released.

    :raises Unusable: no consumer lives, which is more likely to be a mistake, or a
        person does not agree
    """
    if not work.counts.living and any(each.lists_consumers for each in work.sources):
        raise Unusable("no living consumer was found: nothing is released")
    age, older_than = asked.older_than
    what = f"{orphans} orphan{'s' if orphans > 1 else ''}"
    what += f" older than {age}" if older_than else ""
    if not (asked.yes or agrees(f"Release {what}?")):
        raise Unusable("nothing was released")


def restore(placement: Client, path: Path) -> int:
    """Restore released claims."""
    left = 0
    for consumer, result in release.restore(placement, path):
        _say(consumer, result)
        left += result.startswith(LEFT)
    return FOUND if left else NOTHING


def _say(consumer: str, result: str) -> None:
    print(visible(f"{consumer}: {result}"), flush=True)


FORMATS: Mapping[str, Callable[[Sequence[Finding], Counts], None]] = {
    "table": drawing.draw_tables,
    "json": drawing.print_json,
    "csv": drawing.print_csv,
}


def _sources(asked: argparse.Namespace) -> Iterator[Source]:
    """Yield the sources that the options name.

    :raises Unusable: a library is missing
    """
    if asked.nova or asked.ironic:
        yield from _of_openstack(asked)
    if asked.reservations:
        yield Reservations(Client(from_environment(asked, asked.reservations)))
    for path in asked.alive:
        yield AliveFile(path)


def _of_openstack(asked: argparse.Namespace) -> Iterator[Source]:
    try:
        from placement_clients.audit import sdk
    except ModuleNotFoundError as exc:
        raise Unusable(
            "--nova and --ironic need openstacksdk: "
            'pip install "placement-server[nova]"'
        ) from exc
    if asked.nova:
        from placement_clients.audit.nova import Nova

        yield Nova(sdk.connect(asked.config_file, "nova").compute)
    if asked.ironic:
        from placement_clients.audit.ironic import Ironic

        yield Ironic(sdk.connect(asked.config_file, "ironic").baremetal)


def name(text: str) -> str:
    """Return the name of an audit, as the ledger API takes it."""
    if not re.fullmatch("[a-z0-9][a-z0-9._-]{0,63}", text):
        raise ValueError(text)
    return text


def duration(text: str) -> tuple[str, datetime.timedelta]:
    """Return a duration such as ``90s``, ``1h`` or ``2d``, and how it was written."""
    found = re.fullmatch(r"([0-9]{1,6})([smhdw])", "0s" if text == "0" else text)
    if not found:
        raise ValueError(text)
    return text, datetime.timedelta(**{UNITS[found[2]]: int(found[1])})


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(PROGRAM, DESCRIPTION, EPILOG, USAGE)
    lives = parser.add_argument_group("sources of living consumers")
    add_options(lives, LIVING, {"--alive": Path})
    _add_report(parser)
    files = {"--undo-file": Path, "--undo": Path}
    add_options(parser, RELEASE, {"--older-than": duration, **files})
    parser.set_defaults(older_than="1h")
    return parser


def _add_report(parser: argparse.ArgumentParser) -> None:
    add_options(parser, TYPES)
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="table",
        help="how the report is printed (%(default)s)",
    )
    parser.add_argument(
        "--json",
        action="store_const",
        const="json",
        dest="format",
        help="the same as --format json",
    )
    parser.add_argument(
        "--record",
        nargs="?",
        const="audit",
        type=name,
        metavar="NAME",
        help="let Placement keep what is found, which the console shows, by the name "
        "of this audit (%(const)s)",
    )
