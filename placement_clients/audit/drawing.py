"""The report: as tables, JSON, or CSV, or left with the service."""

import csv
import dataclasses
import sys
from collections.abc import Mapping, Sequence

from placement_clients.audit.audit import Counts, count_kinds
from placement_clients.audit.judging import (
    AMOUNTS,
    HOST,
    KINDS,
    MISSING,
    ORPHAN,
    Finding,
)
from placement_clients.audit.life import Expected
from placement_clients.audit.release import RELEASED
from placement_clients.client import Client, path_of
from placement_clients.errors import NotFound
from placement_clients.output import Unusable, csv_cell, show_json, show_table
from placement_clients.record import Json

# A person reads no more rows than this.
MOST_ROWS = 1000
# The most findings that the service keeps, their members, and the longest of these.
MOST_RECORDED = 1000
RECORDED = (
    *("kind", "consumer", "consumer_type", "project_id", "host", "resources"),
    *("expected_host", "expected_resources", "claimed_at", "claimed_by"),
)
LONGEST = 4096
COLUMNS = (
    *("kind", "consumer", "consumer_type", "project_id", "user_id", "created_at"),
    *("claimed_at", "claimed_by", "request_id", "host", "resources"),
    *("expected_host", "expected_resources", "result"),
)
OWNER = {"CONSUMER": "consumer", "TYPE": "consumer_type", "PROJECT": "project_id"}
CLAIM = {"HOST": "host", "CLAIM": "resources"}
SHOULD = {"SHOULD CLAIM": "expected_resources"}
TABLES = {
    ORPHAN: {**OWNER, **CLAIM, "CLAIMED": "claimed_at", "BY": "claimed_by"},
    MISSING: {"CONSUMER": "consumer", "HOST": "expected_host", **SHOULD},
    HOST: {**OWNER, "CLAIMS ON": "host", "SHOULD BE ON": "expected_host"},
    AMOUNTS: {**OWNER, **CLAIM, **SHOULD},
}


def draw_tables(found: Sequence[Finding], counts: Counts) -> None:
    """Print a table for each kind, and the counts."""
    for kind, meaning in KINDS.items():
        rows = [row_of(each) for each in found if each.kind == kind]
        if not rows:
            continue
        print(f"{kind}: {meaning}: {len(rows)}")
        columns = TABLES[kind]
        show_table(
            [*columns],
            ([row[name] for name in columns.values()] for row in rows[:MOST_ROWS]),
        )
        if len(rows) > MOST_ROWS:
            print(f"{len(rows) - MOST_ROWS} more: --format json or csv has all")
        print()
    if not found:
        print("nothing was found")
    print(_summary(counts))


def _summary(counts: Counts) -> str:
    summary = f"claims: {counts.claims}, consumers that live: {counts.living}"
    if counts.not_judged:
        summary += f", claims that no source knows about: {counts.not_judged}"
    return summary


def row_of(finding: Finding) -> dict[str, str]:
    """Return a finding as strings, by column."""
    claim, expected = finding.claim, finding.expected or Expected()
    owner, claimed = claim.owner, finding.claimed or {}
    return {
        "kind": finding.kind,
        "consumer": claim.consumer,
        "consumer_type": owner.type,
        "project_id": owner.project_id or "",
        "user_id": owner.user_id or "",
        "created_at": owner.created_at or "",
        "claimed_at": claimed.get("time") or owner.created_at or "",
        "claimed_by": claimed.get("user_name") or claimed.get("user_id") or "",
        "request_id": claimed.get("request_id") or "",
        "host": " ".join(dict.fromkeys(part.place[1] for part in claim.parts.values())),
        "resources": _text_of(claim.totals),
        "expected_host": expected.host or "",
        "expected_resources": _text_of(expected.resources or {}),
        "result": finding.result,
    }


def _text_of(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in sorted(amounts.items()))


def _document_of(finding: Finding) -> Json:
    claim = finding.claim
    document = {
        "kind": finding.kind,
        "consumer": claim.consumer,
        **dataclasses.asdict(claim.owner),
        "allocations": {
            provider: {
                "name": part.name,
                "root": part.place[0],
                "root_name": part.place[1],
                "resources": part.resources,
            }
            for provider, part in claim.parts.items()
        },
        "expected": finding.expected and dataclasses.asdict(finding.expected),
    }
    if finding.kind == ORPHAN:
        document["claimed"] = finding.claimed
    return document | ({"result": finding.result} if finding.result else {})


def print_json(found: Sequence[Finding], counts: Counts) -> None:
    """Print the report as one document."""
    counted = dataclasses.asdict(counts) | {"counts": count_kinds(found)}
    show_json({**counted, "findings": [_document_of(each) for each in found]})


def print_csv(found: Sequence[Finding], counts: Counts) -> None:
    """Print a line for each finding."""
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for finding in found:
        row = row_of(finding)
        writer.writerow({name: csv_cell(value) for name, value in row.items()})


def record(
    placement: Client, name: str, found: Sequence[Finding], counts: Counts
) -> None:
    """Let the service keep the findings that are left, in place of those before.

    :raises Unusable: the service does not keep them
    """
    left = [each for each in found if each.result != RELEASED]
    body = {
        **dataclasses.asdict(counts),
        "counts": count_kinds(left),
        "findings": [
            {each: row[each][:LONGEST] for each in RECORDED if row[each]}
            for row in map(row_of, left[:MOST_RECORDED])
        ],
    }
    path = path_of("ledger", "v1", "audits", name)
    try:
        placement.put(path, body, version="latest")
    except NotFound as exc:
        raise Unusable(
            "this Placement has no /ledger/v1/audits, so nothing is recorded"
        ) from exc
