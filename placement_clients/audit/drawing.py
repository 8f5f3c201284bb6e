"""The report: as tables, JSON, or CSV; a finding at a time."""

import csv
import json
import sys
from collections.abc import Iterator, Mapping

from placement_clients.audit.audit import Counts, count_kinds
from placement_clients.audit.judging import AMOUNTS, HOST, KINDS, MISSING, ORPHAN
from placement_clients.audit.life import UNKNOWN, add_up
from placement_clients.audit.release import RELEASED, RESULT
from placement_clients.audit.spool import Spool
from placement_clients.output import csv_cell, show_table
from placement_clients.record import Json

# A person reads no more rows than this.
MOST_ROWS = 1000
COLUMNS = (
    *("kind", "consumer", "consumer_type", "project_id", "user_id", "created_at"),
    *("claimed_at", "claimed_by", "request_id", "host", "resources"),
    *("expected_host", "expected_resources", "result"),
)
HEADS = {
    ORPHAN: ("CONSUMER", "TYPE", "PROJECT", "HOST", "CLAIM", "CLAIMED", "BY"),
    MISSING: ("CONSUMER", "HOST", "SHOULD CLAIM"),
    HOST: ("CONSUMER", "TYPE", "PROJECT", "CLAIMS ON", "SHOULD BE ON"),
    AMOUNTS: ("CONSUMER", "TYPE", "PROJECT", "HOST", "CLAIM", "SHOULD CLAIM"),
}


def draw_tables(found: Spool, counts: Counts) -> None:
    """Print a table for each kind, and what was compared."""
    for kind, meaning in KINDS.items():
        count = found.count(kind)
        if not count:
            continue
        print(f"{kind}: {meaning}: {count}")
        rows: list[list[str]] = []
        for document in found.of_kind(kind):
            if len(rows) == MOST_ROWS:
                break
            row = _row(document)
            rows.append([row[name] for name in _FIELDS[kind]])
        show_table(HEADS[kind], rows)
        if count > MOST_ROWS:
            print(f"{count - MOST_ROWS} more: --format json or csv has all")
        print()
    if not any(count_kinds(found).values()):
        print("nothing was found")
    print(_summary(counts))


_FIELDS = {
    ORPHAN: (
        *("consumer", "consumer_type", "project_id", "host", "resources"),
        *("claimed_at", "claimed_by"),
    ),
    MISSING: ("consumer", "expected_host", "expected_resources"),
    HOST: ("consumer", "consumer_type", "project_id", "host", "expected_host"),
    AMOUNTS: (
        *("consumer", "consumer_type", "project_id", "host", "resources"),
        "expected_resources",
    ),
}


def _summary(counts: Counts) -> str:
    summary = f"claims: {counts.claims}, consumers that live: {counts.living}"
    if counts.not_judged:
        summary += f", claims that no source knows about: {counts.not_judged}"
    return summary


def _row(document: Json, result: str = "") -> dict[str, str]:
    """Return a finding as strings."""
    parts = document["allocations"].values()
    expected = document["expected"] or {}
    claimed = document.get("claimed") or {}
    row = {name: document[name] or "" for name in COLUMNS[:6]}
    return row | {
        "consumer_type": document["consumer_type"] or UNKNOWN,
        "claimed_at": claimed.get("time") or document["created_at"] or "",
        "claimed_by": claimed.get("user_name") or claimed.get("user_id") or "",
        "request_id": claimed.get("request_id") or "",
        "host": " ".join(dict.fromkeys(part["root_name"] for part in parts)),
        "resources": _text_of(add_up(part["resources"] for part in parts)),
        "expected_host": expected.get("host") or "",
        "expected_resources": _text_of(expected.get("resources") or {}),
        "result": result,
    }


def _text_of(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in sorted(amounts.items()))


def _documents(found: Spool) -> Iterator[tuple[Json, str]]:
    """Yield each finding with what became of it, which may be nothing."""
    for _, rows in found.by_consumer():
        results = [document for kind, document in rows if kind == RESULT]
        for kind, document in rows:
            if kind != RESULT:
                result = results[0] if results and kind == ORPHAN else ""
                yield document, result


def list_left(found: Spool) -> Iterator[dict[str, str]]:
    """Yield each finding as strings, but for those that were released."""
    for document, result in _documents(found):
        if result != RELEASED:
            yield _row(document)


def print_json(found: Spool, counts: Counts) -> None:
    """Print the report as one document."""
    about = {
        "claims": counts.claims,
        "living": counts.living,
        "not_judged": counts.not_judged,
        "counts": count_kinds(found),
    }
    print(json.dumps(about)[:-1] + ', "findings": [', end="")
    for number, (document, result) in enumerate(_documents(found)):
        document |= {"result": result} if result else {}
        print("," if number else "", json.dumps(document), sep="\n", end="")
    print("]}")


def print_csv(found: Spool, counts: Counts) -> None:
    """Print a line for each finding."""
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for document, result in _documents(found):
        row = _row(document, result)
        writer.writerow({name: csv_cell(value) for name, value in row.items()})
