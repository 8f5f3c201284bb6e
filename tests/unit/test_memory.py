"""What a process remembers is bounded, however large the cloud is."""

import gc
import itertools
import string
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from placement.microversion import MAXIMUM
from placement.model.inventory import InventoryUsage
from placement.model.tree import Provider
from placement.questions.candidates import Candidates
from placement.schemas import allocation_candidate as wire
from placement.schemas import query, resource_provider
from placement_foundation.http import query_string
from placement_foundation.http.schema import View

pytestmark = pytest.mark.lengthy

# What the interpreter and other tests' threads may need in between, in bytes.
NOISE = 200_000


def provider(number: int) -> Provider:
    name, traits = str(uuid.UUID(int=number)), (f"CUSTOM_RACK{number}",)
    inventories = {"VCPU": InventoryUsage(8)}
    return Provider(
        name, None, name, inventories, traits, frozenset(traits), frozenset(), 0, 1
    )


@contextmanager
def tracing() -> Iterator[Callable[[], int]]:
    """Give a function that tells how many bytes the block has taken and kept."""

    def taken() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        yield taken
    finally:
        tracemalloc.stop()


def test_answers_about_more_and_more_providers_do_not_fill_the_memory() -> None:
    providers = [provider(number) for number in range(3 * wire.MOST_REMEMBERED)]
    render(providers[: wire.MOST_REMEMBERED])
    with tracing() as taken:
        render(providers[wire.MOST_REMEMBERED :])
        grown = taken()
        # What was remembered before was not counted, and is what has made room.
        allowed = wire.MOST_REMEMBERED * 1500
        render(providers)
        again = taken()
    assert grown < allowed
    assert again - grown < NOISE


def render(providers: list[Provider]) -> None:
    for each in providers:
        wire.render(Candidates((), (each,), frozenset()), View(MAXIMUM))


def test_the_queries_of_a_caller_do_not_fill_the_memory() -> None:
    parser = query.CANDIDATES.at(MAXIMUM)
    assert parser
    numbers = range(2 * query_string.MOST_REMEMBERED)
    traits = ",".join(map("".join, itertools.product(string.ascii_uppercase, repeat=2)))
    with tracing() as taken:
        for number in numbers:
            # The worst there is: many short names, of which each has a set to itself.
            asked = f"resources=A:{number + 1}&required={traits}"
            asked = asked[: query_string.LONGEST_REMEMBERED].rstrip(",")
            query_string.read(asked, parser)
            query_string.read(f"{asked}{',LONG' * 1000}", parser)
        grown = taken()
    assert grown < query_string.MOST_REMEMBERED * 100 * query_string.LONGEST_REMEMBERED


def test_a_provider_that_is_read_again_is_not_remembered_twice() -> None:
    view = View(MAXIMUM)
    one = resource_provider.render_providers([provider(1)], view)
    other = resource_provider.render_providers([provider(1)], view)
    assert one["resource_providers"][0] is other["resource_providers"][0]
