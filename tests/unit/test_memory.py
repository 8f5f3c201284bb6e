"""What a process remembers is bounded, however large the cloud is."""

import gc
import itertools
import json
import string
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from placement.microversion import MAXIMUM
from placement.model.inventory import InventoryUsage
from placement.model.tree import Provider
from placement.questions.candidate_query import Candidates
from placement.schemas import allocation_candidate as wire
from placement.schemas import resource_provider
from placement_foundation.http import json_text, query_string
from placement_foundation.http.query_string import Pairs, Parser
from placement_foundation.http.schema import View

# What the interpreter and other tests' threads may need in between, in bytes.
NOISE = 200_000
# The fields of a summary.
NAMES = ("resources", "traits", "parent_provider_uuid", "root_provider_uuid")


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
    for each in providers[: wire.MOST_REMEMBERED]:
        wire._write_summary(each, NAMES)
    with tracing() as taken:
        for each in providers[wire.MOST_REMEMBERED :]:
            wire._write_summary(each, NAMES)
        grown = taken()
        # What was remembered before was not counted, and is what has made room.
        allowed = wire.MOST_REMEMBERED * 1500
        for each in providers:
            wire._write_summary(each, NAMES)
        again = taken()
    assert grown < allowed
    assert again - grown < NOISE


def test_large_trees_do_not_fill_the_memory() -> None:
    # More members in all than are remembered, in fewer trees than are.
    large = 4 * wire.LARGEST_TREE
    count = 4 * wire.MOST_REMEMBERED // large
    assert count < wire.MOST_TREES
    trees = [
        tuple(provider(large * number + each) for each in range(large))
        for number in range(count)
    ]
    for remembering in (wire._write_summary, wire._write_together, wire._write_traits):
        remembering.cache_clear()
    with tracing() as taken:
        for tree in trees:
            wire._write_summaries(tree, NAMES)
        grown = taken()
    assert grown < wire.MOST_REMEMBERED * 1000


def test_a_large_answer_is_not_forgotten_before_it_is_given_again() -> None:
    # A thousand hosts of nine providers each, as NUMA nodes and network cards have.
    providers = [provider(number) for number in range(9_000)]
    for each in providers:
        wire._write_summary(each, NAMES)
    before = wire._write_summary.cache_info().misses
    for each in providers:
        wire._write_summary(each, NAMES)
    assert wire._write_summary.cache_info().misses == before


def test_a_tree_is_summarised_anew_only_when_it_has_changed() -> None:
    trees = [
        tuple(provider(3 * number + each) for each in range(3)) for number in range(50)
    ]
    answer = Candidates((), tuple(trees), frozenset())
    wire.render(answer, View(MAXIMUM))
    before = wire._write_together.cache_info().misses
    trees[7] = (*trees[7][:2], provider(1_000))
    text = json_text.encode(
        wire.render(replace(answer, summarised=tuple(trees)), View(MAXIMUM))
    )
    assert wire._write_together.cache_info().misses == before + 1
    summaries = json.loads(text)["provider_summaries"]
    assert summaries.keys() == {each.uuid for tree in trees for each in tree}


def test_a_list_encodes_only_providers_that_have_changed() -> None:
    providers = [provider(number) for number in range(1_000)]
    view = View(MAXIMUM)
    resource_provider.render_providers(providers, view)
    before = resource_provider._write_provider.cache_info().misses
    providers[7] = provider(7)
    resource_provider.render_providers(providers, view)
    assert resource_provider._write_provider.cache_info().misses == before + 1


def test_the_queries_of_a_caller_do_not_fill_the_memory() -> None:
    parser = wire.QUERY.at(MAXIMUM)
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


def test_a_query_that_is_asked_again_is_parsed_once() -> None:
    parsed: list[Pairs] = []
    parser = Parser(parsed.append, query_string.NOTHING)
    for _ in range(3):
        query_string.read("once=1", parser)
        query_string.read(f"each={'1' * query_string.LONGEST_REMEMBERED}", parser)
    assert [name for [(name, _)] in parsed].count("once") == 1
    assert [name for [(name, _)] in parsed].count("each") == 3
