"""Two libraries agree about which documents break a schema."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement_foundation.http.schema import Schema
from tests import schemas
from tests.property.test_any_request import CONSUMER, JUNK, NUMBERS, TEXTS, WORDS

SCHEMAS = schemas.every()
FEW = settings(max_examples=30)


def documents(schema: Any, clean: bool) -> st.SearchStrategy[Any]:
    """Return documents that a schema fits; if they are not clean, nearly."""
    good = _good(schema, clean) if schema and schema is not True else JUNK
    if clean:
        return good
    # Rarely wrong in one place, so that large ones are not always wrong somewhere.
    return st.integers(0, 15).flatmap(lambda number: good if number else JUNK)


def _good(schema: Mapping[str, Any], clean: bool) -> st.SearchStrategy[Any]:
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of(*[documents(each, clean) for each in schema["anyOf"]])
    kinds = schema.get("type", "object")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return st.one_of(*[BY_TYPE[kind](schema, clean) for kind in kinds])


def _strings(schema: Mapping[str, Any], clean: bool) -> st.SearchStrategy[Any]:
    least, most = schema.get("minLength", 0), schema.get("maxLength", 300)
    if "pattern" in schema:
        # Without a line feed at the end, which ``$`` lets pass.
        pattern = schema["pattern"].replace("$", r"\Z" if clean else "$")
        found = st.from_regex(pattern)
        return found.filter(lambda text: least <= len(text) <= most) if clean else found
    if clean:
        lengths = st.sampled_from([least, most]).map("a".__mul__)
        return st.just(CONSUMER) if "format" in schema else lengths
    edges = [st.just("a" * size) for size in (least, least - 1, most, most + 1)]
    return st.one_of(WORDS, TEXTS, *edges)


def _numbers(schema: Mapping[str, Any], clean: bool) -> st.SearchStrategy[Any]:
    least, most = schema.get("minimum", -5), schema.get("maximum", 10**20)
    if clean:
        return st.sampled_from([least, most])
    edges = [edge + more for edge in (least, most) for more in (-1, 0, 1, 0.5, 0.0)]
    return st.one_of(NUMBERS, st.booleans(), st.sampled_from(edges))


def _arrays(schema: Mapping[str, Any], clean: bool) -> st.SearchStrategy[Any]:
    items = documents(schema.get("items", {}), clean)
    least = schema.get("minItems", 0)
    most = min(schema.get("maxItems", least + 2), least + 2)
    if clean:
        unique_by = repr if schema.get("uniqueItems") else None
        return st.lists(items, min_size=least, max_size=most, unique_by=unique_by)
    return st.lists(st.one_of(items, st.sampled_from([1, True, 1.0])), max_size=4)


def _objects(schema: Mapping[str, Any], clean: bool) -> st.SearchStrategy[Any]:
    rules = schema.get("properties", {})
    longest = schema.get("propertyNames", {}).get("maxLength", 300)
    required = schema.get("required", ())
    parts: list[st.SearchStrategy[dict[str, Any]]] = [
        st.fixed_dictionaries(
            {name: documents(rules.get(name, {}), clean) for name in required},
            optional={
                name: documents(rule, clean)
                for name, rule in rules.items()
                if name not in required
            },
        )
    ]
    least = schema.get("minProperties", 0) if not rules else 0
    for pattern, rule in schema.get("patternProperties", {}).items():
        names = st.from_regex(pattern.replace("$", r"\Z" if clean else "$"))
        if clean:
            names = names.filter(
                lambda name: 0 < len(name) <= longest and name not in rules
            )
        values = documents(rule, clean)
        parts.append(st.dictionaries(names, values, min_size=least, max_size=least + 1))
        least = 0
    rest = schema.get("additionalProperties", {})
    if rest and "patternProperties" not in schema:
        names = documents(schema.get("propertyNames", {"maxLength": 40}), clean)
        names = names.filter(lambda name: isinstance(name, str))
        parts.append(st.dictionaries(names, documents(rest, clean), min_size=least))
    elif not clean:
        parts.append(st.dictionaries(TEXTS, JUNK, max_size=1))
    joined = st.tuples(*parts).map(_join)
    most = schema.get("maxProperties", 10**6)
    least = schema.get("minProperties", 0)
    return joined.filter(lambda found: not clean or least <= len(found) <= most)


def _join(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


Make = Callable[[Mapping[str, Any], bool], st.SearchStrategy[Any]]
BY_TYPE: Mapping[str, Make] = {
    "string": _strings,
    "integer": _numbers,
    "number": _numbers,
    "array": _arrays,
    "object": _objects,
    "boolean": lambda schema, clean: st.booleans(),
    "null": lambda schema, clean: st.none(),
}


@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_a_document_suits_if_it_has_no_fault(schema: Schema) -> None:
    @FEW
    @given(st.one_of(documents(schema.document, False), JUNK))
    def judge(document: Any) -> None:
        assert schema.suits(document) == schema._validator.is_valid(document)

    @FEW
    @given(documents(schema.document, True))
    def judge_clean(document: Any) -> None:
        assert schema._validator.is_valid(document)
        assert schema.suits(document)

    judge()
    judge_clean()
