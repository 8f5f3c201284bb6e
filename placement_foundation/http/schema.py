"""JSON in and out: checking documents, the context of renderers, and writing.

A ``Schema`` checks a document; a ``View`` says for which request a renderer renders.

orjson writes UTF-8 without spaces, ten times as fast as the standard library. The
standard library takes over where orjson refuses: numbers beyond 64 bits and lone
surrogates. See docs/decisions/libraries.rst.
"""

import dataclasses
import functools
import itertools
import json
import math
import pprint
import reprlib
import textwrap
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import fastjsonschema
import jsonschema
import orjson
from oslo_utils import uuidutils

from placement_foundation import errors
from placement_foundation.http.version import Version

Json: TypeAlias = Any

V = TypeVar("V")

# How many faults are compared to report the worst.
MOST_FAULTS = 100
# How much is shown of a part of a schema, in characters.
LARGEST_SCHEMA = 2000
BRIEF = reprlib.Repr()
BRIEF.maxstring = BRIEF.maxother = BRIEF.maxlong = errors.QUOTED

# The end of a string in a pattern of Python, whose ``$`` also matches before a newline.
END = r"\Z"

TEXT = {"type": "string"}
TEXT_OR_NULL = {"type": ["string", "null"]}
INTEGER = {"type": "integer"}
UUID = {"type": "string", "format": "uuid"}
POSITIVE_INT = {"type": "integer", "minimum": 1, "maximum": 0x7FFFFFFF}


def is_uuid(value: object) -> bool:
    """Return whether a string is a UUID for a body: any spelling of 32 digits."""
    return not isinstance(value, str) or uuidutils.is_uuid_like(value)


FORMATS = jsonschema.FormatChecker(formats=())
FORMATS.checks("uuid")(is_uuid)


class Schema:
    """A JSON Schema, which must itself be valid: for constants, a test checks that.

    ``document`` is its source, for descriptions of the API.

    :param formats: the meanings of formats; those of a query and a body differ
    """

    def __init__(
        self,
        document: Mapping[str, Json],
        formats: jsonschema.FormatChecker = FORMATS,
    ) -> None:
        self.document = document
        self._formats = {name: each for name, (each, _) in formats.checkers.items()}
        self._strict = _strict(document, self._formats)
        self._validator = jsonschema.Draft202012Validator(
            self._strict, format_checker=formats
        )

    def check(self, document: Json, complaint: str) -> None:
        """Check a document.

        :param complaint: the beginning of the message of a failure
        :raises BadRequest: the document breaks the schema; the message says where
        """
        try:
            fault = self.fault(document)
            if fault:
                raise errors.BadRequest(f"{complaint}{_tell(fault)}")
        except RecursionError as exc:
            # The document could be read, but the message about it cannot be written.
            raise errors.BadRequest(f"{complaint}nested too deeply") from exc

    def suits(self, document: Json) -> bool:
        """Return whether a quick check finds a document valid.

        It does for most documents, and then no fault has to be described.
        """
        try:
            self._accept(document)
        except (fastjsonschema.JsonSchemaException, RecursionError):
            return False
        return True

    @functools.cached_property
    def _accept(self) -> Callable[[Json], Json]:
        # It takes milliseconds, so it is not for the start of a program.
        return fastjsonschema.compile(
            self._strict, formats=self._formats, use_default=False
        )

    def fault(self, document: Json) -> jsonschema.ValidationError | None:
        """Return the worst fault of a document; None if there is none."""
        if self.suits(document):
            return None
        # A large document may have millions of faults.
        faults = itertools.islice(self._validator.iter_errors(document), MOST_FAULTS)
        worst = jsonschema.exceptions.best_match(faults)
        if worst:
            worst.message = _as_described(worst.message)
        return worst


def _strict(document: Json, formats: Container[str]) -> Json:
    """Return a schema with known formats, where ``$`` does not match before a newline.

    Its patterns are those of Python, not of JSON Schema.
    """
    if isinstance(document, list | tuple):
        return [_strict(each, formats) for each in document]
    if not isinstance(document, Mapping):
        return document
    strict = {name: _strict(each, formats) for name, each in document.items()}
    if isinstance(strict.get("pattern"), str):
        strict["pattern"] = strict["pattern"].replace("$", END)
    if "patternProperties" in strict:
        patterns = strict["patternProperties"]
        strict["patternProperties"] = {
            pattern.replace("$", END): value for pattern, value in patterns.items()
        }
    if isinstance(strict.get("format"), str) and strict["format"] not in formats:
        del strict["format"]
    return strict


def _as_described(text: str) -> str:
    """Return a text about a schema, with patterns as the description has them."""
    return text.replace(repr(END)[1:-1], "$")


def _tell(fault: jsonschema.ValidationError) -> str:
    """Return the message about a fault, with the part of the schema, and the place."""
    message = errors.quote(fault.message)
    schema = textwrap.indent(pprint.pformat(fault.schema, sort_dicts=False), "    ")
    by = _place(list(fault.relative_schema_path)[:-1])
    at = _place(fault.absolute_path)
    broken = (
        f"{message}\n\nFailed validating {fault.validator!r} in schema{by}:\n"
        f"{errors.quote(schema, LARGEST_SCHEMA)}\n\n"
    )
    return f"{_as_described(broken)}On instance{at}:\n    {BRIEF.repr(fault.instance)}"


def _place(steps: Iterable[str | int]) -> str:
    return "".join(f"[{errors.quote(repr(step))}]" for step in steps)


def parse_json(raw: bytes, schema: Schema) -> Json:
    """Return the document in a body.

    :raises BadRequest: the body is not JSON, or breaks the schema
    """
    try:
        text = raw.decode("utf-8")
        document = _load(text, _finite)
        if b"\\u" in raw:
            # An escape can smuggle in a lone surrogate, which nothing can store.
            json.dumps(document, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as exc:
        raise errors.BadRequest(f"Malformed JSON: {exc}") from exc
    # Faults show numbers as they were sent; in a valid document, 1.0 becomes 1.
    schema.check(document, "JSON does not validate: ")
    return _load(text, _number)


def _load(text: str, parse_float: Callable[[str], int | float]) -> Json:
    return json.loads(text, parse_float=parse_float, parse_constant=_refuse_constant)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large")
    return value


def _number(text: str) -> int | float:
    """Read a number; one without a fraction is an integer, however it is written."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def extend(
    schema: Mapping[str, Json],
    *,
    properties: Mapping[str, Json] | None = None,
    required: tuple[str, ...] = (),
) -> dict[str, Json]:
    """Return an object schema with more properties, some of them required."""
    extended = {
        **schema,
        "properties": {**schema.get("properties", {}), **(properties or {})},
    }
    if required:
        extended["required"] = [*schema.get("required", ()), *required]
    return extended


def closed_map(pattern: str, value: Json, *, least: int = 0) -> dict[str, Json]:
    """Return the schema of an object whose keys match a pattern."""
    return {
        "type": "object",
        "patternProperties": {pattern: value},
        "additionalProperties": False,
        "minProperties": least,
    }


def closed_object(**properties: Json) -> dict[str, Json]:
    """Return the schema of an object that has exactly these members."""
    return some_of(*properties, **properties)


def some_of(*required: str, **properties: Json) -> dict[str, Json]:
    """Return the schema of an object that has no other members, and some of these."""
    return {
        "type": "object",
        "properties": properties,
        **({"required": list(required)} if required else {}),
        "additionalProperties": False,
    }


def keyed(value: Json) -> dict[str, Json]:
    """Return the schema of an object with any keys."""
    return {"type": "object", "additionalProperties": value}


def listed(item: Json) -> dict[str, Json]:
    """Return the schema of an array."""
    return {"type": "array", "items": item}


class Field(NamedTuple):
    """A member of a document: its first microversion, and the schema of its value."""

    since: tuple[int, int]
    schema: Json


def known(fields: Mapping[str, Field], version: Version) -> list[str]:
    """Return the names of the members that exist at a microversion."""
    return [name for name, field in fields.items() if version >= field.since]


def describe_fields(fields: Mapping[str, Field], version: Version) -> dict[str, Json]:
    """Return the schemas of the members that exist at a microversion."""
    return {name: fields[name].schema for name in known(fields, version)}


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """The context of a renderer: the microversion, and where the API is mounted.

    ``prefix`` is a path, for links that begin with one; ``base`` is a whole URL.
    """

    version: Version
    prefix: str = ""
    base: str = ""

    def href(self, path: str) -> str:
        """Return a path of the API as a link in a body."""
        return self.prefix + path


@dataclasses.dataclass(frozen=True, slots=True)
class Described(Generic[V]):
    """A renderer, with a description of its documents.

    ``describe`` returns the schema that each document has at a microversion.
    """

    render: Callable[[V, View], Json]
    describe: Callable[[Version], Json]

    def __call__(self, value: V, view: View) -> Json:
        """Render a value."""
        return self.render(value, view)


def described(
    schema: Json | Callable[[Version], Json],
) -> Callable[[Callable[[V, View], Json]], Described[V]]:
    """Decorate a renderer with the schema of its documents, or one by microversion."""
    describe = schema if callable(schema) else lambda version: schema
    return lambda render: Described(render, describe)


def encode(document: Json) -> bytes:
    """Return a document as bytes. Parts of it may already be encoded."""
    try:
        return orjson.dumps(document)
    except TypeError:
        # No document of a renderer contains itself, so nothing checks for that.
        text = json.dumps(document, check_circular=False, default=_parse)
        return text.encode("ascii")


def fragment(document: Json) -> Json:
    """Return a part of documents to come, encoded once for all of them."""
    # A copy: the result of the encoder keeps the whole of its buffer, some kilobytes.
    return orjson.Fragment(bytes(memoryview(encode(document))))


def _parse(part: Any) -> Json:
    if not isinstance(part, orjson.Fragment):
        raise TypeError(f"{type(part)} has no form in JSON")
    return json.loads(orjson.dumps(part))
