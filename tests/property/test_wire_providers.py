"""What is rendered is parsed as what it was: providers and what belongs to them."""

import json
from typing import Any
from urllib import parse

from hypothesis import given
from hypothesis import strategies as st

from placement.microversion import MAXIMUM, VERSIONS
from placement.model.inventory import Inventory
from placement.model.resource_provider import (
    Belongings,
    ProviderFilters,
    ResourceProvider,
)
from placement.model.trait import TraitFilters as TraitFilters
from placement.model.tree import Provider
from placement.schemas import (
    inventory,
    resource_provider,
)
from placement_foundation.http import query_string
from placement_foundation.http.schema import Schema, View, encode, parse_json
from placement_foundation.http.version import Version

LATEST = View(MAXIMUM)
LARGEST = 0x7FFFFFFF

generations = st.integers(0, LARGEST)
uuids = st.uuids().map(str)
class_names = st.from_regex(r"[A-Z0-9_]{1,20}", fullmatch=True)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
positive = st.integers(1, LARGEST)
inventories = st.builds(
    Inventory,
    total=positive,
    reserved=st.integers(0, LARGEST),
    min_unit=positive,
    max_unit=positive,
    step_size=positive,
    allocation_ratio=st.floats(-3.40282e38, 3.40282e38),
)


def sent(document: Any, schema: Schema) -> Any:
    """Return what arrives of a document, which the schema must accept."""
    return parse_json(json.dumps(document).encode(), schema)


@given(generations, st.dictionaries(class_names, inventories, max_size=5))
def test_all_inventories(generation: int, known: dict[str, Inventory]) -> None:
    value = Belongings(known, generation)
    body = sent(inventory.render_inventories(value, LATEST), inventory.PUT_INVENTORIES)
    assert inventory.parse_inventories(body["inventories"]) == known
    assert body["resource_provider_generation"] == generation


providers = st.builds(
    ResourceProvider,
    id=generations,
    uuid=uuids,
    name=names,
    generation=generations,
    parent_uuid=st.none() | uuids,
    root_uuid=uuids,
    modified=st.none(),
)


of_forest = st.builds(
    Provider,
    uuid=uuids,
    parent_uuid=st.none() | uuids,
    root_uuid=uuids,
    inventories=st.just({}),
    trait_names=st.just(()),
    traits=st.just(frozenset()),
    aggregates=st.just(frozenset()),
    position=st.just(0),
    end=st.just(1),
    name=st.text(max_size=200),
    generation=generations,
)


@given(
    st.lists(of_forest, max_size=3),
    st.sampled_from(sorted(VERSIONS)),
    st.sampled_from(["", "/placement", '/"x\u00e9']),
)
def test_a_list_shows_each_provider_as_it_is_shown_by_itself(
    known: list[Provider], version: tuple[int, int], prefix: str
) -> None:
    view = View(Version(*version), prefix)
    for _ in range(2):
        document = encode(resource_provider.render_providers(known, view))
        assert json.loads(document) == {
            "resource_providers": [
                resource_provider.render_provider(each, view) for each in known
            ]
        }


filters = st.builds(
    ProviderFilters,
    name=st.none() | names.filter(bool),
    uuid=st.none() | uuids,
    in_tree=st.none() | uuids,
    traits=st.lists(st.frozensets(class_names, min_size=1), max_size=3).map(tuple),
    forbidden_traits=st.frozensets(class_names, max_size=3),
    aggregates=st.lists(st.frozensets(uuids, min_size=1), max_size=3).map(tuple),
    forbidden_aggregates=st.frozensets(uuids, max_size=3),
    resources=st.dictionaries(class_names, st.integers(1), max_size=3),
)


def render_filters(wanted: ProviderFilters) -> str:
    """Return a query string that asks for this."""
    single = {
        "name": wanted.name,
        "uuid": wanted.uuid,
        "in_tree": wanted.in_tree,
        "resources": ",".join(f"{name}:{n}" for name, n in wanted.resources.items()),
    }
    pairs = [(name, value) for name, value in single.items() if value]
    pairs += [("required", f"in:{','.join(group)}") for group in wanted.traits]
    pairs += [("required", f"!{name}") for name in wanted.forbidden_traits]
    pairs += [("member_of", f"in:{','.join(group)}") for group in wanted.aggregates]
    pairs += [("member_of", f"!{uuid}") for uuid in wanted.forbidden_aggregates]
    return parse.urlencode(pairs)


@given(filters)
def test_filters_of_providers(wanted: ProviderFilters) -> None:
    parse_filters = resource_provider.LIST.at(MAXIMUM)
    assert parse_filters
    assert parse_filters(query_string.decode(render_filters(wanted))) == wanted
