"""``placement-apply``: compares and applies the declarations of a file."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from placement_clients.apply import declaration, drawing, export, yaml12
from placement_clients.apply.applying import OWNER, Applier
from placement_clients.apply.declaration import Declaration
from placement_clients.client import Client
from placement_clients.errors import NotFound
from placement_clients.option import add_options, parser_of, placement_of
from placement_clients.output import (
    Unusable,
    agrees,
    check_can_ask,
    console_of,
    read_text,
    run,
    show_json,
)

PROGRAM = "placement-apply"
NEEDED = "this Placement has no /ledger/v1, which placement-apply needs"
NOTHING, ERROR, SOMETHING = range(3)

USAGE = """\
placement-apply FILE... [--owner NAME] [--force] [--prune|--prune-all] [--yes]
                       [options]
       placement-apply plan FILE... [--owner NAME] [--force] [--prune] [options]
       placement-apply export [--host NAME]... [--all] [options]
       placement-apply drift [--owner NAME] [options]"""
DESCRIPTION = """\
Make the hardware in Placement what files declare: hosts with what is in them, their
inventories, traits and aggregates. `plan` only shows what would change, `export` writes
such a file, `drift` shows where Placement differs from what was declared.
"""
EPILOG = """\
A FILE is YAML or JSON; - is standard input. It may be called like a command as ./plan.

exit status:
  0  nothing to change, or all done
  1  error: wrong options, a bad file, a conflict, something refused, no answer
  2  plan and drift: something differs; otherwise: it did when it was to be changed

examples:
  placement-apply plan fleet.yaml
  placement-apply --yes --owner gpu-team gpus.yaml
  placement-apply export --host compute-1 > compute-1.yaml
"""
OPTIONS = {
    "--owner NAME": f"the owner ({OWNER}); drift: all owners",
    "--force": "take over what other owners declare otherwise",
    "--prune": "the files are complete: remove what this owner no longer declares",
    "--prune-all": "the same, even if that is most of what this owner declared",
    "--yes": "need no confirmation",
    "--host NAME...": "export this host, by name or UUID; may be repeated",
    "--all": "export standard classes and traits, too, which agents report",
    "--json": "print the document",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    try:
        work = partial(_run, arguments)
        return run(PROGRAM, work, unusable=ERROR, no_answer=ERROR)
    except SystemExit as exc:
        # argparse exits with 2, which means here that something differs.
        raise SystemExit(ERROR if exc.code else NOTHING) from None


def _parse(
    arguments: Sequence[str] | None,
) -> tuple[str, Sequence[str], argparse.Namespace]:
    """Return the command, its files and the options."""
    parser = _parser()
    asked = parser.parse_intermixed_args(arguments)
    command, files = "apply", asked.what
    if asked.what[0] in COMMANDS:
        command, *files = asked.what
    if bool(files) == (command in ("export", "drift")):
        parser.error(f"{command} takes {'no' if files else 'a'} FILE")
    if command != "export" and (asked.host or asked.all):
        parser.error("--host and --all are for export: a file is applied as a whole")
    if command == "export" and asked.owner:
        parser.error("export takes no --owner: it writes what all of them declared")
    asked.prune = asked.prune or asked.prune_all
    return command, files, asked


def _run(arguments: Sequence[str] | None) -> int:
    command, files, asked = _parse(arguments)
    declared = declaration.load((name, read_text(name)) for name in files)
    try:
        return COMMANDS[command](placement_of(asked), declared, asked)
    except NotFound as exc:
        raise Unusable(NEEDED) from exc


def plan(placement: Client, declared: Declaration, asked: argparse.Namespace) -> int:
    """Show the changes that files would make."""
    applier = Applier(placement, declared, asked)
    applier.plan()
    applier.show(drawing.PLANNED)
    if applier.has_failed:
        return ERROR
    return SOMETHING if applier.differs else NOTHING


def apply(placement: Client, declared: Declaration, asked: argparse.Namespace) -> int:
    """Show what would change, and once confirmed, change exactly that."""
    if not asked.yes:
        check_can_ask()
    applier = Applier(placement, declared, asked)
    applier.plan()
    if not asked.yes:
        applier.show(drawing.PLANNED, as_json=False)
        applier.check_prune()
        if not applier.differs:
            # The service stores the declaration, even if nothing differs.
            return ERROR if applier.has_failed else _done(applier)
        if not agrees("Apply this?"):
            raise Unusable("nothing was changed")
    applier.check_prune()
    return _done(applier)


def _done(applier: Applier) -> int:
    try:
        applier.apply()
    except BaseException:
        # After any interruption, the results so far are shown.
        if applier.done:
            applier.show(drawing.DONE)
        raise
    applier.show(drawing.DONE)
    if applier.has_failed:
        return ERROR
    return SOMETHING if applier.is_stale else NOTHING


def show_export(
    placement: Client, declared: Declaration, asked: argparse.Namespace
) -> int:
    """Print the hardware in Placement as a file."""
    document = export.export(placement, asked.host, everything=asked.all)
    if asked.json:
        show_json(document)
    else:
        print(yaml12.dump(document), end="")
    return NOTHING


def show_drift(
    placement: Client, declared: Declaration, asked: argparse.Namespace
) -> int:
    """Print where Placement differs from the declarations."""
    query = {"drift": "true", **({"owner": asked.owner} if asked.owner else {})}
    document = placement.get_ledger("declared", query, declared=list)
    if asked.json:
        show_json(document)
    else:
        drawing.draw_drift(console_of(sys.stdout), document["declared"])
    return SOMETHING if document["declared"] else NOTHING


COMMANDS: Mapping[str, Callable[[Client, Declaration, argparse.Namespace], int]] = {
    "apply": apply,
    "plan": plan,
    "export": show_export,
    "drift": show_drift,
}


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(PROGRAM, DESCRIPTION, EPILOG, USAGE)
    parser.add_argument(
        "what", nargs="+", metavar="FILE", help="a file, or a command and its files"
    )
    add_options(parser, OPTIONS)
    return parser
