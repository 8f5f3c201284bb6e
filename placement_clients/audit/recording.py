"""Records the findings of an audit with the service."""

import dataclasses
from collections.abc import Sequence

from placement_clients.adapter import path_of
from placement_clients.audit import drawing
from placement_clients.audit.audit import Counts, count_kinds
from placement_clients.audit.judging import Finding
from placement_clients.audit.release import RELEASED
from placement_clients.client import Client
from placement_clients.errors import NotFound
from placement_clients.output import Unusable

VERSION = "latest"
# The most findings that the service keeps.
MOST = 1000
MEMBERS = (
    *("kind", "consumer", "consumer_type", "project_id", "host", "resources"),
    *("expected_host", "expected_resources", "claimed_at", "claimed_by"),
)
LONGEST = 4096


def record(
    placement: Client, name: str, found: Sequence[Finding], counts: Counts
) -> None:
    """Record the findings that are left, in place of those of the last audit.

    :raises Unusable: the service does not keep them
    """
    left = [each for each in found if each.result != RELEASED]
    some = (drawing.row_of(each) for each in left[:MOST])
    body = {
        **dataclasses.asdict(counts),
        "counts": count_kinds(left),
        "findings": [
            {each: row[each][:LONGEST] for each in MEMBERS if row[each]} for row in some
        ],
    }
    try:
        placement.put(path_of("ledger", "v1", "audits", name), body, version=VERSION)
    except NotFound as exc:
        raise Unusable(
            "this Placement has no /ledger/v1/audits, so nothing is recorded"
        ) from exc
