"""Checks replies against the description of the API."""

import functools
import gzip
import io
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import jsonschema

from placement import errors, openapi
from placement.microversion import BY_NAME
from placement_foundation.http.answer import JSON, LINES
from placement_foundation.http.router import Router
from placement_foundation.http.version import Version

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

ROUTER = Router(openapi.TABLE)


@functools.cache
def described(version: Version) -> Any:
    """Return the description of the API, parsed from its JSON text."""
    return json.loads(json.dumps(openapi.describe(version)))


def resolve(document: Any, node: Any) -> Any:
    """Return what a part of a description refers to, or the part itself."""
    while "$ref" in node:
        steps = node["$ref"].removeprefix("#/").split("/")
        node = functools.reduce(lambda part, step: part[step], steps, document)
    return node


@functools.cache
def validator(
    version: Version, path: str, method: str, status: str, media_type: str
) -> jsonschema.Draft202012Validator:
    """Return a validator for the documents of a reply."""
    document = described(version)
    reply = document["paths"][path][method]["responses"][status]
    content = reply["content"][media_type]
    schema = content.get("schema") or content["x-line-schema"]
    return jsonschema.Draft202012Validator(resolve(document, schema))


def watch(
    application: "WSGIApplication",
    environment: "WSGIEnvironment",
    start_response: "StartResponse",
) -> Iterable[bytes]:
    """Serve a request, and check that the description allows the reply.

    :raises AssertionError: it does not
    """
    begun: list[Any] = []

    def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
        begun[:] = [status, headers, *error]
        return io.BytesIO().write

    body = application(environment, start)
    sent = b"".join(body)
    if hasattr(body, "close"):
        body.close()
    status, headers, *error = begun
    start_response(status, headers, *error)
    check(environment, status.split()[0], dict(headers), sent)
    return [sent]


def check(
    environment: "WSGIEnvironment", status: str, headers: dict[str, str], body: bytes
) -> None:
    """Check that the description allows a reply to a request.

    :raises AssertionError: it does not
    """
    reply_headers = {name.lower(): value for name, value in headers.items()}
    named = reply_headers.get("openstack-api-version", "placement latest").split()[1]
    version = BY_NAME[named]
    try:
        path = ROUTER.find(environment.get("PATH_INFO") or "/")[0]
    except errors.NotFound:
        return
    method = environment["REQUEST_METHOD"].lower()
    operation = described(version)["paths"].get(path, {}).get(method)
    if operation is None:
        return
    request = f"{version} {method} {path}: {status}"
    assert status in operation["responses"], request
    reply = operation["responses"][status]
    unknown = (
        reply_headers.keys() & openapi.HEADERS.keys() - reply.get("headers", {}).keys()
    )
    assert status == "401" or not unknown, (request, unknown)
    content = reply.get("content", {})
    media_type = reply_headers.get("content-type", "").split(";")[0]
    if media_type not in content:
        assert status == "401" or not (content or body), (request, media_type)
        return
    if reply_headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    if media_type in (JSON, LINES) or media_type.endswith("+json"):
        rules = validator(version, path, method, status, media_type)
        for text in body.splitlines() if media_type == LINES else [body]:
            faults = list(rules.iter_errors(json.loads(text)))
            assert not faults, (request, faults, text)
