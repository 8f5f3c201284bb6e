"""``placement-manage check``: whether a database is sound."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg

from placement.objects.ledger import Ledger
from placement.objects.soundness import checking
from placement.objects.soundness.checking import Finding
from placement_foundation.database import engine
from placement_foundation.database.storage import Database
from placement_foundation.serving import terminal
from placement_foundation.serving.terminal import visible

CATEGORY = "check"
CLEAN, FOUND, NOT_LOOKED = 0, 1, 2
# How many of the rows that break a rule are printed for people.
SHOWN = 20


def add(categories: Any) -> None:
    """Add the command to those of ``placement-manage``."""
    parser = categories.add_parser(CATEGORY, help=run.__doc__, description=run.__doc__)
    parser.add_argument(
        "--json", action="store_true", help="Print what is found as JSON."
    )
    parser.add_argument(
        "--repair",
        action="store_true",
        help="Mend what has one right answer, after a confirmation. What counts as "
        "used is never changed.",
    )
    parser.add_argument(
        "--yes", action="store_true", help="With --repair, need no confirmation."
    )
    parser.add_argument(
        "--remove",
        type=int,
        metavar="<number>",
        help=f"With --repair, how many rows may be removed, if more than "
        f"{checking.HANDFUL}, or allocations of consumers that keep others.",
    )
    parser.set_defaults(action="", run=run, code_of_trouble=NOT_LOOKED)


def run(ledger: Ledger, config: cfg.ConfigOpts) -> int:
    """Look for rows that break what the service relies on; exit with 1 if any do."""
    arguments, database = config.category, ledger.database
    engine.require_file(database.engine.url)
    faults = _look(database, None if arguments.json else SHOWN)
    _print(faults, arguments.json)
    if not arguments.repair or not any(each.rule.can_be_repaired for each in faults):
        return FOUND if faults else CLEAN
    if not (arguments.yes or _agrees()):
        return FOUND
    try:
        mended = ledger.write(lambda tx: checking.repair(tx, arguments.remove))
    except checking.RemovalRefusedError as exc:
        print(exc, file=sys.stderr)
        return FOUND
    for name, count in mended.items():
        print(f"{name}: {count} mended", file=sys.stderr)
    left = _look(database, SHOWN)
    for each in left:
        print(f"{each.rule.name}: {each.count} left", file=sys.stderr)
    return FOUND if left else CLEAN


def _look(database: Database, most: int | None) -> Sequence[Finding]:
    with database.patient() as patient:
        return patient.look(lambda connection: list(checking.check(connection, most)))


def _agrees() -> bool:
    if not sys.stdin.isatty():
        raise ValueError("there is no terminal to confirm on: add --yes")
    return terminal.agrees("Mend what can be mended?")


def _print(found: Sequence[Finding], as_json: bool) -> None:
    if as_json:
        print(json.dumps([_document(each) for each in found], indent=2, default=str))
        return
    for each in found:
        rule = each.rule
        kind = "damage" if rule.damage else "notice"
        print(f"{rule.name} ({kind}): {rule.meaning}: {each.count}")
        for row in each.rows:
            shown = ", ".join(f"{key} {value}" for key, value in row.items())
            print("    " + visible(shown))
        if len(each.rows) == SHOWN < each.count:
            print(f"    and {each.count - SHOWN} more: --json lists all")
    if not found:
        print("nothing was found")


def _document(found: Finding) -> dict[str, Any]:
    return {
        "rule": found.rule.name,
        "meaning": found.rule.meaning,
        "damage": found.rule.damage,
        "can_be_repaired": found.rule.can_be_repaired,
        "count": found.count,
        "rows": found.rows,
    }
