"""Resource providers on the wire."""

import functools
import operator
import uuid
from collections.abc import Iterable
from typing import Any

from placement.microversion import made_from
from placement.model.resource_provider import ProviderFilters, ResourceProvider
from placement.model.tree import Provider
from placement.schemas import query
from placement.schemas.query import Grammar
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs, Parser
from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    TEXT_OR_NULL,
    UUID,
    Field,
    Json,
    Schema,
    View,
    closed_object,
    describe_fields,
    described,
    extend,
    fragment,
    known,
    listed,
    some_of,
)
from placement_foundation.http.version import FIRST, ByVersion, Version

UPDATE_V1_0 = closed_object(name={"type": "string", "maxLength": 200})
PARENT = {"parent_provider_uuid": {**UUID, "type": ["string", "null"]}}
UPDATE_V1_14 = extend(UPDATE_V1_0, properties=PARENT)
CREATE_V1_0 = extend(UPDATE_V1_0, properties={"uuid": UUID})
CREATE_V1_14 = extend(UPDATE_V1_14, properties={"uuid": UUID})

CREATE = ByVersion({(1, 0): Schema(CREATE_V1_0), (1, 14): Schema(CREATE_V1_14)})
UPDATE = ByVersion({(1, 0): Schema(UPDATE_V1_0), (1, 14): Schema(UPDATE_V1_14)})

PARAMETERS = {
    "name": Field((1, 0), TEXT),
    "uuid": Field((1, 0), UUID),
    "member_of": Field((1, 3), TEXT),
    "resources": Field((1, 4), TEXT),
    "in_tree": Field((1, 14), UUID),
    "required": Field((1, 18), TEXT),
}

# How many providers are remembered in their encoded form, each a kilobyte.
MOST_REMEMBERED = 16_384
LINKS = {
    "inventories": (1, 0),
    "usages": (1, 0),
    "aggregates": (1, 1),
    "traits": (1, 6),
    "allocations": (1, 11),
}
FIELDS = {
    "uuid": Field((1, 0), TEXT),
    "name": Field((1, 0), TEXT),
    "generation": Field((1, 0), INTEGER),
    "parent_provider_uuid": Field((1, 14), TEXT_OR_NULL),
    "root_provider_uuid": Field((1, 14), TEXT),
}
# The values of these fields.
_SHOWN = operator.attrgetter("uuid", "name", "generation", "parent_uuid", "root_uuid")


def parse_uuid(body: Json) -> str:
    """Return the UUID for a provider in the usual spelling; make one up if absent."""
    return str(uuid.UUID(body["uuid"]) if "uuid" in body else uuid.uuid4())


def parse_filters(pairs: Pairs, *, schema: Schema, grammar: Grammar) -> ProviderFilters:
    """Return the filters in a query string.

    :raises BadRequest: a parameter is unknown or malformed
    """
    query_string.check(pairs, schema)
    groups = query.parse_member_of(query_string.values(pairs, "member_of"), grammar)
    traits = query.parse_required(query_string.values(pairs, "required"), grammar)
    resources = query_string.last(pairs, "resources")
    return ProviderFilters(
        name=query_string.last(pairs, "name") or None,
        uuid=query_string.last(pairs, "uuid"),
        in_tree=query_string.last(pairs, "in_tree"),
        traits=traits.required,
        forbidden_traits=traits.forbidden,
        aggregates=groups.required,
        forbidden_aggregates=groups.forbidden,
        resources={} if resources is None else query.parse_resources(resources),
    )


def _parser_at(version: Version) -> Parser[ProviderFilters]:
    document = some_of(**describe_fields(PARAMETERS, version))
    schema = Schema(document, query_string.FORMATS)
    grammar = query.grammar_at(version)
    return Parser(
        functools.partial(parse_filters, schema=schema, grammar=grammar), schema
    )


LIST = made_from(FIRST, _parser_at)


def path(provider_uuid: str) -> str:
    """Return the path of a provider."""
    return f"/resource_providers/{provider_uuid}"


def _describe_provider(version: Version) -> Json:
    rels = [rel for rel, first in LINKS.items() if version >= first]
    link = closed_object(rel={"enum": ["self", *rels]}, href=TEXT)
    return closed_object(**describe_fields(FIELDS, version), links=listed(link))


def _describe_providers(version: Version) -> Json:
    return closed_object(resource_providers=listed(_describe_provider(version)))


@described(_describe_provider)
def render_provider(provider: ResourceProvider | Provider, view: View) -> Json:
    """Render a provider with links to its inventories, traits and so on."""
    return _render(_SHOWN(provider), view)


@described(_describe_providers)
def render_providers(providers: Iterable[Provider], view: View) -> Json:
    """Render a list of providers."""
    shown = map(_SHOWN, providers)
    encoded = [_encode(each, view.version, view.prefix) for each in shown]
    return {"resource_providers": encoded}


@functools.lru_cache(maxsize=MOST_REMEMBERED)
def _encode(shown: tuple[Any, ...], version: Version, prefix: str) -> Json:
    """Return an encoded provider.

    It is remembered by what it shows: some requests read their providers afresh.
    """
    return fragment(_render(shown, View(version, prefix)))


def _render(shown: tuple[Any, ...], view: View) -> Json:
    values = dict(zip(FIELDS, shown, strict=True))
    here = view.href(path(values["uuid"]))
    links = [{"rel": "self", "href": here}]
    for rel, first in LINKS.items():
        if view.version >= first:
            links.append({"rel": rel, "href": f"{here}/{rel}"})
    fields = {name: values[name] for name in known(FIELDS, view.version)}
    return {**fields, "links": links}
