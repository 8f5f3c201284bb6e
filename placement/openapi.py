"""The description of the API in OpenAPI 3.1, made from the code that serves it.

There is a document for each microversion. It is made from the rows of the table at that
version, the schemas that check requests, the descriptions that renderers give of their
documents, and the errors that handlers document. See docs/decisions/openapi.rst.
"""

import functools
import inspect
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus

from placement import errors
from placement.microversion import BY_NAME, MAXIMUM, SERVICE, VERSIONS
from placement.operation import Call
from placement.routes import ROUTES
from placement_foundation.errors import AddressTooLong, BodyTooLarge
from placement_foundation.http import query_string
from placement_foundation.http.answer import JSON, LINES
from placement_foundation.http.application import Table
from placement_foundation.http.operation import (
    Deviation,
    Handler,
    Operation,
    Reply,
    edition,
)
from placement_foundation.http.query_string import Pairs, Parser
from placement_foundation.http.schema import (
    TEXT,
    Described,
    Json,
    View,
    described,
    fragment,
    some_of,
)
from placement_foundation.http.version import Version, always

PATH = "/openapi.json"
# The paths that need no token.
OPEN = ("/", PATH)

# The errors that any request may get.
ALWAYS = (
    errors.BadRequest,
    errors.UnavailableVersion,
    AddressTooLong,
    BodyTooLarge,
    errors.InternalError,
    errors.DatabaseUnavailable,
)
HEADERS = {
    "cache-control": "Makes caches validate the answer before they use it.",
    "etag": "Stands for the answer: send it in `If-None-Match` next time.",
    "last-modified": "When the newest part of the answer last changed.",
    "link": "The request for what follows, as `rel=next`.",
    "location": "The address of what was created.",
    "openstack-api-version": "The microversion of the answer.",
    "retry-after": "Seconds after which a new attempt is worthwhile.",
    "x-openstack-request-id": "The name of the request in the log of the service.",
}
IF_NONE_MATCH: Json = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The `ETag` of an answer that the caller still has.",
    "schema": TEXT,
}
OF_EACH_ANSWER = ("openstack-api-version", "x-openstack-request-id")


@query_string.parser(some_of(microversion={"enum": list(BY_NAME)}))
def _parse(pairs: Pairs) -> Version | None:
    text = query_string.last(pairs, "microversion")
    return None if text is None else BY_NAME[text]


def show_document(call: Call[None]) -> Reply:
    """Show the description of the API, to any caller."""
    return Reply(call.query)


@described({"type": "object", "required": ["openapi", "info", "paths"]})
def _render(asked: Version | None, view: View) -> Json:
    return _encoded(asked or view.version)


TABLE: Table = {
    **ROUTES,
    PATH: {
        "GET": Operation(
            handler=always(show_document),
            policy=None,
            query=always(_parse),
            reply=always(_render),
            newest_by_default=True,
        )
    },
}


@functools.cache
def _encoded(version: Version) -> Json:
    return fragment(describe(version))


def describe(version: Version) -> Json:
    """Return the description of the API at a microversion."""
    paths = {path: _path_item(path, rows, version) for path, rows in TABLE.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Placement API",
            "version": str(version),
            "description": f"Microversion {version}: {VERSIONS[version]}.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        # Relative to the document itself, wherever it is mounted.
        "servers": [{"url": "."}],
        "security": [{"token": []}],
        "paths": {path: item for path, item in paths.items() if item},
        "components": {
            "parameters": {"microversion": _microversion(version)},
            "headers": {
                name: {"description": sentence, "schema": TEXT}
                for name, sentence in HEADERS.items()
            },
            "schemas": {
                "Error": errors.describe(version),
                "NewestError": errors.describe(MAXIMUM),
            },
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}
            },
        },
    }


def _microversion(version: Version) -> Json:
    return {
        "name": "OpenStack-API-Version",
        "in": "header",
        "required": True,
        "schema": {"const": f"{SERVICE} {version}"},
    }


def _path_item(path: str, rows: Mapping[str, Operation], version: Version) -> Json:
    item = {}
    for method, row in rows.items():
        handler = row.handler.at(version)
        if handler:
            item[method.lower()] = _operation(path, method, row, handler, version)
    return item


def _operation(
    path: str, method: str, row: Operation, handler: Handler, version: Version
) -> Json:
    summary = inspect.getdoc(handler) or ""
    operation: Json = {
        "operationId": handler.__name__,
        "tags": [handler.__module__.rpartition(".")[2]],
        "summary": summary.partition("\n")[0],
        "parameters": [
            {"$ref": "#/components/parameters/microversion"},
            *_path_parameters(path),
            *_query_parameters(row, version),
            *([IF_NONE_MATCH] if row.tagged else []),
        ],
        "responses": {
            **_successes(method, row, version),
            **_failures(path, row, handler, version),
        },
    }
    if path in OPEN:
        operation["security"] = []
    if row.policy:
        operation["description"] = f"Policy rule: `{row.policy}`"
    body = row.body and row.body.at(version)
    if body:
        operation["requestBody"] = {
            "required": Deviation.BODY_OPTIONAL not in row.deviation,
            "content": {JSON: {"schema": body.document}},
        }
    return operation


def _path_parameters(path: str) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": TEXT}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _query_parameters(row: Operation, version: Version) -> list[Json]:
    """Describe the parameters of a query; those with suffixes form one object."""
    parser = row.query and row.query.at(version)
    if not isinstance(parser, Parser):
        return []
    schema = parser.schema.document
    required = schema.get("required", ())
    listed = [
        {"name": name, "in": "query", "required": name in required, "schema": rule}
        for name, rule in schema.get("properties", {}).items()
    ]
    if "patternProperties" in schema:
        groups = {
            "type": "object",
            "patternProperties": schema["patternProperties"],
            "additionalProperties": False,
        }
        listed.append(
            {
                "name": "request_groups",
                "in": "query",
                "description": "Parameters of request groups, each with the suffix "
                "of its group; each is a parameter of the query in its own right.",
                "style": "form",
                "explode": True,
                "schema": groups,
            }
        )
    return listed


def _successes(method: str, row: Operation, version: Version) -> dict[str, Json]:
    headers = list(OF_EACH_ANSWER)
    if row.dated and version >= row.dated:
        headers += ["cache-control", "last-modified"]
    if row.tagged:
        headers += ["cache-control", "etag"]
    if row.formats.keys() - {LINES}:
        headers.append("link")
    if method == "POST" or row.may_create:
        headers.append("location")
    statuses = [edition(row, version).status, *([201] if row.may_create else [])]
    answer = {"headers": _headers(headers), **_content(row, version)}
    successes: dict[str, Json] = {
        str(status): {"description": HTTPStatus(status).phrase, **answer}
        for status in statuses
    }
    if row.tagged:
        unchanged = "The answer is still the one that the caller has."
        successes["304"] = {"description": unchanged, "headers": answer["headers"]}
    return successes


def _content(row: Operation, version: Version) -> Json:
    renderer = edition(row, version).renderer
    content = {}
    if isinstance(renderer, Described):
        content[JSON] = {"schema": renderer.describe(version)}
    for media_type, other in row.formats.items():
        if isinstance(other, Described):
            # OpenAPI 3.1 cannot describe a sequence of documents: describe one of them.
            key = "x-line-schema" if media_type == LINES else "schema"
            content[media_type] = {key: other.describe(version)}
    return {"content": content} if content else {}


def _headers(names: list[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _failures(
    path: str, row: Operation, handler: Handler, version: Version
) -> dict[str, Json]:
    by_status: dict[HTTPStatus, list[str]] = {}
    shown = MAXIMUM if row.newest_by_default else version
    schema = "NewestError" if row.newest_by_default else "Error"
    for kind, when in _causes(path, row, handler):
        code = f" (`placement.{kind.code}`)" if shown >= errors.CODES_SINCE else ""
        by_status.setdefault(kind.status, []).append(f"{when}{code}")
    failures = {
        str(int(status)): _failure(status, causes, schema)
        for status, causes in sorted(by_status.items())
    }
    if path not in OPEN:
        # Comes from the middleware of the identity service, before the API is reached.
        failures["401"] = {"description": "The caller is not authenticated."}
    return failures


def _failure(status: HTTPStatus, causes: list[str], schema: str) -> Json:
    headers = list(OF_EACH_ANSWER if status != 500 else OF_EACH_ANSWER[1:])
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.append("retry-after")
    return {
        "description": "\n".join(f"* {cause}" for cause in dict.fromkeys(causes)),
        "headers": _headers(headers),
        "content": {
            JSON: {"schema": {"$ref": f"#/components/schemas/{schema}"}},
            # The same sentence in other formats.
            "text/plain": {"schema": TEXT},
            "text/html": {"schema": TEXT},
        },
    }


def _causes(
    path: str, row: Operation, handler: Handler
) -> Iterator[tuple[type[errors.ServiceError], str]]:
    """Yield the errors of a request, from its row and the docstring of its handler."""
    kinds = list(ALWAYS)
    if row.policy:
        kinds.append(errors.Forbidden)
    if "{" in path:
        kinds.append(errors.NotFound)
    if row.body:
        kinds.append(errors.UnsupportedMediaType)
    if row.heavy:
        kinds.append(errors.Busy)
    for kind in kinds:
        yield kind, (kind.__doc__ or "").partition("\n")[0].rstrip(".")
    raised = r":raises (\w+): (.+?)(?=\n:|\n\n|\Z)"
    for name, when in re.findall(raised, inspect.getdoc(handler) or "", re.DOTALL):
        yield getattr(errors, name), " ".join(when.split())
