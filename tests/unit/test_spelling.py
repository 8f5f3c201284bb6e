"""UUIDs in bodies and queries of the ledger API, in any spelling that a UUID has."""

import pytest

from placement.schemas import journal, placing, what_if

PLAIN = "0f3dd7b1-4a8e-4f7b-9d5e-aa10bb20cc30"
SPELLINGS = [PLAIN.upper(), PLAIN.replace("-", ""), f"{{{PLAIN}}}", f"urn:uuid:{PLAIN}"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_consumers_and_hosts_to_leave_out(spelling: str) -> None:
    body = {
        "query": "resources=VCPU:1",
        "ask": "capacity",
        "ignore_consumers": [spelling],
        "without_hosts": [spelling],
    }
    _, world = what_if.parse(body, {"capacity": lambda pairs: None})
    assert world.ignore_consumers == world.without_hosts == {PLAIN}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_preferred_host(spelling: str) -> None:
    preference = placing._parse_preference({"host": spelling, "weight": 1})
    assert preference.name == PLAIN


def test_providers_of_entries() -> None:
    upper = PLAIN.upper()
    query = journal.parse_history([("provider", upper), ("root", upper)])
    assert (query.filters.provider, query.filters.root) == (PLAIN, PLAIN)
    past = journal.parse_past([("provider", upper), ("at", "2026-01-01T00:00:00Z")])
    assert past.provider == PLAIN
