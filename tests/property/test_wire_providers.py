"""What is rendered is parsed as what it was: providers and what belongs to them."""

import json
from typing import Any
from urllib import parse

import pytest
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
    aggregate,
    inventory,
    resource_provider,
    trait,
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


@given(generations, class_names, inventories)
def test_one_inventory(generation: int, name: str, known: Inventory) -> None:
    value = Belongings(known, generation)
    document = inventory.render_inventory(value, LATEST)
    body = sent(document, inventory.PUT_INVENTORY)
    assert inventory.parse_inventory(body) == known
    assert body["resource_provider_generation"] == generation
    body = sent({**document, "resource_class": name}, inventory.POST_INVENTORY)
    assert inventory.parse_inventory(body) == known


@given(generations, st.lists(uuids, unique=True))
def test_aggregates(generation: int, known: list[str]) -> None:
    value = Belongings(known, generation)
    render = aggregate.RENDER_AGGREGATES.at(MAXIMUM)
    schema = aggregate.PUT_AGGREGATES.at(MAXIMUM)
    assert render
    assert schema
    assert aggregate.parse_aggregates(sent(render(value, LATEST), schema)) == value


@given(generations, st.lists(class_names, unique=True))
def test_traits_of_a_provider(generation: int, known: list[str]) -> None:
    value = Belongings(known, generation)
    body = sent(trait.render_provider_traits(value, LATEST), trait.PUT_TRAITS)
    assert body == {"traits": known, "resource_provider_generation": generation}


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


@given(providers)
def test_a_provider(known: ResourceProvider) -> None:
    schema = resource_provider.CREATE.at(MAXIMUM)
    assert schema
    document = resource_provider.render_provider(known, LATEST)
    wanted = ("uuid", "name", "parent_provider_uuid")
    body = sent({name: document[name] for name in wanted}, schema)
    assert resource_provider.parse_uuid(body) == known.uuid
    assert body["name"] == known.name
    assert body["parent_provider_uuid"] == known.parent_uuid


@given(providers, st.sampled_from(sorted(VERSIONS)))
def test_a_provider_never_loses_what_it_once_showed(
    known: ResourceProvider, version: tuple[int, int]
) -> None:
    document = resource_provider.render_provider(known, View(Version(*version), "/x"))
    latest = resource_provider.render_provider(known, View(MAXIMUM, "/x"))
    for name, value in document.items():
        if name != "links":
            assert latest[name] == value
    assert all(link in latest["links"] for link in document["links"])


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


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", TraitFilters()),
        ("name=in:A,B", TraitFilters(names=frozenset({"A", "B"}))),
        ("name=in:", TraitFilters(names=frozenset({""}))),
        ("name=startswith:A:B", TraitFilters(prefix="A:B")),
        ("name=startswith:", TraitFilters(prefix="")),
        ("name=IN:A", TraitFilters()),
        ("associated=TRUE", TraitFilters(associated=True)),
        ("associated=false&name=in:A", TraitFilters(frozenset({"A"}), None, False)),
    ],
)
def test_filters_of_traits(text: str, wanted: TraitFilters) -> None:
    assert trait.parse_filters(query_string.decode(text)) == wanted
