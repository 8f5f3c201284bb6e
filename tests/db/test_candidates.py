"""What a request for allocation candidates does with the database, and when."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from placement.forest import vocabulary
from placement.search import engine
from placement_foundation.database.storage import Database
from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def test_the_transaction_has_ended_before_the_search_begins(
    application: "WSGIApplication",
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client(application)
    client.make_provider(VCPU=4)
    search, busy = engine.search, []

    def watched(*args: Any, **keywords: Any) -> Iterator[engine.Candidate]:
        busy.append(database.engine.pool.status())
        return search(*args, **keywords)

    monkeypatch.setattr(engine, "search", watched)
    found = client.get("/allocation_candidates?resources=VCPU:1")
    assert len(found["allocation_requests"]) == 1
    assert len(busy) == 1, "a search is begun once"
    assert "Current Checked out connections: 0" in busy[0]


def test_the_names_of_a_set_of_traits_are_found_without_looking_at_others() -> None:
    class Unwalkable(dict[int, str]):
        def __iter__(self) -> Iterator[int]:
            raise AssertionError("all traits are looked at")

    words = vocabulary.of_names({}, {1: "CUSTOM_B", 2: "HW_A", 3: "CUSTOM_A"})
    words = vocabulary.Vocabulary(
        words.classes,
        Unwalkable(words.traits.items()),
        words.class_ids,
        words.trait_ids,
        words.ranks,
    )
    assert words.in_order([3, 1, 2, 77]) == ("HW_A", "CUSTOM_B", "CUSTOM_A")
