"""The grammar of query strings: resources=, required=, member_of=, in_tree= ..."""

import dataclasses
import re
from collections.abc import Sequence

from placement import errors
from placement_foundation.http import schema
from placement_foundation.http.query_string import COMPLAINT
from placement_foundation.http.version import ByVersion


@dataclasses.dataclass(frozen=True, slots=True)
class Grammar:
    """The syntax of parameters at a microversion beyond the first form of each."""

    forbidden_traits: bool = False
    any_of_traits: bool = False
    repeated_member_of: bool = False
    forbidden_aggregates: bool = False


V1_0 = Grammar()
V1_22 = dataclasses.replace(V1_0, forbidden_traits=True)
V1_24 = dataclasses.replace(V1_22, repeated_member_of=True)
V1_32 = dataclasses.replace(V1_24, forbidden_aggregates=True)
V1_39 = dataclasses.replace(V1_32, any_of_traits=True)

GRAMMAR = ByVersion(
    {(1, 0): V1_0, (1, 22): V1_22, (1, 24): V1_24, (1, 32): V1_32, (1, 39): V1_39}
)


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
