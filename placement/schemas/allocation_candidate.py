"""Allocation candidates on the wire."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from placement import errors
from placement.model.request import Group, Request
from placement.model.tree import Provider
from placement.questions.candidates import CandidateQuery, Candidates
from placement.schemas import query
from placement.schemas.query import Grammar, Selection
from placement.search.engine import Candidate
from placement.search.search import Picks
from placement_foundation.http import query_string
from placement_foundation.http.query_string import Pairs, Parser
from placement_foundation.http.schema import (
    INTEGER,
    TEXT,
    TEXT_OR_NULL,
    Field,
    Json,
    Schema,
    View,
    closed_object,
    describe_fields,
    described,
    extend,
    fragment,
    keyed,
    known,
    listed,
)
from placement_foundation.http.version import ByVersion, Version

LIMIT = {"type": "string", "pattern": "^[1-9][0-9]*$"}
POLICY = {"type": "string", "enum": ["none", "isolate"]}
# How many providers' resources are remembered in their encoded form: those of the
# largest usual answers, a thousand candidates whose hosts have 16 providers each.
MOST_REMEMBERED = 16_384
# The same for sets of traits, which hosts of a kind share.
MOST_TRAITS = 4_096
# Any larger limit means the same: all candidates.
LARGEST_LIMIT = 10**18

NUMBER = "([1-9][0-9]*)?"
NAME = "([a-zA-Z0-9_-]{1,64})?"


def _with_suffixes(schema: Mapping[str, Json], suffix: str, *names: str) -> Json:
    """Return a schema with optional parameters that may have a suffix."""
    patterns = {f"^{name}{suffix}$": TEXT for name in names}
    return {
        **{name: rule for name, rule in schema.items() if name != "required"},
        "patternProperties": patterns,
    }


V1_10 = {
    "type": "object",
    "required": ["resources"],
    "additionalProperties": False,
    "properties": {"resources": TEXT},
}
V1_16 = extend(V1_10, properties={"limit": LIMIT})
V1_17 = extend(V1_16, properties={"required": TEXT})
V1_21 = extend(V1_17, properties={"member_of": TEXT})
V1_25 = _with_suffixes(
    {**V1_16, "properties": {"limit": LIMIT, "group_policy": POLICY}},
    NUMBER,
    "resources",
    "required",
    "member_of",
)
SUFFIXED = ("resources", "required", "member_of", "in_tree")
V1_31 = _with_suffixes(V1_25, NUMBER, *SUFFIXED)
V1_33 = _with_suffixes(V1_25, NAME, *SUFFIXED)
V1_35 = extend(V1_33, properties={"root_required": TEXT})
V1_36 = extend(V1_35, properties={"same_subtree": TEXT})


# The request groups by suffix, in the order in which the query first names them.
_Groups: TypeAlias = Mapping[str, Group]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueryFormat:
    """The format of a query at a microversion.

    ``suffix`` is the pattern that suffixes match. ``check_groups`` refuses groups that
    make no sense. ``nested`` is passed on to the request.
    """

    schema: Schema
    grammar: Grammar
    suffix: str = "()"
    check_groups: Callable[[_Groups, list[frozenset[str]]], None]
    nested: bool = False


def parse(pairs: Pairs, query_format: QueryFormat) -> CandidateQuery:
    """Return the parsed query.

    :raises BadRequest: the query breaks a rule of the format
    """
    _check(pairs, query_format)
    root = _parse_root_required(
        query_string.values(pairs, "root_required"), query_format.grammar
    )
    same_subtree = [
        _parse_same_subtree(value)
        for value in query_string.values(pairs, "same_subtree")
    ]
    groups = _parse_groups(pairs, query_format)
    query_format.check_groups(groups, same_subtree)
    _check_conflicts(groups)
    policies = query_string.values(pairs, "group_policy")
    if len([suffix for suffix in groups if suffix]) > 1 and not policies:
        raise errors.BadRequest(
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.'
        )
    request = Request(
        groups=tuple(groups.values()),
        root_required=frozenset().union(*root.required),
        root_forbidden=root.forbidden,
        # If given twice, the last value is checked and the first one counts.
        isolate=policies[:1] == ["isolate"],
        same_subtree=tuple(same_subtree),
        nested=query_format.nested,
    )
    return CandidateQuery(request, _parse_limit(query_string.values(pairs, "limit")))


def _check(pairs: Pairs, query_format: QueryFormat) -> None:
    """Check names and values: the last value of each, and the limit that counts."""
    query_string.check(pairs, query_format.schema)
    limits = query_string.values(pairs, "limit")
    if len(limits) > 1:
        others = [(name, other) for name, other in pairs if name != "limit"]
        query_string.check([*others, ("limit", limits[0])], query_format.schema)


def _parse_limit(values: list[str]) -> int | None:
    if not values:
        return None
    digits = values[0]
    return int(digits) if len(digits) < len(str(LARGEST_LIMIT)) else LARGEST_LIMIT


def _parse_root_required(values: list[str], grammar: Grammar) -> Selection:
    if not values:
        return Selection()
    if len(values) > 1:
        raise errors.DuplicateQueryKey(
            "Query parameter 'root_required' may be specified only once."
        )
    traits = query.parse_required(values, replace(grammar, any_of_traits=False))
    conflicts = frozenset().union(*traits.required) & traits.forbidden
    if conflicts:
        raise errors.BadQueryValue(
            "Conflicting required and forbidden traits found in root_required: "
            f"{', '.join(sorted(conflicts))}"
        )
    return traits


def _parse_same_subtree(value: str) -> frozenset[str]:
    suffixes = frozenset(suffix.strip() for suffix in value.split(","))
    if "" in suffixes:
        raise errors.BadQueryValue(
            "Empty string (unsuffixed group) can not be specified in `same_subtree`"
        )
    return suffixes


def _parse_groups(pairs: Pairs, query_format: QueryFormat) -> dict[str, Group]:
    groups: dict[str, Group] = {}
    parsed = set()
    # Found once: a query may have tens of thousands of names.
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    parameter = re.compile(f"({'|'.join(SUFFIXED)}){query_format.suffix}")
    for name, value in pairs:
        match = parameter.fullmatch(name)
        if not match:
            continue
        kind, suffix = match[1], match[2] or ""
        group = groups.get(suffix) or Group(suffix)
        if kind == "resources":
            group = replace(group, resources=query.parse_resources(value))
        elif kind == "in_tree":
            group = replace(group, in_tree=query.parse_in_tree(value))
        elif name not in parsed:
            group = _with_all(group, kind, name, values[name], query_format.grammar)
        parsed.add(name)
        groups[suffix] = group
    return groups


def _with_all(
    group: Group, kind: str, name: str, values: list[str], grammar: Grammar
) -> Group:
    """Add all values of a parameter at once, when its first value is reached."""
    if kind == "required":
        traits = query.parse_required(values, grammar)
        return replace(group, required=traits.required, forbidden=traits.forbidden)
    aggregates = query.parse_member_of(values, grammar, name)
    return replace(
        group, member_of=aggregates.required, not_member_of=aggregates.forbidden
    )


def _check_groups_have_resources(
    groups: _Groups, same_subtree: list[frozenset[str]]
) -> None:
    """Refuse groups without resources, as before microversion 1.36."""
    bare = [group for group in groups.values() if not group.resources]
    traits = [f"required{group.suffix}" for group in bare if group.required]
    member_of = [
        f"member_of{group.suffix}"
        for group in bare
        if group.member_of or group.not_member_of
    ]
    # One space or two after the full stop: clients look for these exact sentences.
    if traits:
        raise errors.BadRequest(
            "All traits parameters must be associated with resources.  Found the "
            f"following orphaned traits keys: {', '.join(traits)}"
        )
    if member_of:
        raise errors.BadRequest(
            "All member_of parameters must be associated with resources. Found the "
            f"following orphaned member_of keys: {', '.join(member_of)}"
        )
    if bare:
        raise errors.BadRequest("All request groups must specify resources.")
    if not groups:
        raise errors.BadRequest(
            "At least one request group (`resources` or `resources{$S}`) is required."
        )


def _check_groups_are_bound(
    groups: _Groups, same_subtree: list[frozenset[str]]
) -> None:
    """Refuse groups without resources that no ``same_subtree`` binds to others."""
    bare = [suffix for suffix, group in groups.items() if not group.resources]
    if len(bare) == len(groups):
        raise errors.MissingQueryValue(
            "There must be at least one resources or resources[$S] parameter."
        )
    bound = frozenset().union(*same_subtree)
    loose = [suffix for suffix in bare if suffix not in bound]
    if loose:
        raise errors.BadQueryValue(
            "Resourceless suffixed group request should be specified in `same_subtree` "
            f"query param: bad group(s) - {loose}."
        )
    suffixes = sorted(suffix for suffix in groups if suffix)
    unknown = sorted(bound.difference(suffixes))
    if unknown:
        raise errors.BadQueryValue(
            "Real suffixes should be specified in `same_subtree`: "
            f"{unknown} not found in {suffixes}."
        )


def _check_conflicts(groups: _Groups) -> None:
    conflicts = sorted(
        (group.suffix, ", ".join(sorted(one_of)))
        for group in groups.values()
        for one_of in group.required
        if one_of <= group.forbidden
    )
    if conflicts:
        listed = ", ".join(
            f"required{suffix}: ({names})" for suffix, names in conflicts
        )
        raise errors.BadRequest(
            "Conflicting required and forbidden traits found in the following traits "
            f"keys: {listed}"
        )


def _schema(document: Mapping[str, Json]) -> Schema:
    return Schema(document, query_string.FORMATS)


def _parser(query_format: QueryFormat) -> Parser[CandidateQuery]:
    parser = functools.partial(parse, query_format=query_format)
    return Parser(parser, query_format.schema)


# The first format of a query, and its changes since.
FIRST = QueryFormat(
    schema=_schema(V1_10),
    grammar=query.V1_0,
    check_groups=_check_groups_have_resources,
)
CHANGES: Mapping[tuple[int, int], Mapping[str, Any]] = {
    (1, 10): {},
    (1, 16): {"schema": _schema(V1_16)},
    (1, 17): {"schema": _schema(V1_17)},
    (1, 21): {"schema": _schema(V1_21)},
    (1, 22): {"grammar": query.V1_22},
    (1, 24): {"grammar": query.V1_24},
    (1, 25): {"schema": _schema(V1_25), "suffix": NUMBER},
    (1, 29): {"nested": True},
    (1, 31): {"schema": _schema(V1_31)},
    (1, 32): {"grammar": query.V1_32},
    (1, 33): {"schema": _schema(V1_33), "suffix": NAME},
    (1, 35): {"schema": _schema(V1_35)},
    (1, 36): {"schema": _schema(V1_36), "check_groups": _check_groups_are_bound},
    (1, 39): {"grammar": query.V1_39},
}
_formats = itertools.accumulate(
    CHANGES.values(), lambda known, change: replace(known, **change), initial=FIRST
)
next(_formats)
QUERY = ByVersion(dict(zip(CHANGES, map(_parser, _formats), strict=True)))

# The amounts taken from the pick of each number, and the numbers for each suffix.
Amounts: TypeAlias = Sequence[tuple[int, Json]]
Mappings: TypeAlias = Sequence[tuple[str, Sequence[int]]]

# At first amounts were a list; later they were keyed by provider.
LISTED = listed(
    closed_object(resource_provider=closed_object(uuid=TEXT), resources=keyed(INTEGER))
)
KEYED = keyed(closed_object(resources=keyed(INTEGER)))
FIELDS = {
    "allocations": Field((1, 10), {}),
    "mappings": Field((1, 34), keyed(listed(TEXT))),
}
SUMMARY_FIELDS = {
    "resources": Field((1, 10), keyed(closed_object(capacity=INTEGER, used=INTEGER))),
    "traits": Field((1, 17), listed(TEXT)),
    "parent_provider_uuid": Field((1, 29), TEXT_OR_NULL),
    "root_provider_uuid": Field((1, 29), TEXT),
}


def _listed(providers: Picks, amounts: Amounts) -> Json:
    return [
        {"resource_provider": {"uuid": providers[number].uuid}, **taken}
        for number, taken in amounts
    ]


def _keyed(providers: Picks, amounts: Amounts) -> Json:
    return {providers[number].uuid: taken for number, taken in amounts}


def _list_resources(provider: Provider, names: Container[str]) -> dict[str, Json]:
    return {
        name: {"capacity": inventory.capacity, "used": inventory.used}
        for name, inventory in provider.inventories.items()
        if name in names
    }


ALLOCATIONS = ByVersion({(1, 10): _listed, (1, 12): _keyed})
ALLOCATIONS_DESCRIBED = ByVersion({(1, 10): LISTED, (1, 12): KEYED})
ALL_RESOURCES = ByVersion({(1, 10): False, (1, 27): True})


def _describe(version: Version) -> Json:
    allocations = {"allocations": ALLOCATIONS_DESCRIBED.at(version)}
    candidate = {**describe_fields(FIELDS, version), **allocations}
    summary = describe_fields(SUMMARY_FIELDS, version)
    return closed_object(
        allocation_requests=listed(closed_object(**candidate)),
        provider_summaries=keyed(closed_object(**summary)),
    )


class _Shape(NamedTuple):
    """The shape of an answer at a microversion.

    ``summary`` names the fields of a summary. ``has_all`` says that these are about all
    resource classes, and not only the requested ones.
    """

    allocations: Callable[[Picks, Amounts], Json]
    is_mapped: bool
    summary: tuple[str, ...]
    has_all: bool


@functools.cache
def _shape_at(version: Version) -> _Shape:
    return _Shape(
        ALLOCATIONS.at(version) or _listed,
        "mappings" in known(FIELDS, version),
        tuple(known(SUMMARY_FIELDS, version)),
        bool(ALL_RESOURCES.at(version)),
    )


@described(_describe)
def render(answer: Candidates, view: View) -> Json:
    """Render candidates, and summaries of the providers in them."""
    shape = _shape_at(view.version)
    return {
        "allocation_requests": _render_candidates(answer.candidates, shape),
        "provider_summaries": _render_summaries(answer, shape),
    }


def _render_candidates(candidates: Iterable[Candidate], shape: _Shape) -> list[Json]:
    """Return candidates, with the fields of the microversion.

    The slots are the same for all. So the amounts depend only on which of the picks are
    the same provider: they are added up once for all candidates of such a pattern.
    """
    patterns: dict[Hashable, tuple[Amounts, Mappings]] = {}
    rendered = []
    for each in candidates:
        providers = each.providers
        is_alone = providers.count(providers[0]) == len(providers)
        key = is_alone or tuple(map(providers.index, providers))
        if key not in patterns:
            patterns[key] = _pattern_of(each)
        amounts, mappings = patterns[key]
        candidate = {"allocations": shape.allocations(providers, amounts)}
        if shape.is_mapped:
            candidate["mappings"] = mapped = {}
            # For so few, a comprehension takes longer.
            for suffix, serving in mappings:
                mapped[suffix] = [providers[number].uuid for number in serving]
        rendered.append(candidate)
    return rendered


def _pattern_of(candidate: Candidate) -> tuple[Amounts, Mappings]:
    """Return the amounts of a candidate, with the numbers of picks as providers."""
    amounts, mappings = candidate.amounts(), candidate.mappings()
    number_of = candidate.providers.index
    return (
        [(number_of(each), {"resources": taken}) for each, taken in amounts.items()],
        [(suffix, list(map(number_of, each))) for suffix, each in mappings.items()],
    )


def _render_summaries(answer: Candidates, shape: _Shape) -> Json:
    summaries = {
        provider.uuid: _summary(provider, shape.summary)
        for provider in answer.summarised
    }
    if shape.has_all:
        return summaries
    return {
        provider.uuid: {
            **summaries[provider.uuid],
            "resources": _list_resources(provider, answer.resource_classes),
        }
        for provider in answer.summarised
    }


@functools.lru_cache(maxsize=MOST_REMEMBERED)
def _summary(provider: Provider, names: tuple[str, ...]) -> Json:
    """Return the summary of a provider, with the fields known at the microversion.

    It is remembered: a provider never changes, and its next state is another value.
    """
    values = {
        "resources": fragment(_list_resources(provider, provider.inventories)),
        "traits": _encode_traits(provider.trait_names),
        "parent_provider_uuid": provider.parent_uuid,
        "root_provider_uuid": provider.root_uuid,
    }
    return {name: values[name] for name in names}


@functools.lru_cache(maxsize=MOST_TRAITS)
def _encode_traits(names: tuple[str, ...]) -> Json:
    return fragment(names)
