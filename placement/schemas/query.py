"""Query strings about providers: resources=, required=, member_of=, in_tree= ...

Queries for candidates have groups of them, and more.
"""

import collections
import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from placement import errors
from placement.microversion import made_from
from placement.model.request import Group, Request
from placement.questions.candidates import CandidateQuery
from placement_foundation.http import query_string, schema
from placement_foundation.http.query_string import COMPLAINT, Pairs, Parser
from placement_foundation.http.schema import (
    TEXT,
    Field,
    Schema,
    describe_fields,
    some_of,
)
from placement_foundation.http.version import ByVersion, Version


@dataclasses.dataclass(frozen=True, slots=True)
class Grammar:
    """What queries may have at a microversion beyond the first form of each parameter.

    ``nested_providers`` is passed on to the request. ``same_subtree`` may bind
    ``resourceless_groups`` to others.
    """

    forbidden_traits: bool = False
    any_of_traits: bool = False
    repeated_member_of: bool = False
    forbidden_aggregates: bool = False
    nested_providers: bool = False
    resourceless_groups: bool = False


# The microversion of each.
SYNTAX = {
    "forbidden_traits": (1, 22),
    "repeated_member_of": (1, 24),
    "nested_providers": (1, 29),
    "forbidden_aggregates": (1, 32),
    "resourceless_groups": (1, 36),
    "any_of_traits": (1, 39),
}


def grammar_at(version: Version) -> Grammar:
    """Return what queries may have at a microversion."""
    return Grammar(**{name: version >= since for name, since in SYNTAX.items()})


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """Traits, or aggregates by UUID: one of each set, and none of ``forbidden``."""

    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()


def unexpected(name: str, expected: str, got: object) -> errors.BadRequest:
    """Return the error for a parameter with an unexpected value."""
    return errors.BadRequest(
        f"{COMPLAINT}Expected '{name}' to be {expected}. Got: {got}"
    )


def parse_resources(value: str) -> dict[str, int]:
    """Return the amounts in ``resources``, by name of resource class.

    :raises BadRequest: the value is not of the form CLASS:AMOUNT,CLASS:AMOUNT
    """
    if not value.strip():
        raise _badly_formed_resources("empty string")
    return dict(_parse_resource(item) for item in value.split(","))


def _parse_resource(item: str) -> tuple[str, int]:
    if item.count(":") != 1:
        raise _badly_formed_resources(item)
    resource_class, text = item.split(":")
    amount = _parse_integer(text)
    if amount is None:
        raise errors.BadRequest(
            f"Requested resource {resource_class} expected positive integer amount. "
            f"Got: {text}."
        )
    if amount < 1:
        raise errors.BadRequest(
            f"Requested resource {resource_class} requires amount >= 1. Got: {amount}."
        )
    return resource_class, amount


def _badly_formed_resources(got: str) -> errors.BadRequest:
    return errors.BadRequest(
        "Badly formed resources parameter. Expected resources query string parameter "
        f"in form: ?resources=VCPU:2,MEMORY_MB:1024. Got: {got}."
    )


def _parse_integer(text: str) -> int | None:
    """Read an integer as Python does; None if the string is not one.

    Python refuses thousands of digits. Such a number is more than there is of anything,
    and so are its first forty digits.
    """
    numeral = text.strip()
    if not re.fullmatch(r"[+-]?\d+(_\d+)*", numeral):
        return None
    digits = numeral.lstrip("+-").replace("_", "").lstrip("0")[:40]
    return int(digits or "0") * (-1 if numeral.startswith("-") else 1)


def parse_required(values: Sequence[str], grammar: Grammar) -> Selection:
    """Return the traits in the values of ``required``.

    Before the parameter could be repeated, only the last value counted.

    :raises BadRequest: a value is malformed, or too new for the microversion
    """
    counting = values if grammar.any_of_traits else values[-1:]
    parsed = [_parse_traits(value, grammar) for value in counting]
    return Selection(
        tuple(alternatives for traits in parsed for alternatives in traits.required),
        frozenset().union(*(traits.forbidden for traits in parsed)),
    )


def _parse_traits(value: str, grammar: Grammar) -> Selection:
    if value.startswith("in:"):
        return _parse_any_of_traits(value, grammar)
    names = [name.strip() for name in value.split(",")]
    example = "!CUSTOM_MAGIC" if grammar.forbidden_traits else "CUSTOM_MAGIC"
    expected = (
        f"{COMPLAINT}Expected 'required' parameter value of the form: "
        f"HW_CPU_X86_VMX,{example}. Got"
    )
    if not all(name.lstrip("!") for name in names):
        raise errors.BadRequest(f"{expected} an empty trait in: {value}")
    forbidden = {name.lstrip("!") for name in names if name.startswith("!")}
    if forbidden and not grammar.forbidden_traits:
        raise errors.BadRequest(f"{expected}: {value}")
    required = dict.fromkeys(name for name in names if not name.startswith("!"))
    return Selection(
        tuple(frozenset({name}) for name in required), frozenset(forbidden)
    )


def _parse_any_of_traits(value: str, grammar: Grammar) -> Selection:
    form = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"
    if not grammar.any_of_traits:
        raise errors.BadRequest(
            f"{COMPLAINT}The format '{form}' only supported since microversion 1.39. "
            f"Got: {value}"
        )
    names = [name.strip() for name in value.removeprefix("in:").split(",")]
    if not all(names):
        raise errors.BadRequest(
            f"{COMPLAINT}Expected 'required' parameter value of the form: {form}. "
            f"Got an empty trait in: {value}"
        )
    if "!" in value:
        raise errors.BadRequest(
            f"{COMPLAINT}The format '{form}' does not support forbidden traits. "
            f"Got: {value}"
        )
    return Selection((frozenset(names),))


def parse_member_of(
    values: Sequence[str], grammar: Grammar, name: str = "member_of"
) -> Selection:
    """Return the aggregates in the values of ``member_of``.

    :param name: of the parameter, suffix included
    :raises BadRequest: a value is malformed, or too new for the microversion
    """
    if len(values) > 1 and not grammar.repeated_member_of:
        raise errors.BadRequest("Multiple member_of parameters are not supported")
    parsed = [_parse_aggregates(value, grammar, name) for value in values]
    return Selection(
        tuple(members for forbids, members in parsed if not forbids),
        frozenset().union(*(members for forbids, members in parsed if forbids)),
    )


def _parse_aggregates(
    value: str, grammar: Grammar, name: str
) -> tuple[bool, frozenset[str]]:
    """Return whether a value forbids its aggregates, and the aggregates."""
    forbids = value.startswith("!")
    unsigned = value[1:] if forbids else value
    listed = unsigned.startswith("in:")
    if "," in value and not listed:
        raise errors.BadRequest(
            "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' "
            f"keyword using the valid microversion. Got: {value}"
        )
    members = unsigned.removeprefix("in:").split(",")
    for member in members:
        if not schema.is_uuid(member):
            raise errors.BadRequest(
                f"{COMPLAINT}Expected 'member_of' parameter to contain valid UUID(s). "
                f"Got: {member}"
            )
    if forbids and not grammar.forbidden_aggregates:
        raise errors.BadRequest(
            f"Forbidden {name} parameters are not supported in the specified "
            "microversion"
        )
    return forbids, frozenset(members)


def parse_in_tree(value: str) -> str:
    """Return the UUID in ``in_tree``, as it is spelled.

    :raises BadRequest: the value is not a UUID in any spelling
    """
    provider_uuid = value.strip()
    if not schema.is_uuid(provider_uuid):
        raise errors.BadRequest(
            f"{COMPLAINT}Expected 'in_tree' parameter to be a format of uuid. "
            f"Got: {value}"
        )
    return provider_uuid


LIMIT = {"type": "string", "pattern": "^[1-9][0-9]*$"}
POLICY = {"type": "string", "enum": ["none", "isolate"]}
# Any larger limit means the same: all candidates.
LARGEST_LIMIT = 10**18

# The parameters of a query, and those that are about a request group.
PARAMETERS = {
    "resources": Field((1, 10), TEXT),
    "limit": Field((1, 16), LIMIT),
    "required": Field((1, 17), TEXT),
    "member_of": Field((1, 21), TEXT),
    "group_policy": Field((1, 25), POLICY),
    "in_tree": Field((1, 31), TEXT),
    "root_required": Field((1, 35), TEXT),
    "same_subtree": Field((1, 36), TEXT),
}
OF_GROUPS = ("resources", "required", "member_of", "in_tree")
# The pattern of the suffixes of groups; before, there was one group, without any.
SUFFIX = ByVersion({(1, 25): "([1-9][0-9]*)?", (1, 33): "([a-zA-Z0-9_-]{1,64})?"})
NO_SUFFIX = "()"


def parse_candidates(
    pairs: Pairs, *, schema: Schema, grammar: Grammar, suffix: str
) -> CandidateQuery:
    """Return the parsed query.

    :param suffix: the pattern that suffixes of groups match
    :raises BadRequest: the query breaks a rule of the format
    """
    # Gathered once: a query may have tens of thousands of names.
    values = collections.defaultdict[str, list[str]](list)
    for name, value in pairs:
        values[name].append(value)
    limits, policies = values["limit"], values["group_policy"]
    query_string.check(pairs, schema)
    if len(limits) > 1:
        # The last value of each is checked, and the first limit counts.
        query_string.check([*pairs, ("limit", limits[0])], schema)
    root = _parse_root_required(values["root_required"], grammar)
    same_subtree = [_parse_same_subtree(value) for value in values["same_subtree"]]
    groups = _parse_groups(pairs, values, grammar, suffix)
    if grammar.resourceless_groups:
        _check_groups_are_bound(groups, same_subtree)
    else:
        _check_groups_have_resources(groups)
    _check_conflicts(groups)
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
        nested=grammar.nested_providers,
    )
    return CandidateQuery(request, _parse_limit(limits))


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
    traits = parse_required(values, replace(grammar, any_of_traits=False))
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


def _parse_groups(
    pairs: Pairs, values: Mapping[str, Sequence[str]], grammar: Grammar, suffixes: str
) -> dict[str, Group]:
    """Return the groups by suffix, in the order in which the query first names them.

    :param values: all values of each parameter
    """
    groups: dict[str, Group] = {}
    parsed = set()
    parameter = re.compile(f"({'|'.join(OF_GROUPS)}){suffixes}")
    for name, value in pairs:
        match = parameter.fullmatch(name)
        if not match:
            continue
        kind, suffix = match[1], match[2] or ""
        group = groups.get(suffix) or Group(suffix)
        if kind == "resources":
            group = replace(group, resources=parse_resources(value))
        elif kind == "in_tree":
            group = replace(group, in_tree=parse_in_tree(value))
        elif name not in parsed:
            group = _with_all(group, kind, name, values[name], grammar)
        parsed.add(name)
        groups[suffix] = group
    return groups


def _with_all(
    group: Group, kind: str, name: str, values: Sequence[str], grammar: Grammar
) -> Group:
    """Add all values of a parameter at once, when its first value is reached."""
    if kind == "required":
        traits = parse_required(values, grammar)
        return replace(group, required=traits.required, forbidden=traits.forbidden)
    aggregates = parse_member_of(values, grammar, name)
    return replace(
        group, member_of=aggregates.required, not_member_of=aggregates.forbidden
    )


def _check_groups_have_resources(groups: Mapping[str, Group]) -> None:
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
    groups: Mapping[str, Group], same_subtree: list[frozenset[str]]
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


def _check_conflicts(groups: Mapping[str, Group]) -> None:
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


def _schema_at(version: Version) -> Schema:
    suffix = SUFFIX.at(version)
    rules = describe_fields(PARAMETERS, version)
    if suffix is None:
        document = some_of("resources", **rules)
    else:
        patterns = {
            f"^{name}{suffix}$": rules.pop(name) for name in OF_GROUPS if name in rules
        }
        document = {**some_of(**rules), "patternProperties": patterns}
    return Schema(document, query_string.FORMATS)


def parser_at(version: Version) -> Parser[CandidateQuery]:
    """Return the parser of a query for candidates at a microversion."""
    schema = _schema_at(version)
    parse = functools.partial(
        parse_candidates,
        schema=schema,
        grammar=grammar_at(version),
        suffix=SUFFIX.at(version) or NO_SUFFIX,
    )
    return Parser(parse, schema)


# The first microversion with candidates.
FIRST = (1, 10)
CANDIDATES = made_from(FIRST, parser_at)
