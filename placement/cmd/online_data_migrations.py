"""Repairs in batches small enough to run next to the service."""

import collections
import functools
from collections.abc import Callable, Mapping
from typing import TypeAlias

import prettytable
from oslo_log import log

from placement import conf
from placement.objects import online_migration
from placement.objects.ledger import Ledger
from placement.objects.transaction import Transaction
from placement_foundation.observing import progress

LOG = log.getLogger(__name__)

BATCH_SIZE = 50
# No table has more rows than this, and every database accepts it as a limit.
MOST = 2**31 - 1

# A repair gets the most rows to repair, and returns how many it did.
Repair: TypeAlias = Callable[[Transaction, int], int]

DONE, MORE, FAILED, BAD_MAX_COUNT = 0, 1, 2, 127


def run(ledger: Ledger, settings: conf.Settings, max_count: str | None) -> int:
    """Repair at most ``max_count`` rows, or all if it is None; return the exit code."""
    limit = BATCH_SIZE if max_count is None else _parse(max_count)
    if limit is None:
        print("Must supply a positive value for max_count")
        return BAD_MAX_COUNT
    repairs = _repairs(settings)
    if max_count is not None:
        totals, failed = _run_batch(ledger, repairs, limit)
    else:
        print(f"Running batches of {BATCH_SIZE} until complete")
        totals, failed = _run_all(ledger, repairs)
    _print_table(totals)
    if max_count is not None and any(totals.values()):
        return MORE
    if failed:
        print("Some migrations failed unexpectedly. Check log for details.")
        return FAILED
    return DONE


def _parse(max_count: str) -> int | None:
    try:
        limit = int(max_count)
    except ValueError:
        return None
    return min(limit, MOST) if limit > 0 else None


def _repairs(settings: conf.Settings) -> dict[str, Repair]:
    """Return the repairs in the order in which they run, keyed by name."""
    return {
        "set_root_provider_ids": online_migration.set_root_provider_ids,
        "create_incomplete_consumers": functools.partial(
            online_migration.create_incomplete_consumers,
            project=settings.incomplete_consumer_project_id,
            user=settings.incomplete_consumer_user_id,
        ),
    }


def _run_all(
    ledger: Ledger, repairs: Mapping[str, Repair]
) -> tuple[dict[str, int], bool]:
    """Run batches until one has nothing left to repair."""
    totals: collections.Counter[str] = collections.Counter()
    with progress.shown() as report:
        report.begin("repairing rows")
        while True:
            done, failed = _run_batch(ledger, repairs, BATCH_SIZE)
            report.advance(sum(done.values()))
            totals.update(done)
            if not any(done.values()):
                return totals, failed


def _run_batch(
    ledger: Ledger, repairs: Mapping[str, Repair], limit: int
) -> tuple[dict[str, int], bool]:
    """Run repairs until the limit is used up, each in its own transaction.

    :returns: how many rows each repair that ran has repaired, keyed by name; and
        whether any failed
    """
    done: dict[str, int] = {}
    failed = False
    for name, repair_some in repairs.items():
        try:
            count = _run_once(ledger, repair_some, limit - sum(done.values()))
        except Exception:
            LOG.exception("Error attempting to run %s", name)
            print(f"Error attempting to run {name}")
            count, failed = 0, True
        if count:
            print(f"{count} rows matched query {name}, {count} migrated")
        done[name] = count
        if sum(done.values()) >= limit:
            break
    return done, failed


def _run_once(ledger: Ledger, repair_some: Repair, limit: int) -> int:
    return ledger.write(lambda tx: repair_some(tx, limit))


def _print_table(done: Mapping[str, int]) -> None:
    table = prettytable.PrettyTable(["Migration", "Total Found", "Completed"])
    for name, count in done.items():
        table.add_row([name, count, count])
    print(table)
